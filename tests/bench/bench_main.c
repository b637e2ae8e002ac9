/* bench_main.c - pccl-bench: how fast collectives, recovery and joining are.
 *
 *   pccl-master -n 2 pccl-bench --sizes 8,64K,16M       time of collectives
 *   pccl-master -n 2 pccl-bench sync --sizes 400K       shared state
 *   pccl-bench recovery --ranks 3 --sizes 16M           kill -9 to next result
 *   pccl-bench join --ranks 2 --sizes 16M               process start to it
 *
 * Columns as nccl-tests has them: algbw = bytes / time, busbw = algbw times
 * 2(n-1)/n for an all-reduce. Every result is checked. */
#include "bench.h"

#include <getopt.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

int64_t bench_now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * INT64_C(1000000000) + t.tv_nsec;
}

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a;
    double y = *(const double *)b;
    return (x > y) - (x < y);
}

double bench_quantile(double *values, int count, double q)
{
    if (count == 0) return 0;
    qsort(values, (size_t)count, sizeof *values, by_value);
    int at = (int)(q * (count - 1) + 0.5);
    return values[at];
}

size_t bench_size(const char **text)
{
    char *end;
    double value = strtod(*text, &end);
    if (end == *text) return 0;
    if (*end == 'K' || *end == 'k') value *= 1024, end++;
    if (*end == 'M' || *end == 'm') value *= 1024 * 1024, end++;
    if (*end == 'G' || *end == 'g') value *= 1024.0 * 1024 * 1024, end++;
    *text = *end == ',' ? end + 1 : end;
    return (size_t)value;
}

pcclComm_t *bench_connect(const char *address, int hint, int pool)
{
    const char *colon = strrchr(address, ':');
    unsigned ip[4] = {127, 0, 0, 1};
    if (!colon ||
        sscanf(address, "%u.%u.%u.%u", &ip[0], &ip[1], &ip[2], &ip[3]) != 4) {
        fprintf(stderr, "pccl-bench: PCCL_MASTER=%s is not IPv4:PORT\n",
                address);
        return NULL;
    }
    pcclCommCreateParams_t params = {.p2p_connection_pool_size =
                                         (uint32_t)pool};
    params.master_address.inet.protocol = inetIPv4;
    for (int i = 0; i < 4; i++)
        params.master_address.inet.ipv4.data[i] = (uint8_t)ip[i];
    params.master_address.port = (uint16_t)strtoul(colon + 1, NULL, 10);
    pcclComm_t *comm = NULL;
    pcclCommOptions_t options = {.size = sizeof options, .rank_hint = hint};
    pcclResult_t rc = pcclInit();
    if (rc == pcclSuccess) rc = pcclCreateCommunicator(&params, &comm);
    if (rc == pcclSuccess) rc = pcclSetOptions(comm, &options);
    if (rc == pcclSuccess) rc = pcclConnect(comm);
    if (rc == pcclSuccess) return comm;
    char why[256] = "";
    if (comm) (void)pcclGetLastError(comm, why, sizeof why);
    fprintf(stderr, "pccl-bench: %s: %s\n", pcclGetErrorString(rc), why);
    if (comm) (void)pcclDestroyCommunicator(comm);
    return NULL;
}

static const char help[] =
    "usage: pccl-master -n N pccl-bench [options]\n"
    "       pccl-bench recovery|join [options]\n"
    "       pccl-master -n N pccl-bench sync [options]\n"
    "  --op allreduce|broadcast|barrier   collective (allreduce)\n"
    "  --sizes LIST       bytes, with K M G: 8,64K,16M\n"
    "  --in-place         send buffer = receive buffer\n"
    "  --concurrent K     operations in flight at once, each of that size (1)\n"
    "  --pool P           TCP connections per neighbour (1)\n"
    "  --seconds S        time per size, at most (1)\n"
    "  --json             one JSON object per line\n"
    "  --ranks N          recovery, join: processes (3)\n"
    "  --rounds N         recovery, join: repetitions (20)\n"
    "  --stop             recovery: SIGSTOP instead of SIGKILL\n";

int main(int argc, char **argv)
{
    struct bench_options o = {.mode = "collective",
                              .op = "allreduce",
                              .sizes = "8,1K,64K,1M,16M",
                              .ranks = 3,
                              .rounds = 20,
                              .pool = 1,
                              .concurrent = 1,
                              .signal = SIGKILL,
                              .seconds = 1};
    if (argc > 1 && argv[1][0] != '-') {
        o.mode = argv[1];
        argc--;
        argv++;
    }
    static const struct option options[] = {
        {"op", 1, NULL, 'o'},       {"sizes", 1, NULL, 's'},
        {"in-place", 0, NULL, 'i'}, {"concurrent", 1, NULL, 'c'},
        {"pool", 1, NULL, 'p'},     {"seconds", 1, NULL, 't'},
        {"json", 0, NULL, 'j'},     {"ranks", 1, NULL, 'n'},
        {"rounds", 1, NULL, 'r'},   {"stop", 0, NULL, 'S'},
        {"help", 0, NULL, 'h'},     {NULL, 0, NULL, 0}};
    int c;
    while ((c = getopt_long(argc, argv, "", options, NULL)) != -1) {
        switch (c) {
        case 'o':
            o.op = optarg;
            break;
        case 's':
            o.sizes = optarg;
            break;
        case 'i':
            o.in_place = 1;
            break;
        case 'c':
            o.concurrent = (int)strtol(optarg, NULL, 10);
            break;
        case 'p':
            o.pool = (int)strtol(optarg, NULL, 10);
            break;
        case 't':
            o.seconds = strtod(optarg, NULL);
            break;
        case 'j':
            o.json = 1;
            break;
        case 'n':
            o.ranks = (int)strtol(optarg, NULL, 10);
            break;
        case 'r':
            o.rounds = (int)strtol(optarg, NULL, 10);
            break;
        case 'S':
            o.signal = SIGSTOP;
            break;
        case 'h':
            fputs(help, stdout);
            return 0;
        default:
            fputs(help, stderr);
            return 2;
        }
    }
    bool bad = o.concurrent < 1 || o.concurrent > 256 || o.pool < 1 ||
               o.ranks < 2 || o.ranks > 64 || o.rounds < 1 || o.rounds > 1000;
    if (bad) {
        fputs("pccl-bench: a number is out of range\n", stderr);
        return 2;
    }
    if (strcmp(o.mode, "collective") == 0) return bench_collective(&o);
    if (strcmp(o.mode, "recovery") == 0) return bench_recovery(&o);
    if (strcmp(o.mode, "sync") == 0) return bench_sync(&o);
    if (strcmp(o.mode, "join") == 0) return bench_join(&o);
    fprintf(stderr, "pccl-bench: unknown mode %s\n", o.mode);
    return 2;
}
