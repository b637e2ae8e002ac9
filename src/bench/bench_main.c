/* bench_main.c - pccl-bench: measures collectives, recovery and joining. See
 * `help` below. */
#include "ettr.h"

#include <libgen.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char help[] =
    "usage: pccl-master -n N pccl-bench [options]    collectives, N ranks\n"
    "       pccl-bench --ranks N [options]           the same, on its own\n"
    "       pccl-bench sync [options]                --op sync\n"
    "       pccl-bench latency [options]             --op latency\n"
    "       pccl-bench recovery [options]            kill to next result\n"
    "       pccl-bench join [options]                connect to first result\n"
    "       pccl-bench churn [options]               faults of all kinds; see\n"
    "                                                churn --help\n"
    "       pccl-bench ettr [options]                steps under faults; see\n"
    "                                                ettr --help\n"
    "       pccl-bench --algorithms                  which algorithm when\n"
    "\n"
    "  --op LIST          allreduce bcast allgather alltoall barrier sync\n"
    "                     latency (allreduce); sync synchronizes shared "
    "state,\n"
    "                     latency times the calls of a training step\n"
    "  --sizes LIST       bytes of the vector, with K M G: 8,64K,16M; for\n"
    "                     allgather and alltoall: of all blocks together\n"
    "  --types LIST       uint8 int8 uint16 int16 uint32 int32 uint64 int64\n"
    "                     float16 bfloat16 float double (float)\n"
    "  --redop NAME       sum prod max min avg (sum)\n"
    "  --quantize TYPE-ALGORITHM   allreduce: u8 i8 u16 i16, minmax zps; the\n"
    "                     results are approximate and not checked\n"
    "  --transport NAME   auto tcp shm: sets PCCL_TRANSPORT\n"
    "  --in-place         allreduce: send buffer = receive buffer\n"
    "  --dirty            inputs are written before each call, as in place\n"
    "  --huge-pages       vectors in huge pages, as allocators of frameworks "
    "give\n"
    "                     them\n"
    "  --concurrent K     operations in flight at once, each of that size (1)\n"
    "  --pool P           connections per neighbour (1); 0: the library's\n"
    "                     choice\n"
    "  --seconds S        time per line (1)\n"
    "  --no-check         do not check the results\n"
    "  --json             one JSON object per line\n"
    "  --ranks N          without pccl-master: processes (2; recovery, join: "
    "3)\n"
    "  --rounds N         recovery, join, sync of a newcomer: repetitions "
    "(20)\n"
    "  --stop             recovery: SIGSTOP instead of SIGKILL\n"
    "\n"
    "Columns are those of nccl-tests and the OSU benchmarks. Times of a call\n"
    "are in microseconds; median and p99 are those of the slowest rank. algbw\n"
    "= bytes / median; busbw = algbw * 2(n-1)/n for allreduce, * (n-1)/n for\n"
    "allgather and alltoall. #wrong counts wrong elements of a result; the "
    "exit\n"
    "status is 1 then.\n";

/* Starts the run that this program was meant to be started in. */
static int under_master(const struct bench_options *o, int argc, char **argv)
{
    char self[4096];
    char folder[4096];
    char master[4200];
    char ranks[16];
    ssize_t size = readlink("/proc/self/exe", self, sizeof self - 1);
    if (size < 0) size = 0;
    self[size] = '\0';
    memcpy(folder, self, sizeof self);
    snprintf(master, sizeof master, "%s/pccl-master", dirname(folder));
    snprintf(ranks, sizeof ranks, "%d", o->ranks);
    char **args = calloc((size_t)argc + 6, sizeof *args);
    if (!args) return 1;
    int n = 0;
    args[n++] = master;
    args[n++] = (char *)(uintptr_t) "-n";
    args[n++] = ranks;
    args[n++] = self;
    for (int i = 1; i < argc; i++) args[n++] = argv[i];
    execv(master, args);
    fputs("pccl-bench: there is no pccl-master beside me to start the ranks: "
          "use pccl-master -n N pccl-bench\n",
          stderr);
    free(args);
    return 2;
}

int main(int argc, char **argv)
{
    if (argc > 1 && strcmp(argv[1], "churn") == 0)
        return bench_churn(argc - 1, argv + 1);
    if (argc > 1 && strcmp(argv[1], "ettr") == 0)
        return bench_ettr(argc - 1, argv + 1);
    struct bench_options o;
    char error[256];
    bool only_help = false;
    char **copy = calloc((size_t)argc + 1, sizeof *copy);
    if (!copy) return 1;
    memcpy(copy, argv, (size_t)argc * sizeof *copy); /* getopt sorts it */
    bool good = bench_parse(&o, argc, copy, &only_help, error, sizeof error);
    free(copy);
    if (!good) {
        fprintf(stderr, "pccl-bench: %s; see --help\n", error);
        return 2;
    }
    if (only_help) {
        fputs(help, stdout);
        return 0;
    }
    if (o.algorithms) return bench_algorithms();
    if (o.transport) setenv("PCCL_TRANSPORT", o.transport, 1);
    if (strcmp(o.mode, "recovery") == 0) return bench_recovery(&o);
    if (strcmp(o.mode, "join") == 0) return bench_join(&o);
    if (!getenv("PCCL_MASTER")) return under_master(&o, argc, argv);
    return bench_collective(&o);
}
