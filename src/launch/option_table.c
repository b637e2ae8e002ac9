/* option_table.c - the table of options. Spellings of MPICH and Open MPI stand
 * beside ours. */
#include "option_table.h"

#include "../base/decimal.h"
#include "../base/port_range.h"

#include <errno.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

bool option_fail(struct options *options, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    vsnprintf(options->error, sizeof options->error, format, args);
    va_end(args);
    return false;
}

bool option_count(struct parser *p, const char *text, uint32_t *count)
{
    uint64_t value;
    if (text[strspn(text, "0123456789")] != '\0' ||
        !strpbrk(text, "123456789")) {
        return option_fail(p->options,
                           "%s needs a number of 1 or more, not '%s'", p->name,
                           text);
    }
    if (!number_parse(text, RANKS_MAX, &value)) {
        return option_fail(p->options, "%s %s: at most %d", p->name, text,
                           RANKS_MAX);
    }
    *count = (uint32_t)value;
    return true;
}

static bool seconds_parse(struct parser *p, const char *text, double *seconds)
{
    /* a year is enough, and fits into nanoseconds */
    if (decimal_parse(text, seconds) && *seconds > 0 && *seconds <= 3.2e7)
        return true;
    return option_fail(p->options,
                       "%s needs a number of seconds above 0, not '%s'",
                       p->name, text);
}

static bool restart_fail(struct parser *p, const char *value)
{
    return option_fail(p->options,
                       "%s needs N or N,SECONDS with N from 0 to %d, not '%s'",
                       p->name, RESTARTS_MAX, value);
}

static bool apply_restart(struct parser *p, const char *value)
{
    struct options *o = p->options;
    size_t digits = strspn(value, "0123456789");
    const char *rest = value + digits;
    unsigned long count = strtoul(value, NULL, 10);
    if (digits == 0 || digits > 9 || count > RESTARTS_MAX)
        return restart_fail(p, value);
    o->restarts = (uint32_t)count;
    o->has_pause = *rest == ',';
    o->restart_pause = 0;
    if (*rest == '\0') return true;
    if (*rest != ',') return restart_fail(p, value);
    if (rest[1] == '0' && rest[2] == '\0') return true;
    return seconds_parse(p, rest + 1, &o->restart_pause);
}

bool option_deadline(struct parser *p, const char *value)
{
    double seconds;
    if (!seconds_parse(p, value, &seconds)) return false;
    p->options->deadline = value;
    p->options->deadline_ns = (pccl_ns)(seconds * (double)PCCL_S);
    return true;
}

bool option_timeout(struct parser *p, const char *value)
{
    return seconds_parse(p, value, &p->options->timeout);
}

static bool apply_peer_ports(struct parser *p, const char *value)
{
    p->options->peer_ports = value;
    return port_range_is_text(value) ||
           option_fail(p->options,
                       "%s %s: a range of ports like 49148-49159 is wanted",
                       p->name, value);
}

static bool apply_announce(struct parser *p, const char *value)
{
    p->options->announce = value;
    return address_is_host(value) ||
           option_fail(p->options, "%s %s: HOST or HOST:PORT is wanted",
                       p->name, value);
}

static bool apply_elastic(struct parser *p, const char *value)
{
    struct options *o = p->options;
    o->elastic = o->shrink = true;
    if (!value) return true;
    if (strcmp(value, "force") == 0) {
        o->force = true;
        return true;
    }
    char min[16] = {0};
    size_t length = strcspn(value, ":");
    if (length >= sizeof min) length = sizeof min - 1;
    memcpy(min, value, length);
    if (!option_count(p, min, &o->ranks_min)) return false;
    if (value[length] == '\0') return true;
    if (!option_count(p, value + length + 1, &o->ranks_max)) return false;
    if (o->ranks_max >= o->ranks_min) return true;
    return option_fail(o, "%s=%s: MIN is above MAX", p->name, value);
}

static bool apply_universe(struct parser *p, const char *value)
{
    uint32_t count;
    p->options->universe = NULL;
    if (strcmp(value, "SYSTEM") == 0 || strcmp(value, "INFINITE") == 0)
        return true;
    if (!option_count(p, value, &count)) return false;
    p->options->universe = value;
    return true;
}

char *option_file(const char *path)
{
    FILE *file = fopen(path, "re");
    if (!file) return NULL;
    size_t size = 0, space = 4096;
    char *text = memory_get(space, 1);
    for (size_t got;
         (got = fread(text + size, 1, space - size - 1, file)) > 0;) {
        size += got;
        if (size + 1 == space) text = memory_grow(text, space *= 2, 1);
    }
    int error = ferror(file) ? errno : 0;
    fclose(file);
    text[size] = '\0';
    if (error == 0) return text;
    free(text);
    errno = error;
    return NULL;
}

static bool apply_stdin(struct parser *p, const char *value)
{
    uint32_t rank = 0;
    p->options->stdin_to = STDIN_ALL;
    if (strcmp(value, "all") == 0) return true;
    p->options->stdin_to = STDIN_NONE;
    if (strcmp(value, "none") == 0) return true;
    p->options->stdin_to = 0;
    if (strcmp(value, "0") == 0) return true;
    if (!option_count(p, value, &rank))
        return option_fail(p->options, "%s %s: it is a rank, all or none",
                           p->name, value);
    p->options->stdin_to = rank;
    return true;
}

static bool apply_config(struct parser *p, const char *value)
{
    if (p->config)
        return option_fail(p->options, "%s: one file is enough", p->name);
    p->config = value;
    return true;
}

/* Options of other launchers without an equivalent: an error is better than
 * ignoring them. */
static bool apply_unsupported(struct parser *p, const char *value)
{
    (void)value;
    return option_fail(p->options, "%s of other launchers is not supported",
                       p->name);
}

/* Accepted because scripts have them; nothing here depends on them. */
static bool apply_nothing(struct parser *p, const char *value)
{
    (void)p;
    (void)value;
    return true;
}

void *option_member(const struct parser *p)
{
    char *base = p->entry->of_app ? (char *)p->app : (char *)p->options;
    return base + p->entry->member;
}

/* Options that only set a member; the table says which one. */
static bool set_flag(struct parser *p, const char *value)
{
    (void)value;
    *(bool *)option_member(p) = true;
    return true;
}

static bool set_text(struct parser *p, const char *value)
{
    const char *needs = p->entry->needs;
    *(const char **)option_member(p) = value;
    return !needs || value[strspn(value, " ")] != '\0' ||
           option_fail(p->options, "%s needs %s", p->name, needs);
}

static bool set_count(struct parser *p, const char *value)
{
    return option_count(p, value, option_member(p));
}

/* Nothing else counts then. */
static bool set_mode(struct parser *p, const char *value)
{
    (void)value;
    p->options->mode = (enum options_mode)p->entry->member;
    return true;
}

/* Compiles for a member of this type only. */
#define MEMBER(type, of, name)                                                 \
    offsetof(struct of, name) +                                                \
        0 * sizeof(_Generic(((struct of *)NULL)->name, type : 1))
#define OF_JOB(type, member) false, MEMBER(type, options, member)
#define OF_APP(type, member) true, MEMBER(type, app, member)
#define NOWHERE false, 0
#define FLAG(scope, member)                                                    \
    VALUE_NONE, scope, set_flag, OF_JOB(bool, member), NULL, NULL
#define TEXT(scope, member, needs)                                             \
    VALUE_ONE, scope, set_text, OF_JOB(const char *, member), needs, NULL
#define APP_TEXT(member)                                                       \
    VALUE_ONE, JOB, set_text, OF_APP(const char *, member), NULL, NULL
#define COUNT(scope, member)                                                   \
    VALUE_ONE, scope, set_count, OF_JOB(uint32_t, member), NULL, NULL
#define APP_COUNT(member)                                                      \
    VALUE_ONE, RUN, set_count, OF_APP(uint32_t, member), NULL, NULL
#define MODE(mode) VALUE_NONE, RUN, set_mode, false, MODE_##mode, NULL, NULL
#define CALL(kind, scope, function)                                            \
    VALUE_##kind, scope, function, NOWHERE, NULL, NULL
#define PUT(kind, function, where)                                             \
    VALUE_##kind, JOB, function, where(struct env_list, settings), NULL, NULL
/* An option that stands for another one with this value. */
#define FIXED(scope, function, where, value)                                   \
    VALUE_NONE, scope, function, where, NULL, value

enum { RUN = false, JOB = true }; /* whether it needs a program */

static const struct option_entry table[] = {
    {"n", APP_COUNT(ranks)},
    {"np", APP_COUNT(ranks)},
    {"c", APP_COUNT(ranks)},
    {"env", PUT(TWO, option_set, OF_APP)},
    {"envall", FIXED(JOB, set_text, OF_APP(const char *, pass), ENV_ALL)},
    {"envnone", FIXED(JOB, set_text, OF_APP(const char *, pass), "")},
    {"envlist", APP_TEXT(pass)},
    {"genv", PUT(TWO, option_set, OF_JOB)},
    {"genvall", FIXED(JOB, set_text, OF_JOB(const char *, pass), ENV_ALL)},
    {"genvnone", FIXED(JOB, set_text, OF_JOB(const char *, pass), "")},
    {"genvlist", TEXT(JOB, pass, NULL)},
    {"x", PUT(ONE, option_export, OF_JOB)},
    {"wdir", APP_TEXT(directory)},
    {"wd", APP_TEXT(directory)},
    {"path", APP_TEXT(path)},
    {"configfile", CALL(ONE, JOB, apply_config)},
    {"app", CALL(ONE, JOB, apply_config)},
    {"s", CALL(ONE, JOB, apply_stdin)},
    {"stdin", CALL(ONE, JOB, apply_stdin)},
    {"listen", CALL(ONE, RUN, option_listen)},
    {"join", CALL(ONE, RUN, option_join)},
    {"masters", CALL(ONE, RUN, option_join)},
    {"status", CALL(ONE, RUN, option_status)},
    {"status-http", CALL(ONE, RUN, option_http)},
    {"journal", TEXT(RUN, journal, "the name of a file")},
    {"master-grace", COUNT(RUN, grace)},
    {"json", FLAG(RUN, json)},
    {"token-file", TEXT(RUN, token_file, NULL)},
    {"make-token", TEXT(RUN, make_token, NULL)},
    {"make-issuer", TEXT(RUN, make_issuer, NULL)},
    {"issuer", TEXT(RUN, issuer, NULL)},
    {"issue", CALL(ONE, RUN, option_issue)},
    {"group", CALL(ONE, RUN, option_group)},
    {"rights", CALL(ONE, RUN, option_rights)},
    {"expires", CALL(ONE, RUN, option_expires)},
    {"revoked", TEXT(RUN, revoked, NULL)},
    {"hook", TEXT(RUN, hook, "a program")},
    {"insecure", FLAG(RUN, insecure)},
    {"relay", FLAG(RUN, relays)},
    {"deadline", CALL(ONE, RUN, option_deadline)},
    {"timeout", CALL(ONE, JOB, option_timeout)},
    {"quorum", COUNT(RUN, quorum)},
    {"min-ranks", COUNT(RUN, minimum)},
    {"peer-ports", CALL(ONE, JOB, apply_peer_ports)},
    {"announce", CALL(ONE, JOB, apply_announce)},
    {"elastic", CALL(RANGE, JOB, apply_elastic)},
    /* of Hydra: survivors of a fault-tolerant program continue */
    {"disable-auto-cleanup", FLAG(JOB, elastic)},
    {"enable-recovery", FLAG(JOB, elastic)},
    {"respawn", FLAG(JOB, respawn)},
    {"spares", COUNT(JOB, spares)},
    {"restart", CALL(ONE, JOB, apply_restart)},
    {"max-restarts", CALL(ONE, JOB, apply_restart)},
    {"l", FIXED(JOB, set_text, OF_JOB(const char *, label), "[%r] ")},
    {"label", FIXED(JOB, set_text, OF_JOB(const char *, label), "[%r] ")},
    {"prepend-rank",
     FIXED(JOB, set_text, OF_JOB(const char *, label), "[%r] ")},
    {"tag-output", FIXED(JOB, set_text, OF_JOB(const char *, label), "[%r] ")},
    {"prepend-pattern", TEXT(JOB, label, NULL)},
    {"merge-stderr-to-stdout", FLAG(JOB, merge)},
    {"output-filename", TEXT(JOB, out_folder, "a folder")},
    {"outfile-pattern", TEXT(JOB, out_pattern, NULL)},
    {"errfile-pattern", TEXT(JOB, err_pattern, NULL)},
    {"log-file", TEXT(RUN, log_file, "a file")},
    {"log-json", FLAG(RUN, log_json)},
    {"v", FLAG(RUN, verbose)},
    {"verbose", FLAG(RUN, verbose)},
    {"h", MODE(HELP)},
    {"help", MODE(HELP)},
    {"V", MODE(VERSION)},
    {"version", MODE(VERSION)},
    {"host", CALL(ONE, JOB, option_hosts)},
    {"hosts", CALL(ONE, JOB, option_hosts)},
    {"H", CALL(ONE, JOB, option_hosts)},
    {"f", CALL(ONE, JOB, option_host_file)},
    {"hostfile", CALL(ONE, JOB, option_host_file)},
    {"machinefile", CALL(ONE, JOB, option_host_file)},
    {"launcher", CALL(ONE, JOB, option_launcher)},
    {"launcher-exec", TEXT(JOB, launcher_exec, "a command")},
    {"launcher-agent", TEXT(JOB, agent, "a command")},
    {"launch-agent", TEXT(JOB, agent, "a command")},
    {"prefix", CALL(ONE, JOB, option_prefix)},
    {"iface", TEXT(JOB, interface, NULL)},
    {"mca", CALL(TWO, JOB, option_mca)},
    {"gmca", CALL(TWO, JOB, option_mca)},
    {"pmca", CALL(TWO, JOB, option_mca)},
    {"prtemca", CALL(TWO, JOB, option_mca)},
    {"rankfile", CALL(ONE, JOB, option_rank_file)},
    {"rf", CALL(ONE, JOB, option_rank_file)},
    {"usize", CALL(ONE, JOB, apply_universe)},
    {"info", MODE(VERSION)},
    {"ppn", COUNT(JOB, per_host)},
    {"perhost", COUNT(JOB, per_host)},
    {"npernode", COUNT(JOB, per_host)},
    {"N", COUNT(JOB, per_host)},
    {"pernode", FIXED(JOB, set_count, OF_JOB(uint32_t, per_host), "1")},
    {"bynode", FIXED(JOB, set_count, OF_JOB(uint32_t, per_host), "1")},
    {"rr", FIXED(JOB, set_count, OF_JOB(uint32_t, per_host), "1")},
    {"map-by", CALL(ONE, JOB, option_map)},
    {"bind-to", CALL(ONE, JOB, option_bind)},
    {"binding", CALL(ONE, JOB, option_bind)},
    {"bind-to-core", FIXED(JOB, option_bind, NOWHERE, "core")},
    {"bind-to-socket", FIXED(JOB, option_bind, NOWHERE, "socket")},
    {"report-bindings", FLAG(JOB, report_bindings)},
    {"print-all-exitcodes", FLAG(JOB, print_statuses)},
    {"timestamp-output", FLAG(JOB, timestamps)},
    /* a day: what is stopped in a debugger, or by a signal, is waited for */
    {"debug", FIXED(RUN, option_deadline, NOWHERE, "86400")},
    {"detach", FLAG(RUN, detach)},
    {"attach", FLAG(RUN, attach)},
    {"state", CALL(ONE, RUN, option_state)},
    {"drain", TEXT(RUN, drain, "a rank or a host")},
    {"pid", CALL(ONE, RUN, option_pid)},
    {"agent", MODE(AGENT)},
    {"until-done", FLAG(RUN, until_done)},
    /* without effect */
    {"allow-run-as-root", CALL(NONE, RUN, apply_nothing)},
    {"am", CALL(ONE, RUN, apply_nothing)},
    {"bind-to-none", CALL(NONE, RUN, apply_nothing)},
    {"byslot", CALL(NONE, RUN, apply_nothing)},
    {"cpus-per-proc", CALL(ONE, RUN, apply_nothing)},
    {"cpus-per-rank", CALL(ONE, RUN, apply_nothing)},
    {"demux", CALL(ONE, RUN, apply_nothing)},
    {"disable-hostname-propagation", CALL(NONE, RUN, apply_nothing)},
    {"display-allocation", CALL(NONE, RUN, apply_nothing)},
    {"display-map", CALL(NONE, RUN, apply_nothing)},
    {"hetero-nodes", CALL(NONE, RUN, apply_nothing)},
    {"localhost", CALL(ONE, RUN, apply_nothing)},
    {"membind", CALL(ONE, RUN, apply_nothing)},
    {"nooversubscribe", CALL(NONE, RUN, apply_nothing)},
    {"noprefix", CALL(NONE, RUN, apply_nothing)},
    {"oversubscribe", CALL(NONE, RUN, apply_nothing)},
    {"personality", CALL(ONE, RUN, apply_nothing)},
    {"pmi-port", CALL(NONE, RUN, apply_nothing)},
    {"q", CALL(NONE, RUN, apply_nothing)},
    {"quiet", CALL(NONE, RUN, apply_nothing)},
    {"rank-by", CALL(ONE, RUN, apply_nothing)},
    {"rmk", CALL(ONE, RUN, apply_nothing)},
    {"topolib", CALL(ONE, RUN, apply_nothing)},
    {"use-hwthread-cpus", CALL(NONE, RUN, apply_nothing)},
    {"display", CALL(ONE, RUN, apply_nothing)},
    {"display-comm", CALL(NONE, RUN, apply_nothing)},
    {"do-not-resolve", CALL(NONE, RUN, apply_nothing)},
    {"tune", CALL(ONE, RUN, apply_nothing)},
    /* refused by name */
    {"elect", CALL(ONE, RUN, option_elect)},
    {"elect-ttl", CALL(ONE, RUN, option_elect)},
    {"elect-auth", CALL(ONE, RUN, option_elect)},
    {"cpu-set", CALL(ONE, RUN, apply_unsupported)},
    {"do-not-launch", CALL(NONE, RUN, apply_unsupported)},
    {"gtool", CALL(ONE, RUN, apply_unsupported)},
    {"nolocal", CALL(NONE, RUN, apply_unsupported)},
    {"npersocket", CALL(ONE, RUN, apply_unsupported)},
    {"preload-binary", CALL(NONE, RUN, apply_unsupported)},
    {"output", CALL(ONE, RUN, apply_unsupported)},
};

const struct option_entry *option_find(const char *name, size_t length)
{
    for (size_t i = 0; i < ARRAY_COUNT(table); i++) {
        if (strlen(table[i].name) == length &&
            strncmp(table[i].name, name, length) == 0) {
            return &table[i];
        }
    }
    return NULL;
}

enum { NAME_SIZE = 32 }; /* of an option */

/* Edit distance: letters inserted, omitted, changed or swapped. */
static size_t distance(const char *a, size_t size, const char *b)
{
    size_t rows[3][NAME_SIZE + 1];
    size_t width = strlen(b);
    for (size_t i = 0; i <= size; i++) {
        size_t *row = rows[i % 3], *above = rows[(i + 2) % 3];
        const size_t *over = rows[(i + 1) % 3];
        row[0] = i;
        for (size_t j = 1; j <= width; j++) {
            if (i == 0) {
                row[j] = j;
                continue;
            }
            size_t best = above[j - 1] + (a[i - 1] != b[j - 1]);
            if (above[j] + 1 < best) best = above[j] + 1;
            if (row[j - 1] + 1 < best) best = row[j - 1] + 1;
            bool swapped =
                i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1];
            if (swapped && over[j - 2] + 1 < best) best = over[j - 2] + 1;
            row[j] = best;
        }
    }
    return rows[size % 3][width];
}

const char *option_nearest(const char *name, size_t length)
{
    const char *nearest = NULL;
    size_t best =
        length < 4 ? 2 : 3; /* a suggestion must be nearer than this */
    if (length > NAME_SIZE) return NULL;
    for (size_t i = 0; i < ARRAY_COUNT(table); i++) {
        bool internal = strcmp(table[i].name, "agent") == 0;
        if (internal || strlen(table[i].name) < 2) continue;
        size_t far = distance(name, length, table[i].name);
        bool begun = length >= 4 && strncmp(table[i].name, name, length) == 0;
        if (begun) far = 1;
        if (far >= best) continue;
        best = far;
        nearest = table[i].name;
    }
    return nearest;
}
