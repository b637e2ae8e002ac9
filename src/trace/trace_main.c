/* trace_main.c - pccl-trace: merges the traces of the ranks of a run into one
 * file, on one clock. */
#include "trace_clock.h"
#include "trace_file.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

static const char help[] =
    "usage: pccl-trace [-o OUT] FILE...\n"
    "\n"
    "Merges the traces that the ranks of a run have written (PCCL_TRACE=FILE)\n"
    "into one, for Perfetto (https://ui.perfetto.dev) or chrome://tracing, "
    "and\n"
    "moves the times of all hosts to one clock.\n"
    "\n"
    "  -o OUT           write to this file (default: standard output)\n"
    "  -q, --quiet      do not report files and clocks on standard error\n"
    "  -h, --help   -V, --version\n";

struct merge {
    struct trace_file *files;
    int count;
    struct clocks *clocks;
    const char *out_path;
    FILE *out;
    bool quiet;
    int64_t origin; /* of the times that are written */
    uint64_t written;
};

static bool fail(const char *path, const char *why)
{
    fprintf(stderr, "pccl-trace: %s: %s\n", path, why);
    return false;
}

/* ---------------------------------------------------------------- first pass
 */

/* A member has the result of such an operation only when all have called it. */
static bool needs_all(const char *line)
{
    static const char *const kinds[] = {"all-reduce", "barrier", "all-gather",
                                        "reduce-scatter"};
    const char *kind, *result;
    size_t size = trace_value(line, "kind", &kind);
    if (trace_value(line, "result", &result) != strlen("success") ||
        strncmp(result, "success", strlen("success")) != 0)
        return false;
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        if (size == strlen(kinds[i]) && strncmp(kind, kinds[i], size) == 0)
            return true;
    return false;
}

static bool tell_clock(struct merge *m, const struct trace_file *f,
                       const struct trace_entry *entry)
{
    const char *name, *began;
    size_t size = trace_value(entry->rest, "op", &name);
    if (!f->known || size == 0 || !needs_all(entry->rest)) return true;
    int64_t from = entry->at, to = entry->at;
    if (entry->phase == 'X' && trace_value(entry->rest, "dur", &began) > 0)
        to += trace_time(began);
    else if (trace_value(entry->rest, "began", &began) > 0)
        from = trace_time(began);
    else
        return true;
    return clocks_tell(m->clocks, f->clock, name, size, from, to) ||
           fail(f->path, "out of memory");
}

static bool read_file(struct merge *m, struct trace_file *f, const char *path)
{
    struct trace_entry entry;
    if (!trace_file_open(f, path)) return fail(path, strerror(errno));
    f->clock = -1;
    while (trace_file_next(f, &entry)) {
        if (f->known && f->clock < 0)
            f->clock = clocks_add(m->clocks, f->clock_name, f->wall);
        if (f->known && f->clock < 0)
            return fail(path, "out of memory, or of numbers for clocks");
        if (entry.phase != 'M' && !tell_clock(m, f, &entry)) return false;
    }
    if (ferror(f->in)) return fail(path, strerror(errno));
    return f->known || fail(path, "no rank has written this");
}

/* That of the lowest rank. */
static int base_clock(const struct merge *m)
{
    const struct trace_file *lowest = &m->files[0];
    for (int i = 1; i < m->count; i++) {
        const struct trace_file *f = &m->files[i];
        if (f->rank >= 0 && (lowest->rank < 0 || f->rank < lowest->rank))
            lowest = f;
    }
    return lowest->clock;
}

static int64_t time_of_first(const struct merge *m)
{
    int64_t first = INT64_MAX;
    for (int i = 0; i < m->count; i++) {
        const struct trace_file *f = &m->files[i];
        if (f->first > f->last) continue;
        int64_t at = clocks_move(m->clocks, f->clock, f->first);
        if (at < first) first = at;
    }
    return first == INT64_MAX ? 0 : first;
}

/* --------------------------------------------------------------- second pass
 */

static void write_time(const struct merge *m, const struct trace_file *f,
                       const char *key, int64_t at)
{
    int64_t moved = clocks_move(m->clocks, f->clock, at) - m->origin;
    if (moved < 0) moved = 0;
    fprintf(m->out, "%s%" PRId64 ".%03d", key, moved / 1000,
            (int)(moved % 1000));
}

/* What is copied, but for a time in it. */
static void write_rest(const struct merge *m, const struct trace_file *f,
                       const char *rest)
{
    const char *began;
    size_t size = trace_value(rest, "began", &began);
    if (size == 0) {
        fputs(rest, m->out);
        return;
    }
    fwrite(rest, 1, (size_t)(began - rest), m->out);
    write_time(m, f, "", trace_time(began));
    fputs(began + size, m->out);
}

static void write_comma(struct merge *m)
{
    if (m->written++ > 0) fputs(",\n", m->out);
}

/* Processes of several hosts may have the same number, so files have others. */
static void write_file(struct merge *m, int number)
{
    struct trace_file *f = &m->files[number];
    struct trace_entry entry;
    trace_file_rewind(f);
    while (trace_file_next(f, &entry)) {
        write_comma(m);
        if (entry.phase == 'M')
            fputs("{\"ts\":0", m->out);
        else
            write_time(m, f, "{\"ts\":", entry.at);
        fprintf(m->out, ",\"pid\":%d", number + 1);
        write_rest(m, f, entry.rest);
    }
    if (f->is_last || f->first > f->last) return;
    write_comma(m);
    write_time(m, f, "{\"ts\":", f->last);
    fprintf(m->out,
            ",\"pid\":%d,\"tid\":0,\"ph\":\"i\",\"cat\":\"view\",\"name\":"
            "\"the trace ends here\",\"s\":\"p\",\"args\":{}}",
            number + 1);
}

static bool write_all(struct merge *m)
{
    const char *path = m->out_path ? m->out_path : "standard output";
    m->out = m->out_path ? fopen(m->out_path, "we") : stdout;
    if (!m->out) return fail(path, strerror(errno));
    fputs("{\"displayTimeUnit\":\"ns\",\"traceEvents\":[\n", m->out);
    for (int i = 0; i < m->count; i++) write_file(m, i);
    fputs("\n]}\n", m->out);
    bool bad = ferror(m->out) != 0;
    if ((m->out_path ? fclose(m->out) : fflush(m->out)) != 0) bad = true;
    return !bad || fail(path, strerror(errno));
}

/* -------------------------------------------------------------------- report
 */

static void report_clock(const struct merge *m, const struct trace_file *f)
{
    struct clock_report r = clocks_report(m->clocks, f->clock);
    if (r.operations > 0)
        fprintf(stderr,
                "pccl-trace: host %s: moved by %.3f ms, within %.3f ms, by "
                "%" PRIu64 " operations\n",
                f->host, (double)r.moved / 1e6, (double)r.within / 1e6,
                r.operations);
    else
        fprintf(stderr,
                "pccl-trace: host %s: moved by %.3f ms, by the wall clocks: no "
                "operation in common\n",
                f->host, (double)r.moved / 1e6);
}

static void report(const struct merge *m, int base)
{
    for (int i = 0; i < m->count; i++) {
        const struct trace_file *f = &m->files[i];
        fprintf(stderr, "pccl-trace: %s: rank %d on %s, %" PRIu64 " events%s\n",
                f->path, f->rank, f->host, f->events,
                f->is_last ? ""
                           : "; it ends without an end: the process was "
                             "killed, or runs");
    }
    for (int i = 0; i < m->count; i++) {
        bool first = m->files[i].clock != base;
        for (int k = 0; k < i; k++)
            first = first && m->files[k].clock != m->files[i].clock;
        if (first) report_clock(m, &m->files[i]);
    }
}

static bool merge(struct merge *m, char **paths)
{
    for (int i = 0; i < m->count; i++)
        if (!read_file(m, &m->files[i], paths[i])) return false;
    int base = base_clock(m);
    if (!clocks_align(m->clocks, base)) return fail("clocks", "out of memory");
    m->origin = time_of_first(m);
    if (!write_all(m)) return false;
    if (!m->quiet) report(m, base);
    return true;
}

/* The number of the first argument that is a file; 0: a bad option. */
static int parse(struct merge *m, int argc, char **argv)
{
    int i = 1;
    for (; i < argc && argv[i][0] == '-'; i++) {
        if (strcmp(argv[i], "-o") == 0 && i + 1 < argc) {
            m->out_path = argv[++i];
        } else if (strcmp(argv[i], "-q") == 0 ||
                   strcmp(argv[i], "--quiet") == 0) {
            m->quiet = true;
        } else if (strcmp(argv[i], "--") == 0) {
            i++;
            break;
        } else {
            return 0;
        }
    }
    return i;
}

int main(int argc, char **argv)
{
    struct merge m = {.count = 0};
    for (int i = 1; i < argc; i++) {
        bool asks =
            strcmp(argv[i], "-h") == 0 || strcmp(argv[i], "--help") == 0;
        bool version =
            strcmp(argv[i], "-V") == 0 || strcmp(argv[i], "--version") == 0;
        if (asks) fputs(help, stdout);
        if (version) puts("pccl-trace (PCCL/MPI) " PCCL_VERSION_STRING);
        if (asks || version) return EXIT_SUCCESS;
    }
    int first = parse(&m, argc, argv);
    if (first == 0 || first == argc) {
        fputs(help, stderr);
        return 2;
    }
    m.count = argc - first;
    m.files = calloc((size_t)m.count, sizeof *m.files);
    m.clocks = clocks_new();
    bool ok = m.files && m.clocks && merge(&m, argv + first);
    for (int i = 0; m.files && i < m.count; i++) trace_file_close(&m.files[i]);
    free(m.files);
    clocks_free(m.clocks);
    return ok ? EXIT_SUCCESS : EXIT_FAILURE;
}
