/* emulator_log.c - writes the events of a run as JSON lines. */
#include "emulator_log.h"

#include <inttypes.h>

static double seconds(wan_ns time)
{
    return (double)time / 1e9;
}

static void print_rate(FILE *log, const char *name, uint64_t rate)
{
    if (rate == UINT64_MAX)
        fprintf(log, ",\"%s\":null", name);
    else
        fprintf(log, ",\"%s\":%" PRIu64, name, rate);
}

static void print_ring(FILE *log, const char *name, const struct ring *ring)
{
    fprintf(log, ",\"%s\":[", name);
    for (uint32_t i = 0; i < ring->count; i++)
        fprintf(log, "%s%u", i ? "," : "", ring->node[i]);
    fputs("]", log);
}

/* Prints text of the file or of programs without characters that end a JSON
 * string. */
static void print_text(FILE *log, const char *text)
{
    fputc('"', log);
    for (; *text; text++) {
        if (*text == '"' || *text == '\\') fputc('\\', log);
        if ((unsigned char)*text >= ' ') fputc(*text, log);
    }
    fputc('"', log);
}

void emulator_log_world(FILE *log, const struct world *w,
                        const struct network *net, uint32_t connections,
                        const struct ring *best)
{
    if (!log) return;
    fputs("{\"world\":", log);
    print_text(log, w->title);
    fprintf(log, ",\"peers\":%u,\"mtu\":%u,\"regions\":[", w->nodes - 1,
            w->mtu);
    for (uint32_t i = 1; i < w->nodes; i++) {
        fprintf(log, "%s\"%s\"", i > 1 ? "," : "",
                w->region_name[w->region_of[i]]);
    }
    fputs("]", log);
    print_rate(log, "best", bound_of(net, best, connections));
    print_ring(log, "best_ring", best);
    fputs("}\n", log);
    fflush(log);
}

void emulator_log_mark(FILE *log, const struct network *net, const char *name,
                       wan_ns now, uint32_t connections,
                       const struct ring *best)
{
    if (!log) return;
    struct ring seen = bound_seen(net);
    uint32_t peers = network_peers(net);
    uint64_t lost = 0;
    uint64_t dropped = 0;
    uint64_t stopped = 0;
    fputs("{\"mark\":", log);
    print_text(log, name);
    fprintf(log, ",\"time\":%.6f", seconds(now));
    print_ring(log, "ring", &seen);
    print_rate(log, "rate", bound_of(net, &seen, connections));
    print_rate(log, "best", bound_of(net, best, connections));
    fputs(",\"bytes\":[", log);
    for (uint32_t a = 1; a <= peers; a++) {
        fputs(a > 1 ? ",[" : "[", log);
        for (uint32_t b = 1; b <= peers; b++) {
            const struct tally *t = network_tally(net, a, b);
            fprintf(log, "%s%" PRIu64, b > 1 ? "," : "", t->delivered);
            lost += t->lost;
            dropped += t->dropped;
            stopped += t->stopped;
        }
        fputs("]", log);
    }
    fprintf(log,
            "],\"lost\":%" PRIu64 ",\"dropped\":%" PRIu64
            ",\"stopped\":%" PRIu64 "}\n",
            lost, dropped, stopped);
    fflush(log);
}

void emulator_log_change(FILE *log, const char *statement, wan_ns now)
{
    if (!log) return;
    fprintf(log, "{\"change\":");
    print_text(log, statement);
    fprintf(log, ",\"time\":%.6f}\n", seconds(now));
    fflush(log);
}

void emulator_log_end(FILE *log, uint32_t node, int status, wan_ns now)
{
    if (!log) return;
    fprintf(log, "{\"peer\":%u,\"status\":%d,\"time\":%.6f}\n", node, status,
            seconds(now));
    fflush(log);
}

void emulator_log_over(FILE *log, wan_ns now, int result, uint64_t packets,
                       double mean_late, wan_ns worst_late)
{
    if (!log) return;
    fprintf(log,
            "{\"over\":%d,\"time\":%.6f,\"packets\":%" PRIu64
            ",\"late_mean\":%.9f,\"late_worst\":%.9f}\n",
            result, seconds(now), packets, mean_late / 1e9,
            seconds(worst_late));
    fflush(log);
}
