/* test_exchange.c - large all-reduces in place whose pages change places with
 * those of scratch memory (rule D18): every byte is right on memory of any
 * kind, wherever the kernel refuses, and whenever a member is killed. */
#include "cluster.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/userfaultfd.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

enum { MOVES = 1, RESULT, DONE }; /* reports */
enum {
    HUGE_PAGE = 2 << 20,
    GUARD = HUGE_PAGE, /* before and after each buffer */
    BYTES = 6 * HUGE_PAGE + 4000,
    COUNT = BYTES / sizeof(float),
    /* A buffer of so many bytes has two windows, with three moves each. */
    MOVES_EACH = 6,
    TAG = 7,
};

/* ------------------------------------------------- in place of the system */

struct page_move {
    uint64_t to, from, size, mode;
    int64_t moved;
};
#define PAGE_MOVE _IOWR(UFFDIO, 0x05, struct page_move)

enum what { LET, REFUSE, MOVE_HALF, DIE };
static int moves, chosen = -1; /* so far; the one to interfere with */
static enum what what;

/* Replaces the function of the C library. */
__attribute__((visibility("default"))) int ioctl(int fd, unsigned long request,
                                                 ...)
{
    va_list args;
    va_start(args, request);
    void *arg = va_arg(args, void *);
    va_end(args);
    bool here = request == PAGE_MOVE && moves++ == chosen;
    struct page_move *m = arg;
    if (here && what == DIE) (void)kill(getpid(), SIGKILL);
    if (here && what == MOVE_HALF && m->size > HUGE_PAGE) {
        struct page_move first = *m;
        first.size = HUGE_PAGE;
        if (syscall(SYS_ioctl, fd, request, &first) == 0) m->moved = HUGE_PAGE;
    }
    if (here && what != LET) {
        errno = EBUSY;
        return -1;
    }
    return (int)syscall(SYS_ioctl, fd, request, arg);
}

/* ----------------------------------------------------------------- buffers */

static void fill(float *bytes, int weight, int step)
{
    for (size_t i = 0; i < COUNT; i++)
        bytes[i] = (float)(weight * (int)(i % 1000 + (size_t)step));
}

static size_t wrong(const float *bytes, int weight, int step)
{
    size_t count = 0;
    for (size_t i = 0; i < COUNT; i++)
        count += bytes[i] != (float)(weight * (int)(i % 1000 + (size_t)step));
    return count;
}

/* Memory with guards, and the buffer in it `shift` bytes off a huge page. */
struct room {
    uint8_t *all;
    size_t size, shift;
    float *bytes;
};

static void room_open(struct room *r, int flags, int fd, size_t shift)
{
    r->size = BYTES + shift + 3 * (size_t)GUARD;
    r->shift = shift;
    r->all = mmap(NULL, r->size, PROT_READ | PROT_WRITE, flags, fd, 0);
    assert(r->all != MAP_FAILED);
    (void)madvise(r->all, r->size, MADV_HUGEPAGE);
    memset(r->all, 0x5a, r->size);
    uintptr_t at = (uintptr_t)r->all + GUARD + HUGE_PAGE - 1;
    r->bytes = (float *)(at / HUGE_PAGE * HUGE_PAGE + shift);
}

/* Its address stays taken: a refused buffer is not tried again. */
static void room_leave(struct room *r)
{
    (void)madvise(r->all, r->size, MADV_DONTNEED);
}

static bool guards_are_whole(const struct room *r)
{
    const uint8_t *from = (const uint8_t *)r->bytes;
    for (const uint8_t *b = r->all; b < from; b++) {
        if (*b != 0x5a) return false;
    }
    for (const uint8_t *b = from + COUNT * sizeof(float); b < r->all + r->size;
         b++) {
        if (*b != 0x5a) return false;
    }
    return true;
}

static pcclResult_t reduce(pcclComm_t *comm, float *bytes)
{
    const pcclReduceDescriptor_t d = {
        .count = COUNT,
        .op = pcclSum,
        .tag = TAG,
        .src_descriptor = {.datatype = pcclFloat}};
    return pcclAllReduce(bytes, bytes, &d, comm, NULL);
}

/* A sum of two members, in this room. */
static void check(const struct seat *seat, pcclComm_t *comm,
                  const struct room *r, int step)
{
    fill(r->bytes, seat->index + 1, step);
    SEAT_EQUAL(seat, reduce(comm, r->bytes), pcclSuccess);
    SEAT_EQUAL(seat, wrong(r->bytes, 3, step), 0);
    SEAT_CHECK(seat, guards_are_whole(r));
}

/* ------------------------------------------------------------------- tests */

enum { PRIVATE = MAP_PRIVATE | MAP_ANONYMOUS };

/* The kernel refuses each move in turn, at its beginning or half way. */
static void refused_body(struct seat *seat)
{
    pcclComm_t *comm = seat_join(seat);
    seat_gather(seat, comm, 2);
    struct room r;
    room_open(&r, PRIVATE, -1, 0);
    check(seat, comm, &r, 0);
    seat_report(seat, MOVES, moves);
    for (int i = 0; moves > 0 && i < 2 * MOVES_EACH; i++) {
        room_leave(&r);
        room_open(&r, PRIVATE, -1, 0);
        chosen = i / 2;
        moves = 0;
        what = i % 2 == 0 ? REFUSE : MOVE_HALF;
        check(seat, comm, &r, i);
        SEAT_CHECK(seat, moves > 0);
        moves = 0;
        check(seat, comm, &r, i + 1);
        /* The third move of a window gives pages back, which is no loss. */
        if (i / 2 % 3 < 2) SEAT_EQUAL(seat, moves, 0);
        moves = 1;
    }
    seat_report(seat, DONE, 0);
    SEAT_EQUAL(seat, pcclDestroyCommunicator(comm), pcclSuccess);
}

static void need_moves(struct cluster *c, int ranks)
{
    bool all = true;
    for (int i = 0; i < ranks; i++) all &= cluster_await(c, i, MOVES) > 0;
    if (all) return;
    cluster_stop(c);
    print_message("no pages are exchanged here\n");
    skip();
}

static void test_every_refusal(void **state)
{
    struct cluster *c = *state;
    cluster_start(c, "20");
    for (int i = 0; i < 2; i++) cluster_add(c, refused_body, NULL);
    need_moves(c, 2);
    for (int i = 0; i < 2; i++) (void)cluster_await(c, i, DONE);
    for (int i = 0; i < 2; i++) cluster_finish(c, i);
}

/* A child shares the pages until it is told to look at them. */
static pid_t fork_child(const struct room *r, int weight, int step, int *told)
{
    int ends[2];
    char byte;
    if (pipe(ends) != 0) return -1;
    pid_t child = fork();
    if (child != 0) {
        close(ends[0]);
        *told = ends[1];
        return child;
    }
    close(ends[1]);
    ssize_t ignored = read(ends[0], &byte, 1);
    (void)ignored;
    _exit(wrong(r->bytes, weight, step) == 0 ? 0 : 1);
}

static void check_forked(const struct seat *seat, pcclComm_t *comm)
{
    struct room r;
    int told;
    int status = -1;
    room_open(&r, PRIVATE, -1, 0);
    fill(r.bytes, seat->index + 1, 5);
    pid_t child = fork_child(&r, seat->index + 1, 5, &told);
    SEAT_CHECK(seat, child > 0);
    SEAT_EQUAL(seat, reduce(comm, r.bytes), pcclSuccess);
    SEAT_EQUAL(seat, wrong(r.bytes, 3, 5), 0);
    close(told);
    SEAT_EQUAL(seat, waitpid(child, &status, 0), child);
    SEAT_EQUAL(seat, status, 0);
    SEAT_CHECK(seat, guards_are_whole(&r));
}

static void kinds_body(struct seat *seat)
{
    pcclComm_t *comm = seat_join(seat);
    seat_gather(seat, comm, 2);
    struct room r;
    static const size_t shifts[] = {0, 4, 4096, 4100, HUGE_PAGE - 4};
    for (size_t i = 0; i < sizeof shifts / sizeof shifts[0]; i++) {
        room_open(&r, PRIVATE, -1, shifts[i]);
        check(seat, comm, &r, (int)i);
        check(seat, comm, &r, (int)i + 1);
    }
    room_open(&r, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    check(seat, comm, &r, 1);
    char name[] = "/tmp/pccl_exchange_XXXXXX";
    int fd = mkstemp(name);
    SEAT_CHECK(seat, fd >= 0 && unlink(name) == 0);
    SEAT_EQUAL(seat, ftruncate(fd, BYTES + 4 * (off_t)GUARD), 0);
    room_open(&r, MAP_PRIVATE, fd, 0);
    check(seat, comm, &r, 2);
    room_open(&r, PRIVATE, -1, 0);
    (void)mlock(r.bytes, HUGE_PAGE); /* if that is allowed */
    check(seat, comm, &r, 3);
    room_open(&r, PRIVATE, -1, 0);
    (void)madvise(r.bytes, HUGE_PAGE, MADV_DONTNEED);
    (void)mprotect((uint8_t *)r.bytes + HUGE_PAGE, HUGE_PAGE,
                   PROT_READ | PROT_WRITE | PROT_EXEC);
    check(seat, comm, &r, 4);
    check_forked(seat, comm);
    /* At the end of the heap. */
    r.bytes = malloc(BYTES);
    fill(r.bytes, seat->index + 1, 6);
    SEAT_EQUAL(seat, reduce(comm, r.bytes), pcclSuccess);
    SEAT_EQUAL(seat, wrong(r.bytes, 3, 6), 0);
    free(r.bytes);
    SEAT_EQUAL(seat, pcclDestroyCommunicator(comm), pcclSuccess);
}

static void test_every_kind_of_memory(void **state)
{
    struct cluster *c = *state;
    cluster_start(c, "20");
    for (int i = 0; i < 2; i++) cluster_add(c, kinds_body, NULL);
    for (int i = 0; i < 2; i++) cluster_finish(c, i);
}

struct reader {
    const struct room *room;
    atomic_bool over;
    atomic_size_t odd; /* neither an input nor a result */
};

static void *read_all(void *arg)
{
    struct reader *me = arg;
    const volatile float *bytes = me->room->bytes;
    while (!atomic_load(&me->over)) {
        for (size_t i = 0; i < COUNT; i += 509) {
            float f = bytes[i];
            float one = (float)(i % 1000);
            if (f != one && f != 2 * one && f != 3 * one)
                atomic_fetch_add(&me->odd, 1);
        }
    }
    return NULL;
}

/* Another thread that reads the buffer meanwhile sees inputs and results. */
static void readers_body(struct seat *seat)
{
    pcclComm_t *comm = seat_join(seat);
    seat_gather(seat, comm, 2);
    struct room r;
    pthread_t thread;
    room_open(&r, PRIVATE, -1, 0);
    check(seat, comm, &r, 0);
    seat_report(seat, MOVES, moves);
    bool exchanges = moves > 0;
    fill(r.bytes, seat->index + 1, 0);
    struct reader reader = {.room = &r};
    SEAT_EQUAL(seat, pthread_create(&thread, NULL, read_all, &reader), 0);
    for (int i = 0; i < 20; i++) check(seat, comm, &r, 0);
    atomic_store(&reader.over, true);
    SEAT_EQUAL(seat, pthread_join(thread, NULL), 0);
    if (exchanges) SEAT_EQUAL(seat, atomic_load(&reader.odd), 0);
    SEAT_EQUAL(seat, pcclDestroyCommunicator(comm), pcclSuccess);
}

static void test_other_threads_read(void **state)
{
    struct cluster *c = *state;
    cluster_start(c, "20");
    for (int i = 0; i < 2; i++) cluster_add(c, readers_body, NULL);
    need_moves(c, 2);
    for (int i = 0; i < 2; i++) cluster_finish(c, i);
}

/* Rank 2 dies in a move. The others have the result of all, or their inputs
 * and then the result of two. */
static void killed_body(struct seat *seat)
{
    const int *victim_move = seat->arg;
    pcclComm_t *comm = seat_join(seat);
    seat_gather(seat, comm, 3);
    struct room r;
    room_open(&r, PRIVATE, -1, 0);
    fill(r.bytes, seat->index + 1, 1);
    SEAT_EQUAL(seat, reduce(comm, r.bytes), pcclSuccess);
    SEAT_EQUAL(seat, wrong(r.bytes, 6, 1), 0);
    seat_report(seat, MOVES, moves);
    (void)seat_hear(seat);
    if (seat->index == 2) {
        what = DIE;
        chosen = *victim_move;
        moves = 0;
    }
    int step = 2;
    while (world_size(comm) == 3) {
        int64_t losses = 0;
        fill(r.bytes, seat->index + 1, step);
        pcclResult_t rc = reduce(comm, r.bytes);
        if (rc == pcclSuccess) {
            SEAT_EQUAL(seat, wrong(r.bytes, 6, step), 0);
        } else {
            losses = 1;
            SEAT_EQUAL(seat, rc, pcclRankConnectionLost);
            SEAT_EQUAL(seat, wrong(r.bytes, seat->index + 1, step), 0);
            SEAT_EQUAL(seat, reduce(comm, r.bytes), pcclSuccess);
            SEAT_EQUAL(seat, wrong(r.bytes, 3, step), 0);
        }
        if (seat->index < 2) seat_report(seat, RESULT, 2 * step + losses);
        step++;
    }
    SEAT_CHECK(seat, guards_are_whole(&r));
    SEAT_EQUAL(seat, pcclDestroyCommunicator(comm), pcclSuccess);
}

static void test_killed_at_every_move(void **state)
{
    struct cluster *c = *state;
    for (int move = 0; move < MOVES_EACH; move++) {
        cluster_start(c, "20");
        for (int i = 0; i < 3; i++) cluster_add(c, killed_body, &move);
        need_moves(c, 3);
        for (int i = 0; i < 3; i++) cluster_order(c, i, 0);
        int64_t result = 0;
        while (result % 2 == 0) {
            result = cluster_await(c, 0, RESULT);
            assert_int_equal(cluster_await(c, 1, RESULT), result);
        }
        for (int i = 0; i < 2; i++) cluster_finish(c, i);
        cluster_stop(c);
    }
}

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
        cmocka_unit_test_setup_teardown(test_every_refusal, start, stop),
        cmocka_unit_test_setup_teardown(test_every_kind_of_memory, start, stop),
#ifndef __SANITIZE_THREAD__ /* a race of the program */
        cmocka_unit_test_setup_teardown(test_other_threads_read, start, stop),
#endif
        cmocka_unit_test_setup_teardown(test_killed_at_every_move, start, stop),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
