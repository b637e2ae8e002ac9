/* test_quiet.c - tests that small blocking collectives between ready members of
 * one host make no system call. seccomp traps and counts every call of the
 * rank's thread, which is then made. The member that comes second finds the
 * data of the others and needs no system call, so on each rank some operation
 * of each kind must be quiet, however busy the machine is. */
#include "vector.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>
#include <errno.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <ucontext.h>
#include <unistd.h>

enum { CANNOT = -1, QUIET = 1 };
enum { RANKS = 2, WARM = 20, TURNS = 5000, FLOATS = 256 };

#if defined __x86_64__

static volatile sig_atomic_t calls;

/* The only address from which calls pass the filter. */
extern const char call_made[];
long call_make(long number, const greg_t *args);
__asm__(".text\n.globl call_make\n.type call_make, @function\n"
        "call_make:\n"
        "  mov %rdi, %rax\n  mov %rsi, %rcx\n"
        "  mov 0(%rcx), %rdi\n  mov 8(%rcx), %rsi\n  mov 16(%rcx), %rdx\n"
        "  mov 24(%rcx), %r10\n  mov 32(%rcx), %r8\n  mov 40(%rcx), %r9\n"
        "  syscall\n"
        ".globl call_made\ncall_made:\n  ret\n"
        ".size call_make, .-call_make\n");

static void on_call(int sig, siginfo_t *info, void *context)
{
    (void)sig;
    ucontext_t *u = context;
    greg_t *r = u->uc_mcontext.gregs;
    const greg_t args[] = {r[REG_RDI], r[REG_RSI], r[REG_RDX],
                           r[REG_R10], r[REG_R8],  r[REG_R9]};
    calls++;
    r[REG_RAX] = call_make(info->si_syscall, args);
}

/* From here on, for this thread only. False: not supported here. */
static bool count_calls(void)
{
    const uint64_t at = (uint64_t)(uintptr_t)call_made;
    const uint32_t ip = offsetof(struct seccomp_data, instruction_pointer);
    struct sock_filter code[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_rt_sigreturn, 4, 0),
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, ip),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (uint32_t)at, 0, 3),
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, ip + 4),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (uint32_t)(at >> 32), 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_TRAP)};
    struct sock_fprog program = {sizeof code / sizeof *code, code};
    struct sigaction action = {.sa_sigaction = on_call,
                               .sa_flags = SA_SIGINFO | SA_NODEFER};
    return sigaction(SIGSYS, &action, NULL) == 0 &&
           prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
           prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0;
}

static pcclResult_t run(pcclComm_t *comm, int kind, int turn, float *in,
                        float *out)
{
    const pcclCollective_t op = {
        .size = sizeof op,
        .kind = (pcclCollectiveKind_t)kind,
        .tag = 5 + (uint64_t)kind,
        .sendbuf = in,
        .recvbuf = out,
        .count = kind == pcclKindAllReduce ? FLOATS : FLOATS * sizeof *in,
        .datatype = pcclFloat,
        .op = pcclSum,
        .root = turn % RANKS};
    return pcclCollective(&op, comm, NULL);
}

static void body(struct seat *seat)
{
    static const int kinds[] = {pcclKindAllReduce, pcclKindBroadcast,
                                pcclKindBarrier};
    static float in[FLOATS], out[FLOATS];
    setenv("PCCL_TRANSPORT", "shm", 1);
    pcclComm_t *comm = seat_join(seat);
    seat_gather(seat, comm, RANKS);
    int rank = -1;
    (void)pcclGetView(comm, NULL, &rank, NULL, NULL, 0);
    bool counted = count_calls();
    for (int k = 0; k < 3; k++) {
        int quiet = 0;
        for (int turn = 0; turn < WARM + TURNS; turn++) {
            bool root = kinds[k] == pcclKindBroadcast;
            for (int i = 0; i < FLOATS; i++) in[i] = (float)(turn + i);
            if (root && turn % RANKS == rank) memcpy(out, in, sizeof out);
            sig_atomic_t before = calls;
            pcclResult_t rc = run(comm, kinds[k], turn, in, out);
            quiet += turn >= WARM && calls == before;
            SEAT_EQUAL(seat, rc, pcclSuccess);
            for (int i = 0; i < FLOATS && kinds[k] != pcclKindBarrier; i++)
                SEAT_CHECK(seat, out[i] == (root ? 1 : RANKS) * in[i]);
        }
        seat_report(seat, QUIET, counted ? quiet : CANNOT);
    }
    (void)seat_hear(seat);
    SEAT_EQUAL(seat, pcclDestroyCommunicator(comm), pcclSuccess);
}

static void test_quiet(void **state)
{
    struct cluster *c = *state;
    int64_t quiet[RANKS];
    cluster_start(c, "20");
    for (int r = 0; r < RANKS; r++)
        assert_int_equal(cluster_add(c, body, NULL), r);
    for (int k = 0; k < 3; k++) {
        for (int r = 0; r < RANKS; r++) quiet[r] = cluster_await(c, r, QUIET);
        print_message("kind %d: %d and %d of %d were quiet\n", k, (int)quiet[0],
                      (int)quiet[1], TURNS);
        for (int r = 0; r < RANKS; r++) assert_int_not_equal(quiet[r], 0);
    }
    for (int r = 0; r < RANKS; r++) cluster_order(c, r, 0);
    for (int r = 0; r < RANKS; r++) cluster_finish(c, r);
    if (quiet[0] == CANNOT) skip();
}

#else

static void test_quiet(void **state)
{
    (void)state;
    skip();
}

#endif

static int start(void **state)
{
    *state = calloc(1, sizeof(struct cluster));
    return *state == NULL;
}

static int stop(void **state)
{
    cluster_stop(*state);
    free(*state);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_quiet, start, stop),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
