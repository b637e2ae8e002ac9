/* test_resume.c - processes that train, save, and are all killed: those that
 * come after them load, and end with the bits of a run that nothing
 * interrupted. The master dies with them, or lives on (rule S4). */
#include "../../../include/pccl.h"
#include "../../master_process.h"
#include "../../patience.h"
#include "scratch.h"

#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/wait.h>

#include <cmocka.h>

enum { RANKS = 3, STEPS = 40, COUNT = 5000, KILLED_AT = 27 };

/* What a rank of a run does. */
struct part {
    int last_step; /* kills itself when it has made this one */
    int every;     /* steps from one checkpoint to the next, 0: none */
    bool loads;
    const pcclLoadOptions_t *choice;
};

struct outcome {
    pcclResult_t loaded, synced;
    uint64_t revision; /* that was loaded */
    uint64_t digest;   /* of the weights at the end */
    char error[256];
};

struct shared_numbers {
    int64_t step;
    float weights[COUNT];
};

static uint16_t port;
static int batons[RANKS][2]; /* a pipe for each rank: it may join */
static pid_t master;

static void open_run(void)
{
    master = start_master(&port);
    assert_true(master > 0);
}

static pcclComm_t *create(void)
{
    pcclCommCreateParams_t params = {.master_address = loopback(port)};
    pcclComm_t *comm;
    if (pcclInit() != pcclSuccess ||
        pcclCreateCommunicator(&params, &comm) != pcclSuccess)
        _exit(1);
    return comm;
}

/* One after the other: sums depend on the order of the ranks. */
static void join(pcclComm_t *comm, int rank)
{
    int size = 0;
    char baton = 0;
    if (rank > 0 && read(batons[rank][0], &baton, 1) != 1) _exit(1);
    if (pcclConnect(comm) != pcclSuccess) _exit(1);
    if (rank < RANKS - 1 && write(batons[rank + 1][1], &baton, 1) != 1)
        _exit(1);
    while (pcclGetView(comm, NULL, NULL, &size, NULL, 0) == pcclSuccess &&
           size < RANKS)
        if (pcclUpdateTopology(comm) != pcclSuccess) _exit(1);
}

/* A step whose result depends on all before it, on the rank's own share, and on
 * the order of the additions. */
static void advance(pcclComm_t *comm, int rank, struct shared_numbers *n)
{
    static float gradient[COUNT];
    for (int i = 0; i < COUNT; i++)
        gradient[i] = (n->weights[i] + (float)(rank + 1)) /
                      (float)(3 + (i + (int)n->step * 7 + rank) % 11);
    pcclReduceDescriptor_t d = {.count = COUNT,
                                .op = pcclAvg,
                                .tag = 1,
                                .src_descriptor = {.datatype = pcclFloat}};
    if (pcclAllReduce(gradient, gradient, &d, comm, NULL) != pcclSuccess)
        _exit(1);
    for (int i = 0; i < COUNT; i++)
        n->weights[i] = n->weights[i] * 0.9f + gradient[i] * 0.1f;
    n->step++;
}

static void report(int out, const struct outcome *o)
{
    if (write(out, o, sizeof *o) != sizeof *o) _exit(1);
}

static bool synchronize(pcclComm_t *comm, pcclSharedState_t *state,
                        struct outcome *o)
{
    o->synced = pcclSynchronizeSharedState(
        comm, state, PCCL_SHARED_STATE_SYNC_STRATEGY_ENFORCE_POPULAR, NULL);
    if (o->synced != pcclSuccess)
        (void)pcclGetLastError(comm, o->error, sizeof o->error);
    return o->synced == pcclSuccess;
}

static void train(int rank, const struct part *part, int out)
{
    static struct shared_numbers n;
    struct outcome o = {.loaded = pcclNoSharedStateAvailable};
    pcclTensorInfo_t infos[2] = {
        {.name = "step", .data = &n.step, .count = 1, .datatype = pcclInt64},
        {.name = "weights",
         .data = n.weights,
         .count = COUNT,
         .datatype = pcclFloat}};
    pcclSharedState_t state = {0, 2, infos};
    pcclComm_t *comm = create();
    /* The last rank is on a host that has no such directory. */
    if (part->loads && rank < RANKS - 1)
        o.loaded = pcclLoadState(comm, &state, scratch, part->choice, NULL);
    o.revision = state.revision;
    join(comm, rank);
    bool good = synchronize(comm, &state, &o);
    while (good && n.step < STEPS) {
        if (n.step == part->last_step) (void)raise(SIGKILL);
        advance(comm, rank, &n);
        state.revision++;
        good = synchronize(comm, &state, &o);
        if (part->every > 0 && n.step % part->every == 0 &&
            pcclSaveState(comm, &state, scratch, NULL) != pcclSuccess)
            _exit(1);
        /* The last one before the death is to be there. */
        if (n.step == part->last_step) (void)pcclAwaitSave(comm, NULL);
    }
    o.digest = 14695981039346656037u;
    for (size_t i = 0; i < sizeof n.weights; i++)
        o.digest =
            (o.digest ^ ((uint8_t *)n.weights)[i]) * (uint64_t)1099511628211;
    report(out, &o);
    (void)pcclDestroyCommunicator(comm);
    _exit(0);
}

/* Runs all ranks to their ends. Returns how many ended by themselves. */
static int run(const struct part *part, struct outcome *outcomes)
{
    pid_t pids[RANKS];
    int out[2];
    int count = 0;
    assert_int_equal(pipe(out), 0);
    for (int i = 0; i < RANKS; i++) assert_int_equal(pipe(batons[i]), 0);
    for (int i = 0; i < RANKS; i++) {
        pids[i] = fork();
        assert_true(pids[i] >= 0);
        if (pids[i] != 0) continue;
        close(out[0]);
        (void)alarm(PATIENCE_S);
        train(i, part, out[1]);
    }
    close(out[1]);
    struct outcome o;
    while (read(out[0], &o, sizeof o) == sizeof o)
        if (count < RANKS) outcomes[count++] = o;
    close(out[0]);
    for (int i = 0; i < RANKS; i++) {
        (void)waitpid(pids[i], NULL, 0);
        close(batons[i][0]);
        close(batons[i][1]);
    }
    return count;
}

static uint64_t digest_of_all(const struct outcome *outcomes, int count)
{
    assert_int_equal(count, RANKS);
    for (int i = 0; i < RANKS; i++) {
        if (outcomes[i].synced != pcclSuccess)
            fail_msg("%s", outcomes[i].error);
        assert_int_equal(outcomes[i].digest, outcomes[0].digest);
    }
    return outcomes[0].digest;
}

static uint64_t uninterrupted(void)
{
    struct outcome outcomes[RANKS];
    struct part part = {.last_step = -1};
    open_run();
    uint64_t digest = digest_of_all(outcomes, run(&part, outcomes));
    stop_master(master);
    return digest;
}

static void test_all_is_killed_and_goes_on(void **state)
{
    (void)state;
    struct outcome outcomes[RANKS];
    uint64_t expected = uninterrupted();
    struct part dies = {.last_step = KILLED_AT, .every = 5};
    struct part resumes = {.last_step = -1, .every = 5, .loads = true};
    open_run();
    assert_int_equal(run(&dies, outcomes), 0);
    stop_master(master);
    open_run();
    assert_int_equal(digest_of_all(outcomes, run(&resumes, outcomes)),
                     expected);
    stop_master(master);
    int loaded = 0;
    for (int i = 0; i < RANKS; i++) {
        if (outcomes[i].loaded != pcclSuccess) continue;
        assert_int_equal(outcomes[i].revision, KILLED_AT / 5 * 5);
        loaded++;
    }
    assert_int_equal(loaded, RANKS - 1);
    assert_int_equal(scratch_count("", NULL), 4);
    scratch_empty();
}

/* Rule S4: nothing but the last synchronization counts. */
static void test_the_master_lives_on(void **state)
{
    (void)state;
    struct outcome outcomes[RANKS];
    uint64_t expected = uninterrupted();
    struct part dies = {.last_step = KILLED_AT, .every = 1};
    struct part resumes = {.last_step = -1, .loads = true};
    pcclLoadOptions_t before = {.size = sizeof before,
                                .choice = pcclLoadRevision,
                                .revision = KILLED_AT - 1};
    struct part older = {.last_step = -1, .loads = true, .choice = &before};
    open_run();
    assert_int_equal(run(&dies, outcomes), 0);
    assert_int_equal(run(&older, outcomes), RANKS);
    for (int i = 0; i < RANKS; i++) {
        assert_int_equal(outcomes[i].synced, pcclNoSharedStateAvailable);
        assert_non_null(strstr(outcomes[i].error, "revision 27 is expected"));
    }
    assert_int_equal(digest_of_all(outcomes, run(&resumes, outcomes)),
                     expected);
    stop_master(master);
    scratch_empty();
}

int main(void)
{
    (void)setenv("PCCL_DEADLINE", "20", 1);
    (void)setenv("PCCL_LOG_LEVEL", "ERR", 1);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_all_is_killed_and_goes_on),
        cmocka_unit_test(test_the_master_lives_on),
    };
    return cmocka_run_group_tests(tests, scratch_make, scratch_remove);
}
