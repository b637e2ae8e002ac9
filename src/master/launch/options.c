/* options.c - see options.h. One table; mpiexec's spellings of MPICH and Open
 * MPI are accepted with one or two dashes. */
#include "options.h"

#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

struct parser {
    struct options *options;
    struct app *app;      /* the one whose options are read */
    const char *name;     /* the option as the user typed it */
    bool has_ranks;       /* -n was given for some app */
    bool has_app_options; /* something that only makes sense with a program */
};

enum value_kind { VALUE_NONE, VALUE_OPTIONAL, VALUE_ONE, VALUE_TWO };

struct option_entry {
    const char *name;
    enum value_kind kind;
    bool (*apply)(struct parser *p, const char *value, const char *second);
};

__attribute__((format(printf, 2, 3))) static bool fail(struct options *options,
                                                       const char *format, ...)
{
    va_list args;
    va_start(args, format);
    vsnprintf(options->error, sizeof options->error, format, args);
    va_end(args);
    return false;
}

static bool count_parse(struct parser *p, const char *text, uint32_t *count)
{
    size_t digits = strspn(text, "0123456789");
    unsigned long value = strtoul(text, NULL, 10);
    if (digits == 0 || text[digits] != '\0' || value == 0) {
        return fail(p->options, "%s needs a number of 1 or more, not '%s'",
                    p->name, text);
    }
    if (digits > 9 || value > RANKS_MAX) {
        return fail(p->options, "%s %s: at most %d", p->name, text, RANKS_MAX);
    }
    *count = (uint32_t)value;
    return true;
}

static bool seconds_parse(struct parser *p, const char *text, double *seconds)
{
    char *end;
    *seconds = strtod(text, &end);
    bool digit = *text == '.' || (*text >= '0' && *text <= '9');
    /* a year is enough, and fits into nanoseconds; !(x > 0) catches NaN */
    if (digit && *end == '\0' && *seconds > 0 && *seconds <= 3.2e7) return true;
    return fail(p->options, "%s needs a number of seconds above 0, not '%s'",
                p->name, text);
}

static void setting_add(char ***settings, size_t *count, char *setting)
{
    *settings = memory_grow(*settings, *count + 1, sizeof **settings);
    (*settings)[(*count)++] = setting;
}

static bool name_check(struct parser *p, const char *name)
{
    if (*name != '\0' && !strchr(name, '=')) return true;
    return fail(p->options, "%s: '%s' is no name of a variable", p->name, name);
}

static bool apply_ranks(struct parser *p, const char *value, const char *unused)
{
    (void)unused;
    p->has_ranks = true;
    return count_parse(p, value, &p->app->ranks);
}

static bool apply_env(struct parser *p, const char *name, const char *value)
{
    p->has_app_options = true;
    if (!name_check(p, name)) return false;
    setting_add(&p->app->settings, &p->app->setting_count,
                memory_print("%s=%s", name, value));
    return true;
}

static bool apply_genv(struct parser *p, const char *name, const char *value)
{
    p->has_app_options = true;
    if (!name_check(p, name)) return false;
    setting_add(&p->options->settings, &p->options->setting_count,
                memory_print("%s=%s", name, value));
    return true;
}

/* Open MPI's -x NAME exports a variable; ours are all exported. */
static bool apply_export(struct parser *p, const char *value,
                         const char *unused)
{
    (void)unused;
    p->has_app_options = true;
    if (*value == '\0' || *value == '=') return name_check(p, "");
    if (strchr(value, '=')) {
        setting_add(&p->options->settings, &p->options->setting_count,
                    memory_text(value));
    }
    return true;
}

static bool apply_wdir(struct parser *p, const char *value, const char *unused)
{
    (void)unused;
    p->has_app_options = true;
    p->app->directory = value;
    return true;
}

static bool apply_path(struct parser *p, const char *value, const char *unused)
{
    (void)unused;
    p->has_app_options = true;
    p->app->path = value;
    return true;
}

static bool apply_listen(struct parser *p, const char *value,
                         const char *unused)
{
    (void)unused;
    p->options->has_listen = true;
    if (address_parse(value, MASTER_PORT, &p->options->listen)) return true;
    return fail(p->options,
                "%s: '%s' is no address; write ADDRESS:PORT, "
                "[IPV6]:PORT, ADDRESS or PORT",
                p->name, value);
}

static bool apply_join(struct parser *p, const char *value, const char *unused)
{
    (void)unused;
    p->options->join = true;
    if (address_parse(value, MASTER_PORT, &p->options->master) &&
        *p->options->master.host != '\0' && p->options->master.port != 0) {
        return true;
    }
    return fail(p->options, "%s: '%s' is no address; write HOST:PORT", p->name,
                value);
}

static bool apply_deadline(struct parser *p, const char *value,
                           const char *unused)
{
    (void)unused;
    double seconds;
    if (!seconds_parse(p, value, &seconds)) return false;
    p->options->deadline = value;
    p->options->deadline_ns = (pccl_ns)(seconds * (double)PCCL_S);
    return true;
}

static bool apply_timeout(struct parser *p, const char *value,
                          const char *unused)
{
    (void)unused;
    p->has_app_options = true;
    return seconds_parse(p, value, &p->options->timeout);
}

static bool apply_quorum(struct parser *p, const char *value,
                         const char *unused)
{
    (void)unused;
    return count_parse(p, value, &p->options->quorum);
}

static bool apply_elastic(struct parser *p, const char *value,
                          const char *unused)
{
    (void)unused;
    struct options *o = p->options;
    p->has_app_options = true;
    o->elastic = o->shrink = true;
    if (!value) return true;
    char min[16] = {0};
    size_t length = strcspn(value, ":");
    if (length >= sizeof min) length = sizeof min - 1;
    memcpy(min, value, length);
    if (!count_parse(p, min, &o->ranks_min)) return false;
    if (value[length] == '\0') return true;
    if (!count_parse(p, value + length + 1, &o->ranks_max)) return false;
    if (o->ranks_max >= o->ranks_min) return true;
    return fail(o, "%s=%s: MIN is above MAX", p->name, value);
}

/* Hydra's way to leave the survivors of a fault-tolerant program alone. */
static bool apply_no_cleanup(struct parser *p, const char *value,
                             const char *second)
{
    (void)value;
    (void)second;
    p->has_app_options = true;
    p->options->elastic = true;
    return true;
}

static bool apply_respawn(struct parser *p, const char *value,
                          const char *second)
{
    (void)value;
    (void)second;
    p->options->respawn = true;
    return apply_elastic(p, NULL, NULL);
}

static bool apply_label(struct parser *p, const char *value, const char *second)
{
    (void)value;
    (void)second;
    p->has_app_options = true;
    return p->options->label = true;
}

static bool apply_verbose(struct parser *p, const char *value,
                          const char *second)
{
    (void)value;
    (void)second;
    return p->options->verbose = true;
}

static bool apply_help(struct parser *p, const char *value, const char *second)
{
    (void)value;
    (void)second;
    p->options->mode = MODE_HELP;
    return true;
}

static bool apply_version(struct parser *p, const char *value,
                          const char *second)
{
    (void)value;
    (void)second;
    p->options->mode = MODE_VERSION;
    return true;
}

static bool host_is_local(const char *host)
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

/* host[:slots][,host[:slots]...] */
static bool apply_hosts(struct parser *p, const char *value, const char *unused)
{
    (void)unused;
    p->has_app_options = true;
    while (*value) {
        size_t length = strcspn(value, ",");
        struct address host;
        char text[HOST_SIZE] = {0};
        memcpy(text, value, length < sizeof text ? length : sizeof text - 1);
        if (!address_parse(text, 0, &host) || !host_is_local(host.host)) {
            return fail(p->options,
                        "%s: host '%s' is not this one, and starting ranks on "
                        "other hosts is not built yet; start them there with "
                        "pccl-master --join",
                        p->name, text);
        }
        value += length;
        value += strspn(value, ",");
    }
    return true;
}

static bool apply_host_file(struct parser *p, const char *value,
                            const char *unused)
{
    (void)unused;
    return fail(p->options,
                "%s %s: starting ranks on other hosts is not built yet; start "
                "them there with pccl-master --join",
                p->name, value);
}

static bool apply_launcher(struct parser *p, const char *value,
                           const char *unused)
{
    (void)unused;
    if (strcmp(value, "fork") == 0) return true;
    return fail(p->options, "%s %s: only 'fork' (ranks on this host) is built",
                p->name, value);
}

/* Accepted because scripts have them; nothing here depends on them. */
static bool apply_nothing(struct parser *p, const char *value,
                          const char *second)
{
    (void)p;
    (void)value;
    (void)second;
    return true;
}

static const struct option_entry table[] = {
    {"n", VALUE_ONE, apply_ranks},
    {"np", VALUE_ONE, apply_ranks},
    {"env", VALUE_TWO, apply_env},
    {"genv", VALUE_TWO, apply_genv},
    {"x", VALUE_ONE, apply_export},
    {"wdir", VALUE_ONE, apply_wdir},
    {"wd", VALUE_ONE, apply_wdir},
    {"path", VALUE_ONE, apply_path},
    {"listen", VALUE_ONE, apply_listen},
    {"join", VALUE_ONE, apply_join},
    {"deadline", VALUE_ONE, apply_deadline},
    {"timeout", VALUE_ONE, apply_timeout},
    {"quorum", VALUE_ONE, apply_quorum},
    {"elastic", VALUE_OPTIONAL, apply_elastic},
    {"disable-auto-cleanup", VALUE_NONE, apply_no_cleanup},
    {"respawn", VALUE_NONE, apply_respawn},
    {"l", VALUE_NONE, apply_label},
    {"label", VALUE_NONE, apply_label},
    {"prepend-rank", VALUE_NONE, apply_label},
    {"tag-output", VALUE_NONE, apply_label},
    {"v", VALUE_NONE, apply_verbose},
    {"verbose", VALUE_NONE, apply_verbose},
    {"h", VALUE_NONE, apply_help},
    {"help", VALUE_NONE, apply_help},
    {"V", VALUE_NONE, apply_version},
    {"version", VALUE_NONE, apply_version},
    {"host", VALUE_ONE, apply_hosts},
    {"hosts", VALUE_ONE, apply_hosts},
    {"H", VALUE_ONE, apply_hosts},
    {"f", VALUE_ONE, apply_host_file},
    {"hostfile", VALUE_ONE, apply_host_file},
    {"machinefile", VALUE_ONE, apply_host_file},
    {"launcher", VALUE_ONE, apply_launcher},
    {"ppn", VALUE_ONE, apply_nothing},
    {"perhost", VALUE_ONE, apply_nothing},
    {"bind-to", VALUE_ONE, apply_nothing},
    {"map-by", VALUE_ONE, apply_nothing},
    {"rank-by", VALUE_ONE, apply_nothing},
    {"iface", VALUE_ONE, apply_nothing},
    {"mca", VALUE_TWO, apply_nothing},
    {"genvall", VALUE_NONE, apply_nothing},
    {"envall", VALUE_NONE, apply_nothing},
    {"oversubscribe", VALUE_NONE, apply_nothing},
    {"use-hwthread-cpus", VALUE_NONE, apply_nothing},
    {"allow-run-as-root", VALUE_NONE, apply_nothing},
};

static const struct option_entry *entry_find(const char *name, size_t length)
{
    for (size_t i = 0; i < ARRAY_COUNT(table); i++) {
        if (strlen(table[i].name) == length &&
            strncmp(table[i].name, name, length) == 0) {
            return &table[i];
        }
    }
    return NULL;
}

/* Reads the option at argv[*at] and moves *at behind it and its values. */
static bool option_read(struct parser *p, int argc, char **argv, int *at)
{
    char *typed = argv[*at];
    const char *name = typed + (typed[1] == '-' ? 2 : 1);
    size_t length = strcspn(name, "=");
    const char *value = name[length] == '=' ? name + length + 1 : NULL;
    const struct option_entry *entry = entry_find(name, length);
    if (!entry) {
        return fail(p->options, "unknown option '%.*s'; see pccl-master --help",
                    (int)(name - typed) + (int)length, typed);
    }
    char shown[64];
    snprintf(shown, sizeof shown, "%.*s", (int)(name - typed) + (int)length,
             typed);
    p->name = shown;
    const char *values[2] = {value, NULL};
    int wanted = entry->kind == VALUE_ONE   ? 1
                 : entry->kind == VALUE_TWO ? 2
                                            : 0;
    if (value && (entry->kind == VALUE_NONE || entry->kind == VALUE_TWO))
        return fail(p->options, "%s takes no '=%s'", shown, value);
    (*at)++;
    for (int i = value ? 1 : 0; i < wanted; i++) {
        if (*at >= argc) {
            return fail(p->options, "%s needs %s", shown,
                        wanted == 2 ? "two values" : "a value");
        }
        values[i] = argv[(*at)++];
    }
    bool good = entry->apply(p, values[0], values[1]);
    p->name = NULL;
    return good;
}

/* One executable with its options, up to ':' or the end. */
static bool app_read(struct parser *p, int argc, char **argv, int *at)
{
    struct options *o = p->options;
    while (*at < argc && argv[*at][0] == '-' && argv[*at][1] != '\0') {
        if (strcmp(argv[*at], "--") == 0) {
            (*at)++;
            break;
        }
        if (!option_read(p, argc, argv, at)) return false;
        if (o->mode == MODE_HELP || o->mode == MODE_VERSION) return true;
    }
    p->app->argv = argv + *at;
    while (*at < argc && strcmp(argv[*at], ":") != 0) {
        p->app->argc++;
        (*at)++;
    }
    return true;
}

/* What only the whole command line can tell. */
static bool options_check(struct parser *p)
{
    struct options *o = p->options;
    bool alone = o->app_count == 1 && o->apps[0].argc == 0;
    if (alone && !o->join && !p->has_ranks && !p->has_app_options) {
        o->mode = MODE_COORDINATOR;
        o->app_count = 0;
        return true;
    }
    o->mode = MODE_LAUNCH;
    for (size_t i = 0; i < o->app_count; i++) {
        if (o->apps[i].argc == 0)
            return fail(o, "no program to run; see pccl-master --help");
        o->rank_count += o->apps[i].ranks;
    }
    if (o->rank_count > RANKS_MAX)
        return fail(o, "%u ranks: at most %d", o->rank_count, RANKS_MAX);
    if (o->join && (o->has_listen || o->quorum)) {
        return fail(o, "--join takes part in a job that has its coordinator: "
                       "no --listen, no --quorum");
    }
    if (o->join) o->elastic = o->shrink = true;
    if (o->ranks_max && o->rank_count > o->ranks_max) {
        return fail(o, "%u ranks are more than --elastic's maximum of %u",
                    o->rank_count, o->ranks_max);
    }
    if (o->rank_count < o->ranks_min) {
        return fail(o, "%u ranks are fewer than --elastic's minimum of %u",
                    o->rank_count, o->ranks_min);
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
        options->apps = memory_grow(options->apps, options->app_count + 1,
                                    sizeof *options->apps);
        parser.app = &options->apps[options->app_count++];
        *parser.app = (struct app){.ranks = 1};
        if (!app_read(&parser, argc, argv, &at)) return false;
        if (options->mode != MODE_COORDINATOR) return true;
    } while (at++ < argc);
    return options_check(&parser);
}

bool options_default_deadline(struct options *options, const char *text)
{
    struct parser parser = {.options = options, .name = "PCCL_DEADLINE"};
    if (options->deadline || !text || *text == '\0') return true;
    return apply_deadline(&parser, text, NULL);
}

static void settings_free(char **settings, size_t count)
{
    for (size_t i = 0; i < count; i++) free(settings[i]);
    free(settings);
}

void options_free(struct options *options)
{
    size_t count = options->apps ? options->app_count : 0;
    for (size_t i = 0; i < count; i++)
        settings_free(options->apps[i].settings,
                      options->apps[i].setting_count);
    settings_free(options->settings, options->setting_count);
    free(options->apps);
}
