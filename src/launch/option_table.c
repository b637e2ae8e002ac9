/* option_table.c - the table of options. Spellings of MPICH and Open MPI stand
 * beside ours. */
#include "option_table.h"

#include "../base/decimal.h"
#include "../base/port_range.h"

#include <errno.h>
#include <stdarg.h>
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
    size_t digits = strspn(text, "0123456789");
    unsigned long value = strtoul(text, NULL, 10);
    if (digits == 0 || text[digits] != '\0' || value == 0) {
        return option_fail(p->options,
                           "%s needs a number of 1 or more, not '%s'", p->name,
                           text);
    }
    if (digits > 9 || value > RANKS_MAX) {
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

static bool apply_restart(struct parser *p, const char *value,
                          const char *unused)
{
    (void)unused;
    struct options *o = p->options;
    size_t digits = strspn(value, "0123456789");
    const char *rest = value + digits;
    unsigned long count = strtoul(value, NULL, 10);
    p->has_app_options = true;
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

static bool apply_ranks(struct parser *p, const char *value, const char *unused)
{
    (void)unused;
    p->has_ranks = true;
    return option_count(p, value, &p->app->ranks);
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

bool option_deadline(struct parser *p, const char *value, const char *unused)
{
    (void)unused;
    double seconds;
    if (!seconds_parse(p, value, &seconds)) return false;
    p->options->deadline = value;
    p->options->deadline_ns = (pccl_ns)(seconds * (double)PCCL_S);
    return true;
}

bool option_timeout(struct parser *p, const char *value, const char *unused)
{
    (void)unused;
    p->has_app_options = true;
    return seconds_parse(p, value, &p->options->timeout);
}

static bool apply_quorum(struct parser *p, const char *value,
                         const char *unused)
{
    (void)unused;
    return option_count(p, value, &p->options->quorum);
}

static bool apply_peer_ports(struct parser *p, const char *value,
                             const char *unused)
{
    (void)unused;
    p->has_app_options = true;
    p->options->peer_ports = value;
    return port_range_is_text(value) ||
           option_fail(p->options,
                       "%s %s: a range of ports like 49148-49159 is wanted",
                       p->name, value);
}

static bool apply_announce(struct parser *p, const char *value,
                           const char *unused)
{
    (void)unused;
    p->has_app_options = true;
    p->options->announce = value;
    return address_is_host(value) ||
           option_fail(p->options, "%s %s: HOST or HOST:PORT is wanted",
                       p->name, value);
}

static bool apply_min_ranks(struct parser *p, const char *value,
                            const char *unused)
{
    (void)unused;
    return option_count(p, value, &p->options->minimum);
}

static bool apply_elastic(struct parser *p, const char *value,
                          const char *unused)
{
    (void)unused;
    struct options *o = p->options;
    p->has_app_options = true;
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

/* Hydra's option that lets survivors of a fault-tolerant program continue. */
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
    p->options->label = "[%r] ";
    return true;
}

static bool apply_label_pattern(struct parser *p, const char *value,
                                const char *unused)
{
    (void)unused;
    p->has_app_options = true;
    p->options->label = value;
    return true;
}

static bool apply_merge(struct parser *p, const char *value, const char *second)
{
    (void)value;
    (void)second;
    p->has_app_options = true;
    return p->options->merge = true;
}

static bool apply_universe(struct parser *p, const char *value,
                           const char *unused)
{
    (void)unused;
    uint32_t count;
    p->has_app_options = true;
    p->options->universe = NULL;
    if (strcmp(value, "SYSTEM") == 0 || strcmp(value, "INFINITE") == 0)
        return true;
    if (!option_count(p, value, &count)) return false;
    p->options->universe = value;
    return true;
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

static bool apply_stdin(struct parser *p, const char *value, const char *unused)
{
    (void)unused;
    uint32_t rank = 0;
    p->has_app_options = true;
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

static bool apply_config(struct parser *p, const char *value,
                         const char *unused)
{
    (void)unused;
    if (p->config)
        return option_fail(p->options, "%s: one file is enough", p->name);
    p->has_app_options = true;
    p->config = value;
    return true;
}

static bool apply_spares(struct parser *p, const char *value,
                         const char *unused)
{
    (void)unused;
    return option_count(p, value, &p->options->spares) &&
           apply_elastic(p, NULL, NULL);
}

static bool apply_out_pattern(struct parser *p, const char *value,
                              const char *unused)
{
    (void)unused;
    p->has_app_options = true;
    p->options->out_pattern = value;
    return true;
}

static bool apply_err_pattern(struct parser *p, const char *value,
                              const char *unused)
{
    (void)unused;
    p->has_app_options = true;
    p->options->err_pattern = value;
    return true;
}

static bool apply_out_folder(struct parser *p, const char *value,
                             const char *unused)
{
    (void)unused;
    p->has_app_options = true;
    p->options->out_folder = value;
    return *value != '\0' ||
           option_fail(p->options, "%s needs a folder", p->name);
}

static bool apply_agent(struct parser *p, const char *value, const char *second)
{
    (void)value;
    (void)second;
    p->options->mode = MODE_AGENT;
    return true;
}

static bool apply_until_done(struct parser *p, const char *value,
                             const char *second)
{
    (void)value;
    (void)second;
    return p->options->until_done = true;
}

/* Options of other launchers without an equivalent: an error is better than
 * ignoring them. */
static bool apply_unsupported(struct parser *p, const char *value,
                              const char *second)
{
    (void)value;
    (void)second;
    return option_fail(p->options, "%s of other launchers is not supported",
                       p->name);
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
    {"c", VALUE_ONE, apply_ranks},
    {"env", VALUE_TWO, option_env},
    {"envall", VALUE_NONE, option_env_all},
    {"envnone", VALUE_NONE, option_env_none},
    {"envlist", VALUE_ONE, option_env_list},
    {"genv", VALUE_TWO, option_genv},
    {"genvall", VALUE_NONE, option_genv_all},
    {"genvnone", VALUE_NONE, option_genv_none},
    {"genvlist", VALUE_ONE, option_genv_list},
    {"x", VALUE_ONE, option_export},
    {"wdir", VALUE_ONE, apply_wdir},
    {"wd", VALUE_ONE, apply_wdir},
    {"path", VALUE_ONE, apply_path},
    {"configfile", VALUE_ONE, apply_config},
    {"app", VALUE_ONE, apply_config},
    {"s", VALUE_ONE, apply_stdin},
    {"stdin", VALUE_ONE, apply_stdin},
    {"listen", VALUE_ONE, option_listen},
    {"join", VALUE_ONE, option_join},
    {"masters", VALUE_ONE, option_join},
    {"status", VALUE_ONE, option_status},
    {"status-http", VALUE_ONE, option_http},
    {"journal", VALUE_ONE, option_journal},
    {"master-grace", VALUE_ONE, option_grace},
    {"json", VALUE_NONE, option_json},
    {"token-file", VALUE_ONE, option_token_file},
    {"make-token", VALUE_ONE, option_make_token},
    {"make-issuer", VALUE_ONE, option_make_issuer},
    {"issuer", VALUE_ONE, option_issuer},
    {"issue", VALUE_ONE, option_issue},
    {"group", VALUE_ONE, option_group},
    {"rights", VALUE_ONE, option_rights},
    {"expires", VALUE_ONE, option_expires},
    {"revoked", VALUE_ONE, option_revoked},
    {"hook", VALUE_ONE, option_hook},
    {"insecure", VALUE_NONE, option_insecure},
    {"relay", VALUE_NONE, option_relay},
    {"deadline", VALUE_ONE, option_deadline},
    {"timeout", VALUE_ONE, option_timeout},
    {"quorum", VALUE_ONE, apply_quorum},
    {"min-ranks", VALUE_ONE, apply_min_ranks},
    {"peer-ports", VALUE_ONE, apply_peer_ports},
    {"announce", VALUE_ONE, apply_announce},
    {"elastic", VALUE_RANGE, apply_elastic},
    {"disable-auto-cleanup", VALUE_NONE, apply_no_cleanup},
    {"enable-recovery", VALUE_NONE, apply_no_cleanup},
    {"respawn", VALUE_NONE, apply_respawn},
    {"spares", VALUE_ONE, apply_spares},
    {"restart", VALUE_ONE, apply_restart},
    {"max-restarts", VALUE_ONE, apply_restart},
    {"l", VALUE_NONE, apply_label},
    {"label", VALUE_NONE, apply_label},
    {"prepend-rank", VALUE_NONE, apply_label},
    {"tag-output", VALUE_NONE, apply_label},
    {"prepend-pattern", VALUE_ONE, apply_label_pattern},
    {"merge-stderr-to-stdout", VALUE_NONE, apply_merge},
    {"output-filename", VALUE_ONE, apply_out_folder},
    {"outfile-pattern", VALUE_ONE, apply_out_pattern},
    {"errfile-pattern", VALUE_ONE, apply_err_pattern},
    {"log-file", VALUE_ONE, option_log_file},
    {"log-json", VALUE_NONE, option_log_json},
    {"v", VALUE_NONE, apply_verbose},
    {"verbose", VALUE_NONE, apply_verbose},
    {"h", VALUE_NONE, apply_help},
    {"help", VALUE_NONE, apply_help},
    {"V", VALUE_NONE, apply_version},
    {"version", VALUE_NONE, apply_version},
    {"host", VALUE_ONE, option_hosts},
    {"hosts", VALUE_ONE, option_hosts},
    {"H", VALUE_ONE, option_hosts},
    {"f", VALUE_ONE, option_host_file},
    {"hostfile", VALUE_ONE, option_host_file},
    {"machinefile", VALUE_ONE, option_host_file},
    {"launcher", VALUE_ONE, option_launcher},
    {"launcher-exec", VALUE_ONE, option_launcher_exec},
    {"launcher-agent", VALUE_ONE, option_agent},
    {"launch-agent", VALUE_ONE, option_agent},
    {"prefix", VALUE_ONE, option_prefix},
    {"iface", VALUE_ONE, option_interface},
    {"mca", VALUE_TWO, option_mca},
    {"gmca", VALUE_TWO, option_mca},
    {"pmca", VALUE_TWO, option_mca},
    {"prtemca", VALUE_TWO, option_mca},
    {"rankfile", VALUE_ONE, option_rank_file},
    {"rf", VALUE_ONE, option_rank_file},
    {"usize", VALUE_ONE, apply_universe},
    {"info", VALUE_NONE, apply_version},
    {"ppn", VALUE_ONE, option_per_host},
    {"perhost", VALUE_ONE, option_per_host},
    {"npernode", VALUE_ONE, option_per_host},
    {"N", VALUE_ONE, option_per_host},
    {"pernode", VALUE_NONE, option_one_per_host},
    {"bynode", VALUE_NONE, option_one_per_host},
    {"rr", VALUE_NONE, option_one_per_host},
    {"map-by", VALUE_ONE, option_map},
    {"bind-to", VALUE_ONE, option_bind},
    {"binding", VALUE_ONE, option_bind},
    {"bind-to-core", VALUE_NONE, option_bind_core},
    {"bind-to-socket", VALUE_NONE, option_bind_socket},
    {"report-bindings", VALUE_NONE, option_report_bindings},
    {"print-all-exitcodes", VALUE_NONE, option_print_statuses},
    {"timestamp-output", VALUE_NONE, option_timestamps},
    {"debug", VALUE_NONE, option_debug},
    {"detach", VALUE_NONE, option_detach},
    {"attach", VALUE_NONE, option_attach},
    {"state", VALUE_ONE, option_state},
    {"drain", VALUE_ONE, option_drain},
    {"pid", VALUE_ONE, option_pid},
    {"agent", VALUE_NONE, apply_agent},
    {"until-done", VALUE_NONE, apply_until_done},
    /* without effect */
    {"allow-run-as-root", VALUE_NONE, apply_nothing},
    {"am", VALUE_ONE, apply_nothing},
    {"bind-to-none", VALUE_NONE, apply_nothing},
    {"byslot", VALUE_NONE, apply_nothing},
    {"cpus-per-proc", VALUE_ONE, apply_nothing},
    {"cpus-per-rank", VALUE_ONE, apply_nothing},
    {"demux", VALUE_ONE, apply_nothing},
    {"disable-hostname-propagation", VALUE_NONE, apply_nothing},
    {"display-allocation", VALUE_NONE, apply_nothing},
    {"display-map", VALUE_NONE, apply_nothing},
    {"hetero-nodes", VALUE_NONE, apply_nothing},
    {"localhost", VALUE_ONE, apply_nothing},
    {"membind", VALUE_ONE, apply_nothing},
    {"nooversubscribe", VALUE_NONE, apply_nothing},
    {"noprefix", VALUE_NONE, apply_nothing},
    {"oversubscribe", VALUE_NONE, apply_nothing},
    {"personality", VALUE_ONE, apply_nothing},
    {"pmi-port", VALUE_NONE, apply_nothing},
    {"q", VALUE_NONE, apply_nothing},
    {"quiet", VALUE_NONE, apply_nothing},
    {"rank-by", VALUE_ONE, apply_nothing},
    {"rmk", VALUE_ONE, apply_nothing},
    {"topolib", VALUE_ONE, apply_nothing},
    {"use-hwthread-cpus", VALUE_NONE, apply_nothing},
    {"display", VALUE_ONE, apply_nothing},
    {"display-comm", VALUE_NONE, apply_nothing},
    {"do-not-resolve", VALUE_NONE, apply_nothing},
    {"tune", VALUE_ONE, apply_nothing},
    /* refused by name */
    {"elect", VALUE_ONE, option_elect},
    {"elect-ttl", VALUE_ONE, option_elect},
    {"elect-auth", VALUE_ONE, option_elect},
    {"cpu-set", VALUE_ONE, apply_unsupported},
    {"do-not-launch", VALUE_NONE, apply_unsupported},
    {"gtool", VALUE_ONE, apply_unsupported},
    {"nolocal", VALUE_NONE, apply_unsupported},
    {"npersocket", VALUE_ONE, apply_unsupported},
    {"preload-binary", VALUE_NONE, apply_unsupported},
    {"output", VALUE_ONE, apply_unsupported},
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
        if (table[i].apply == apply_agent || strlen(table[i].name) < 2)
            continue;
        size_t far = distance(name, length, table[i].name);
        bool begun = length >= 4 && strncmp(table[i].name, name, length) == 0;
        if (begun) far = 1;
        if (far >= best) continue;
        best = far;
        nearest = table[i].name;
    }
    return nearest;
}
