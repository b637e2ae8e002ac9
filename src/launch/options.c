/* options.c - parses words into options; option_table.c has their effects. */
#include "option_table.h"

#include "../base/port_range.h"
#include "allocation.h"
#include "rank_env.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

bool host_is_local(const char *host)
{
    static const char *const names[] = {"localhost", "127.0.0.1", "::1"};
    for (size_t i = 0; i < ARRAY_COUNT(names); i++)
        if (strcasecmp(host, names[i]) == 0) return true;
    char own[HOST_SIZE] = {0};
    if (gethostname(own, sizeof own - 1) != 0) return false;
    if (strcasecmp(host, own) == 0) return true;
    own[strcspn(own, ".")] = '\0';
    return strcasecmp(host, own) == 0;
}

static bool option_unknown(struct parser *p, const char *typed,
                           const char *name, size_t length)
{
    const char *nearest = option_nearest(name, length);
    return option_fail(p->options,
                       "unknown option '%.*s'%s%s%s; see pccl-master --help",
                       (int)(name - typed) + (int)length, typed,
                       nearest ? ", did you mean --" : "",
                       nearest ? nearest : "", nearest ? "?" : "");
}

/* 2 or 2:4 */
static bool range_like(const char *text)
{
    size_t digits = strspn(text, "0123456789");
    const char *rest = text + digits;
    if (digits == 0) return false;
    return *rest == '\0' || (*rest == ':' && rest[1] &&
                             rest[1 + strspn(rest + 1, "0123456789")] == '\0');
}

/* Detects a forgotten value: in "-genv NAME -n 2" no variable is "-n". */
static bool value_forgotten(const char *value, const char *next)
{
    if (value[0] != '-' || !next || *next == '\0') return false;
    return next[strspn(next, "0123456789")] == '\0' &&
           option_find(value + 1, strlen(value + 1));
}

/* Parses the option at argv[*at] and advances *at past it and its values. */
static bool option_read(struct parser *p, int argc, char **argv, int *at)
{
    char *typed = argv[*at];
    const char *name = typed + (typed[1] == '-' ? 2 : 1);
    size_t length = strcspn(name, "=");
    const char *value = name[length] == '=' ? name + length + 1 : NULL;
    const struct option_entry *entry = option_find(name, length);
    if (!entry) return option_unknown(p, typed, name, length);
    char shown[64];
    snprintf(shown, sizeof shown, "%.*s", (int)(name - typed) + (int)length,
             typed);
    p->name = shown;
    const char *values[2] = {value ? value : entry->fixed, NULL};
    int wanted = entry->kind == VALUE_ONE   ? 1
                 : entry->kind == VALUE_TWO ? 2
                                            : 0;
    if (value && (entry->kind == VALUE_NONE || entry->kind == VALUE_TWO))
        return option_fail(p->options, "%s takes no '=%s'", shown, value);
    (*at)++;
    if (entry->kind == VALUE_RANGE && !value && *at < argc &&
        range_like(argv[*at]))
        values[0] = argv[(*at)++];
    for (int i = value ? 1 : 0; i < wanted; i++) {
        if (*at >= argc) {
            return option_fail(p->options, "%s needs %s", shown,
                               wanted == 2 ? "two values" : "a value");
        }
        values[i] = argv[(*at)++];
    }
    if (values[1] && value_forgotten(values[1], *at < argc ? argv[*at] : NULL))
        return option_fail(p->options, "%s needs two values, '%s' and another",
                           shown, values[0]);
    p->entry = entry;
    p->second = values[1];
    p->has_app_options |= entry->of_job;
    bool good = entry->apply(p, values[0]);
    p->name = NULL;
    return good;
}

/* Parses one executable with its options, up to ':' or the end. */
static bool app_read(struct parser *p, int argc, char **argv, int *at)
{
    struct options *o = p->options;
    while (*at < argc && argv[*at][0] == '-' && argv[*at][1] != '\0') {
        if (strcmp(argv[*at], "--") == 0) {
            (*at)++;
            break;
        }
        if (!option_read(p, argc, argv, at)) return false;
        if (o->mode != MODE_COORDINATOR) return true;
    }
    p->app->argv = argv + *at;
    while (*at < argc && strcmp(argv[*at], ":") != 0) {
        p->app->argc++;
        (*at)++;
    }
    return true;
}

/* What is there for the next coordinator. */
static bool check_grace(struct options *o, bool alone)
{
    if (o->grace > 0 && o->join)
        return option_fail(o, "--master-grace belongs to a pccl-master that "
                              "coordinates");
    if (o->grace > 0 && !alone)
        return option_fail(o, "--master-grace is for a coordinator alone: run "
                              "'pccl-master --listen ADDRESS:PORT --journal "
                              "FILE --master-grace SECONDS', and start ranks "
                              "with --join ADDRESS:PORT");
    if (o->stands_by && (o->grace == 0 || o->master_count < 2))
        return option_fail(o, "--masters of a coordinator names all of them, "
                              "and needs --master-grace SECONDS");
    if (o->grace > 0 && o->issuer)
        return option_fail(o, "--master-grace: members that show tokens "
                              "(--issuer) are not taken over");
    return true;
}

/* Checks that need the whole command line. */
static bool options_check(struct parser *p)
{
    struct options *o = p->options;
    bool alone = o->app_count == 1 && o->apps[0].argc == 0;
    if (o->mode == MODE_AGENT) return true;
    if (alone && o->join && o->has_listen) {
        o->join = false;
        o->stands_by = true;
    }
    if (o->drain && !alone)
        return option_fail(o, "--drain is for a job that runs: no program");
    if (o->attach && (!alone || o->detach || o->apps[0].ranks > 0))
        return option_fail(o, "--attach follows a job that runs: no program, "
                              "no --detach");
    if (o->detach && alone)
        return option_fail(o, "--detach starts a job: it needs a program");
    if (o->state && !o->detach && !o->attach)
        return option_fail(o, "--state belongs to --detach or --attach");
    if (o->attach) o->mode = MODE_ATTACH;
    if (o->attach) return true;
    if (o->pid && !o->drain)
        return option_fail(o, "--pid says to which job --drain goes");
    if (o->drain) {
        o->mode = MODE_DRAIN;
        return true;
    }
    if (o->make_token) {
        o->mode = MODE_MAKE_TOKEN;
        return alone || option_fail(o, "--make-token makes a file: no program");
    }
    if (!option_check_open(o, alone)) return false;
    if (o->mode != MODE_COORDINATOR) return true;
    if (o->token_file && o->insecure)
        return option_fail(o, "--token-file gives the run a key, and "
                              "--insecure takes none");
    if (o->json && !o->asks_status)
        return option_fail(o, "--json belongs to --status HOST:PORT");
    if (o->asks_status && (!alone || o->join))
        return option_fail(o, "--status asks a running coordinator: no "
                              "program, no --join");
    if (o->serves_http && (o->asks_status || o->join))
        return option_fail(o, "--status-http belongs to the pccl-master that "
                              "coordinates: no --status, no --join");
    if (o->journal && (o->asks_status || o->join))
        return option_fail(o, "--journal belongs to the pccl-master that "
                              "coordinates: no --status, no --join");
    if (!check_grace(o, alone)) return false;
    if (o->asks_status) o->mode = MODE_STATUS;
    if (o->asks_status) return true;
    if (alone && !o->join && !o->apps[0].ranks && !p->has_app_options) {
        o->mode = MODE_COORDINATOR;
        o->app_count = 0;
        return true;
    }
    o->mode = MODE_LAUNCH;
    for (size_t i = 0; i < o->app_count; i++)
        if (o->apps[i].argc == 0)
            return option_fail(o, "no program to run; see pccl-master --help");
    if (o->join && (o->has_listen || o->quorum || o->minimum)) {
        return option_fail(o, "--join takes part in a job that has its "
                              "coordinator: no --listen, no --quorum, no "
                              "--min-ranks");
    }
    if (o->join && o->restarts)
        return option_fail(o, "--join takes part in a job that only its own "
                              "pccl-master can start again: no --restart");
    if (o->join || o->minimum || o->respawn || o->spares)
        o->elastic = o->shrink = true;
    return true;
}

static bool has_port(const char *announce)
{
    struct address at;
    return announce && address_parse(announce, 0, &at) && at.port != 0;
}

/* One port leads to one rank, and each rank listens on a port of its own. */
static bool ways_check(struct options *o, const char *where, const char *ports,
                       const char *announce, uint32_t ranks)
{
    struct port_range range;
    if (ranks > 1 && has_port(announce))
        return option_fail(o,
                           "%s: %u ranks cannot all be reached at %s; announce "
                           "HOST alone, and let routers pass their ports",
                           where, ranks, announce);
    if (!ports || !port_range_parse(ports, &range)) return true;
    uint32_t count = (uint32_t)(range.last - range.first) + 1;
    return ranks <= count ||
           option_fail(o, "%s: %u ranks need as many ports, and %s has %u",
                       where, ranks, ports, count);
}

static bool ways_settle(struct options *o)
{
    uint32_t all = o->rank_count + o->spares;
    if (has_port(o->announce) &&
        !ways_check(o, "--announce", NULL, o->announce, all))
        return false;
    if (o->hosts.count <= 1 &&
        !ways_check(o, "--peer-ports", o->peer_ports, NULL, all))
        return false;
    for (size_t i = 0; i < o->hosts.count; i++) {
        const struct host_entry *h = &o->hosts.entries[i];
        uint32_t ranks = o->per_host ? o->per_host : h->slots;
        if (ranks > all) ranks = all;
        if (!ways_check(o, h->name, h->ports, h->announce, ranks)) return false;
    }
    return true;
}

static bool ranks_settle(struct options *o)
{
    uint32_t slots = hosts_slots(&o->hosts);
    if (o->per_host && o->hosts.count)
        slots = o->per_host * (uint32_t)o->hosts.count;
    for (size_t i = 0; i < o->app_count; i++) {
        struct app *app = &o->apps[i];
        if (app->ranks == 0)
            app->ranks = o->app_count == 1 && slots > 0 ? slots : 1;
        o->rank_count += app->ranks;
    }
    if (o->ranked && o->rank_count + o->spares > o->hosts.count)
        return option_fail(o, "%u ranks, and the rank file has %zu",
                           o->rank_count + o->spares, o->hosts.count);
    if (o->rank_count + o->spares > RANKS_MAX) {
        return option_fail(o, "%u ranks: at most %d", o->rank_count + o->spares,
                           RANKS_MAX);
    }
    if (o->ranks_max && o->rank_count > o->ranks_max) {
        return option_fail(o,
                           "%u ranks are more than --elastic's maximum of %u",
                           o->rank_count, o->ranks_max);
    }
    if (o->rank_count < o->ranks_min) {
        return option_fail(o,
                           "%u ranks are fewer than --elastic's minimum of %u",
                           o->rank_count, o->ranks_min);
    }
    if (o->stdin_to >= (int64_t)o->rank_count)
        return option_fail(o, "-s %lld: there are %u ranks",
                           (long long)o->stdin_to, o->rank_count);
    return true;
}

static struct app *app_begin(struct parser *p)
{
    struct options *o = p->options;
    o->apps = memory_grow(o->apps, o->app_count + 1, sizeof *o->apps);
    p->app = &o->apps[o->app_count++];
    *p->app = (struct app){0};
    return p->app;
}

/* Cuts the next word out of the line at *text, like a shell: quotes, and \ for
 * the next character. NULL at the end of the line or at a comment. */
static char *word_cut(char **text)
{
    char *in = *text + strspn(*text, " \t\r"), *word = in, *out = in;
    char quote = '\0';
    if (*in == '\0' || *in == '#') return NULL;
    for (; *in && (quote || !strchr(" \t\r", *in)); in++) {
        if (quote ? *in == quote : *in == '\'' || *in == '"')
            quote = quote ? '\0' : *in;
        else if (*in == '\\' && quote != '\'' && in[1])
            *out++ = *++in;
        else
            *out++ = *in;
    }
    *text = *in ? in + 1 : in;
    *out = '\0';
    return word;
}

/* Every line is one executable with its options; a ':' at its end is allowed,
 * as on the command line. */
static bool config_read(struct parser *p)
{
    struct options *o = p->options;
    char *line = o->config = option_file(p->config);
    if (!line) return option_fail(o, "%s: %s", p->config, strerror(errno));
    o->config_words = memory_get(strlen(line) + 1, sizeof *o->config_words);
    char **words = o->config_words;
    for (bool first = true; line;) {
        char *next = strchr(line, '\n');
        if (next) *next++ = '\0';
        int count = 0, at = 0;
        for (char *word; (word = word_cut(&line));) words[count++] = word;
        while (count > 0 && strcmp(words[count - 1], ":") == 0) count--;
        line = next;
        if (count == 0) continue;
        if (!first) app_begin(p);
        first = false;
        if (!app_read(p, count, words, &at)) return false;
        if (at < count)
            return option_fail(o, "%s: one program on a line", p->config);
        words += count;
    }
    return true;
}

bool options_parse(struct options *options, int argc, char **argv)
{
    *options =
        (struct options){.ranks_min = 1, .listen = {.port = MASTER_PORT}};
    struct parser parser = {.options = options};
    int at = 1;
    do {
        app_begin(&parser);
        if (!app_read(&parser, argc, argv, &at)) return false;
        if (options->mode != MODE_COORDINATOR) return true;
    } while (at++ < argc);
    if (parser.config) {
        if (options->app_count > 1 || parser.app->argc > 0)
            return option_fail(options, "-configfile names the programs: none "
                                        "on the command line");
        if (!config_read(&parser)) return false;
    }
    return options_check(&parser);
}

bool options_complete(struct options *options,
                      const struct options_environment *environment)
{
    struct parser parser = {.options = options, .name = "PCCL_DEADLINE"};
    char detail[MESSAGE_SIZE / 2];
    const char *deadline = environment->deadline;
    if (!options->deadline && deadline && *deadline != '\0' &&
        !option_deadline(&parser, deadline))
        return false;
    if (options->mode != MODE_LAUNCH) return true;
    const char *timeout = environment->timeout;
    parser.name = "MPIEXEC_TIMEOUT";
    if (options->timeout == 0 && timeout && *timeout != '\0' &&
        !option_timeout(&parser, timeout))
        return false;
    struct bind *bind = &options->bind;
    if (!options->bind_given && bind->kind == BIND_NONE) bind->kind = bind->map;
    if (bind->width == 0) bind->width = 1;
    const char *nodes = environment->nodes;
    if (nodes && *nodes && options->hosts.count == 0 && !options->join) {
        if (!hosts_parse_slurm(&options->hosts, nodes, environment->tasks,
                               detail, sizeof detail))
            return option_fail(options, "Slurm's allocation: %s", detail);
        if (options->launcher == LAUNCHER_AUTO && environment->srun)
            options->launcher = LAUNCHER_SLURM;
    } else if (environment->batch && options->hosts.count == 0 &&
               !options->join) {
        const char *source;
        if (!allocation_hosts(&options->hosts, &source, detail, sizeof detail))
            return option_fail(options, "%s: %s", source, detail);
    }
    return ranks_settle(options) && ways_settle(options);
}

void options_free(struct options *options)
{
    size_t count = options->apps ? options->app_count : 0;
    for (size_t i = 0; i < count; i++)
        rank_env_free(options->apps[i].settings.items);
    rank_env_free(options->settings.items);
    hosts_free(&options->hosts);
    free(options->config_words);
    free(options->config);
    free(options->apps);
}
