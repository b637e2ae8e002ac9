/* test_timeline.c - tests PCCL_TRACE and pccl-trace: ranks trace a run in which
 * one is killed; the merged file is JSON, its spans nest, and it has every
 * operation of every rank, those of the dead one up to its death, too. */
#include "json.h"
#include "vector.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
    READY = 1,
    MEMBERS = 3,
    SMALL = 40,
    LARGE = 300 * 1000,
    ASYNC = 3,
    SPANS_MAX = 64,
    FILES = MEMBERS,
};

extern char **environ;
static const char *merger;
static char folder[] = "/tmp/pccl_timeline_XXXXXX";

/* ------------------------------------------------------------------ a rank */

static pcclReduceDescriptor_t describe(size_t count, uint64_t tag)
{
    return (pcclReduceDescriptor_t){
        .count = count,
        .op = pcclSum,
        .tag = tag,
        .src_descriptor = {pcclFloat, pcclDistributionNone}};
}

static void run_operations(const struct seat *seat, pcclComm_t *comm,
                           float *data)
{
    pcclArgument_t name = {.name = "function", .text = "my \"barrier\""};
    pcclCollective_t barrier = {.size = sizeof barrier,
                                .kind = pcclKindBarrier,
                                .tag = 9,
                                .arguments = &name,
                                .argument_count = 1};
    pcclReduceDescriptor_t small = describe(4, 1), large = describe(LARGE, 2);
    for (int i = 0; i < SMALL; i++) {
        SEAT_EQUAL(seat, pcclAllReduce(data, data, &small, comm, NULL),
                   pcclSuccess);
        SEAT_EQUAL(seat, pcclCollective(&barrier, comm, NULL), pcclSuccess);
    }
    /* The others wait until the test has seen that in their traces. */
    if (seat->index == MEMBERS - 1) (void)seat_hear(seat);
    SEAT_EQUAL(seat, pcclTraceBegin(comm, "my step", 0, 77), pcclSuccess);
    SEAT_EQUAL(seat, pcclAllReduce(data, data, &large, comm, NULL),
               pcclSuccess);
    SEAT_EQUAL(seat, pcclTraceEnd(comm), pcclSuccess);
    pcclAsyncReduceOp_t handles[ASYNC];
    for (uint64_t i = 0; i < ASYNC; i++) {
        pcclReduceDescriptor_t d = describe(8, 20 + i);
        SEAT_EQUAL(seat,
                   pcclAllReduceAsync(data + 8 * i, data + 8 * i, &d, comm,
                                      &handles[i]),
                   pcclSuccess);
    }
    for (int i = 0; i < ASYNC; i++)
        SEAT_EQUAL(seat, pcclAwaitAsyncReduce(&handles[i], NULL), pcclSuccess);
}

static void body(struct seat *seat)
{
    float *data = calloc(LARGE, sizeof *data);
    bool traced = false;
    pcclReduceDescriptor_t d = describe(LARGE, 2);
    SEAT_CHECK(seat, data != NULL);
    pcclComm_t *comm = seat_join(seat);
    SEAT_EQUAL(seat, pcclTraceEnabled(&traced), pcclSuccess);
    SEAT_CHECK(seat, traced);
    seat_gather(seat, comm, MEMBERS);
    run_operations(seat, comm, data);
    /* The I/O thread writes what there is: what a killed rank leaves. */
    seat_report(seat, READY, 0);
    if (seat->index == MEMBERS - 1) (void)pause();
    SEAT_EQUAL(seat, pcclAllReduce(data, data, &d, comm, NULL),
               pcclRankConnectionLost);
    SEAT_EQUAL(seat, pcclAllReduce(data, data, &d, comm, NULL), pcclSuccess);
    SEAT_EQUAL(seat, pcclDestroyCommunicator(comm), pcclSuccess);
    free(data);
}

/* ------------------------------------------------------------ what is there */

/* The spans of a thread that have begun. */
struct open_spans {
    double thread;
    int depth;
    struct span {
        char name[64];
        double at;
    } spans[SPANS_MAX];
};

/* What a rank's process has in the merged file. */
struct found {
    int reductions, barriers, async_begun, async_ended, lost;
    int epochs, changes, waits, steps, ends;
    int flat, large; /* operations by their algorithm, */
    int passed_over; /* ... and those for which another one comes first */
    bool views[MEMBERS + 1]; /* by their number of members */
    bool named;
    struct open_spans threads[16];
    int thread_count;
};

static struct open_spans *thread_of(struct found *f, double number)
{
    for (int i = 0; i < f->thread_count; i++)
        if (f->threads[i].thread == number) return &f->threads[i];
    assert_true(f->thread_count < 16);
    f->threads[f->thread_count].thread = number;
    return &f->threads[f->thread_count++];
}

static void check_nesting(struct found *f, const struct json_event *e)
{
    struct open_spans *t = thread_of(f, e->thread);
    if (e->phase == 'B') {
        assert_true(t->depth < SPANS_MAX);
        struct span *s = &t->spans[t->depth++];
        (void)snprintf(s->name, sizeof s->name, "%s", e->name);
        s->at = e->at;
        if (t->depth > 1) assert_true(s->at >= (s - 1)->at);
    }
    if (e->phase != 'E') return;
    assert_true(t->depth > 0);
    const struct span *s = &t->spans[--t->depth];
    assert_true(e->at >= s->at);
    if (strcmp(e->category, "operation") == 0)
        assert_string_equal(e->name, s->name);
}

static void count_operation(struct found *f, const struct json_event *e)
{
    bool ended = e->phase == 'E' || e->phase == 'X' || e->phase == 'e';
    if (e->phase == 'b') f->async_begun++;
    if (!ended) return;
    if (strcmp(e->result, "a member was lost") == 0) f->lost++;
    if (strcmp(e->result, "success") != 0) return;
    if (e->phase == 'e') f->async_ended++;
    assert_true(e->algorithm[0] != '\0' && e->why[0] != '\0');
    f->flat += strcmp(e->algorithm, "flat") == 0;
    f->large += strcmp(e->algorithm, "single_copy") == 0;
    if (e->instead_of[0] != '\0') {
        assert_string_equal(e->instead_of, "single_copy");
        assert_string_equal(
            e->unfit,
            "needs 3 to 64 members of one host that share its memory");
        f->passed_over++;
    }
    f->reductions += strcmp(e->kind, "all-reduce") == 0;
    f->barriers +=
        strcmp(e->name, "my ?barrier?") == 0 && strcmp(e->kind, "barrier") == 0;
}

static void on_event(void *found, const struct json_event *e)
{
    struct found *all = found;
    assert_true(e->process >= 1 && e->process <= FILES);
    struct found *f = &all[(int)e->process - 1];
    check_nesting(f, e);
    if (strcmp(e->category, "operation") == 0) count_operation(f, e);
    if (strcmp(e->category, "wait") == 0 && e->phase == 'B') f->waits++;
    if (strcmp(e->category, "change") == 0 && e->phase == 'e') f->changes++;
    if (strncmp(e->name, "epoch ", 6) == 0) {
        f->epochs++;
        assert_true(e->members >= 1 && e->members <= MEMBERS);
        f->views[(int)e->members] = true;
    }
    f->steps += strcmp(e->name, "my step") == 0 && e->phase == 'B';
    f->ends += strcmp(e->name, "the trace ends here") == 0;
    f->named |= strcmp(e->name, "process_name") == 0;
}

static void merge(const char *out, char *first, char *second, char *third)
{
    pid_t pid;
    int status;
    char option[] = "-o";
    char *args[] = {(char *)(uintptr_t)merger,
                    option,
                    (char *)(uintptr_t)out,
                    first,
                    second,
                    third,
                    NULL};
    assert_int_equal(posix_spawn(&pid, merger, NULL, NULL, args, environ), 0);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(status, 0);
}

/* Until the file of a rank has so many lines with the text, as it has within a
 * moment while the rank lives. */
static void await_written(const char *path, const char *text, int count)
{
    for (int64_t end = now_ms() + PATIENCE_MS; now_ms() < end;) {
        FILE *in = fopen(path, "re");
        char line[1024];
        int found = 0;
        while (in && fgets(line, sizeof line, in))
            found += strstr(line, text) != NULL;
        if (in) fclose(in);
        if (found >= count) return;
        (void)usleep(20 * 1000);
    }
    fail_msg("the trace of a rank is not written");
}

static void test_trace(void **state)
{
    (void)state;
    char paths[FILES][160], pattern[128], out[128];
    struct cluster c;
    (void)snprintf(pattern, sizeof pattern, "%s/trace", folder);
    (void)snprintf(out, sizeof out, "%s/merged", folder);
    for (int i = 0; i < FILES; i++)
        (void)snprintf(paths[i], sizeof paths[i], "%s.%d", pattern, i);
    assert_int_equal(setenv("PCCL_TRACE", pattern, 1), 0);
    cluster_start(&c, "3");
    for (int i = 0; i < MEMBERS; i++) (void)cluster_add(&c, body, NULL);
    for (int i = 0; i < MEMBERS - 1; i++)
        await_written(paths[i], "\"cat\":\"wait\"", 1);
    cluster_order(&c, MEMBERS - 1, 1);
    for (int i = 0; i < MEMBERS; i++) (void)cluster_await(&c, i, READY);
    await_written(paths[MEMBERS - 1], "\"ph\":\"e\",\"cat\":\"operation\"",
                  ASYNC);
    cluster_signal(&c, MEMBERS - 1, SIGKILL);
    for (int i = 0; i < MEMBERS - 1; i++) cluster_finish(&c, i);
    cluster_stop(&c);
    /* A rank that is killed while it writes leaves half a line. */
    FILE *dead = fopen(paths[MEMBERS - 1], "ae");
    assert_non_null(dead);
    fputs("{\"ts\":12345.678,\"pid\":1,\"tid\":1,\"ph\":\"B\",\"ca", dead);
    fclose(dead);
    merge(out, paths[0], paths[1], paths[2]);
    static struct found found[FILES];
    json_read_trace(out, on_event, found);
    for (int i = 0; i < FILES; i++) {
        bool died = i == MEMBERS - 1;
        const struct found *f = &found[i];
        assert_int_equal(f->reductions, SMALL + 1 + ASYNC + (died ? 0 : 1));
        assert_int_equal(f->barriers, SMALL);
        assert_int_equal(f->async_begun, ASYNC);
        assert_int_equal(f->async_ended, ASYNC);
        assert_int_equal(f->lost, died ? 0 : 1);
        assert_int_equal(f->flat, 2 * SMALL + ASYNC);
        assert_int_equal(f->large, 1); /* of three; two have no region */
        assert_int_equal(f->passed_over, died ? 0 : 1);
        assert_true(f->epochs >= (died ? 1 : 2) && f->named);
        assert_true(died || f->changes >= 1);
        assert_true(died || f->waits >= 1);
        assert_true(f->views[MEMBERS]);
        assert_true(died || f->views[MEMBERS - 1]);
        assert_int_equal(f->steps, 1);
        assert_int_equal(f->ends, died ? 1 : 0);
        for (int t = 0; !died && t < f->thread_count; t++)
            assert_int_equal(f->threads[t].depth, 0);
        unlink(paths[i]);
    }
    unlink(out);
}

int main(int argc, char **argv)
{
    if (argc != 2 || !mkdtemp(folder)) return EXIT_FAILURE;
    merger = argv[1];
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_trace)};
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    rmdir(folder);
    return failed;
}
