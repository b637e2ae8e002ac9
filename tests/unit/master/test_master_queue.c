/* test_master_queue.c - the queues of a connection of the coordinator at every
 * position at which a socket can stop taking or giving bytes.
 *
 * The socket is a pair of functions: it takes and gives as many bytes as the
 * test allows, and then fails as the test says. */
#include "../../../src/master/server/master_socket.h"

#include <stdarg.h>
#include <setjmp.h>
#include <cmocka.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

enum { FRAMES = 40, LENGTH_MAX = 7, BYTES_MAX = FRAMES * LENGTH_MAX };

static size_t allowed; /* bytes until the socket stops */
static int error;      /* what it says then */
static uint32_t interrupts;
static uint8_t taken[2 * BYTES_MAX];
static size_t taken_size;
static const uint8_t *given;
static size_t given_size;

ssize_t __wrap_sendmsg(int fd, const struct msghdr *h, int flags);
ssize_t __wrap_recv(int fd, void *to, size_t size, int flags);

static bool is_stopped(void)
{
    if (interrupts > 0) {
        interrupts--;
        errno = EINTR;
        return true;
    }
    errno = error;
    return allowed == 0;
}

ssize_t __wrap_sendmsg(int fd, const struct msghdr *h, int flags)
{
    (void)fd;
    assert_true((flags & MSG_NOSIGNAL) != 0 && (flags & MSG_DONTWAIT) != 0);
    if (is_stopped()) return -1;
    size_t done = 0;
    for (size_t i = 0; i < h->msg_iovlen && allowed > 0; i++) {
        size_t part = h->msg_iov[i].iov_len;
        if (part > allowed) part = allowed;
        assert_true(taken_size + part <= sizeof taken);
        memcpy(taken + taken_size, h->msg_iov[i].iov_base, part);
        taken_size += part;
        allowed -= part;
        done += part;
    }
    return (ssize_t)done;
}

ssize_t __wrap_recv(int fd, void *to, size_t size, int flags)
{
    (void)fd;
    assert_true((flags & MSG_DONTWAIT) != 0);
    if (is_stopped()) return -1;
    if (size > allowed) size = allowed;
    if (size > given_size) size = given_size;
    memcpy(to, given, size);
    given += size;
    given_size -= size;
    allowed -= size;
    return (ssize_t)size;
}

static struct master_conn *conn_new(void)
{
    struct master_conn *c = master_conn_new();
    assert_non_null(c);
    error = EAGAIN;
    interrupts = 0;
    return c;
}

static size_t length_of(uint32_t frame)
{
    return 1 + frame * 5 % LENGTH_MAX;
}

/* Queues frames [from, to); each byte tells its frame. */
static size_t queue(struct master_conn *c, uint32_t from, uint32_t to)
{
    size_t total = 0;
    for (uint32_t i = from; i < to; i++) {
        uint8_t bytes[LENGTH_MAX];
        memset(bytes, (int)i, sizeof bytes);
        struct master_frame *f = master_frame_new(bytes, length_of(i));
        assert_non_null(f);
        assert_true(master_conn_queue(c, f));
        master_frame_release(f);
        total += length_of(i);
    }
    return total;
}

static void check_taken(void)
{
    size_t at = 0;
    for (uint32_t i = 0; i < FRAMES; i++)
        for (size_t k = 0; k < length_of(i); k++)
            assert_int_equal(taken[at++], i);
    assert_int_equal(at, taken_size);
    taken_size = 0;
}

static enum conn_result flush(struct master_conn *c, size_t bytes)
{
    allowed = bytes;
    enum conn_result r = master_socket_flush(-1, NULL, c);
    assert_int_equal(r == CONN_DONE, c->out_count == 0);
    assert_int_equal(c->out_count == 0, c->out_size == 0);
    assert_true(c->out_count == 0 || c->out_done < c->out[c->out_first]->size);
    return r;
}

/* It stops twice, at any two bytes, and frames are queued in between. The same
 * connection: its ring of frames is turned at every place. */
static void test_every_partial_write(void **state)
{
    (void)state;
    struct master_conn *c = conn_new();
    size_t half = queue(c, 0, FRAMES / 2);
    assert_int_equal(flush(c, SIZE_MAX), CONN_DONE);
    taken_size = 0;
    for (size_t first = 0; first <= half; first++) {
        size_t all = half;
        for (size_t second = 0; first + second <= all; second++) {
            (void)queue(c, 0, FRAMES / 2);
            assert_int_equal(flush(c, first),
                             first < half ? CONN_WAIT : CONN_DONE);
            all = half + queue(c, FRAMES / 2, FRAMES);
            interrupts = (uint32_t)(second % 3);
            assert_int_equal(flush(c, second),
                             first + second < all ? CONN_WAIT : CONN_DONE);
            assert_int_equal(flush(c, SIZE_MAX), CONN_DONE);
            check_taken();
        }
    }
    master_conn_free(c);
}

static void test_an_end_at_every_byte(void **state)
{
    (void)state;
    static const int ends[] = {ECONNRESET, EPIPE, ETIMEDOUT};
    for (size_t at = 0; at < BYTES_MAX; at++) {
        struct master_conn *c = conn_new();
        error = ends[at % ARRAY_COUNT(ends)];
        size_t total = queue(c, 0, FRAMES);
        assert_int_equal(flush(c, at), at < total ? CONN_END : CONN_DONE);
        assert_int_equal(taken_size, at < total ? at : total);
        taken_size = 0;
        master_conn_free(c);
    }
}

/* A peer that never reads: the queue ends at its limit, holds what it had, and
 * takes more when there is room again. */
static void test_a_peer_that_does_not_read(void **state)
{
    (void)state;
    struct master_conn *c = conn_new();
    static const uint8_t byte;
    struct master_frame *f = master_frame_new(&byte, 1);
    assert_non_null(f);
    for (uint32_t turn = 0; turn < 3; turn++) {
        uint32_t count = 0;
        while (master_conn_queue(c, f)) count++;
        assert_int_equal(count, turn == 0 ? CONN_OUT_FRAMES_MAX : turn);
        assert_int_equal(f->refs, 1 + CONN_OUT_FRAMES_MAX);
        assert_int_equal(flush(c, 0), CONN_WAIT);
        assert_false(master_conn_queue(c, f));
        assert_int_equal(flush(c, turn + 1), CONN_WAIT);
        taken_size = 0;
    }
    master_conn_free(c);
    assert_int_equal(f->refs, 1);
    master_frame_release(f);
}

/* What the server does with input: the messages that are complete. */
static uint32_t deliver(struct master_conn *c, struct wire_store *store,
                        uint64_t *sum)
{
    uint32_t count = 0;
    for (;;) {
        struct wire_msg msg;
        enum wire_status status = master_conn_next(c, store, &msg);
        if (status == WIRE_MORE) break;
        assert_int_equal(status, WIRE_OK);
        for (uint32_t i = 0; i < msg.id_count; i++)
            *sum = *sum * 31 + msg.ids[i];
        *sum = *sum * 31 + msg.type;
        count++;
    }
    assert_true(master_conn_make_room(c, WIRE_FRAME_MAX));
    return count;
}

static uint32_t read_all(struct master_conn *c, struct wire_store *store,
                         size_t bytes, uint64_t *sum)
{
    uint32_t count = 0;
    allowed = bytes;
    size_t got;
    while (master_socket_receive(-1, NULL, c, &got) == CONN_DONE) {
        master_conn_received(c, got);
        if (given_size == 0) break;
        count += deliver(c, store, sum);
    }
    return count + deliver(c, store, sum);
}

static void test_every_partial_read(void **state)
{
    (void)state;
    enum { MESSAGES = 5 };
    static uint8_t stream[WIRE_FRAME_MAX];
    static struct wire_store store;
    uint64_t ids[] = {5, 7, 11, 13}, want = 0;
    size_t size = 0;
    for (uint32_t i = 0; i < MESSAGES; i++) {
        struct wire_msg msg = {.type = i % 2 ? WIRE_HEARTBEAT : WIRE_READY};
        msg.ids = ids;
        msg.id_count = i % 2 ? 0 : i;
        size += wire_encode(&msg, stream + size);
    }
    struct master_conn *c = conn_new();
    for (size_t first = 0; first <= size; first++) {
        for (size_t second = 0; first + second <= size; second++) {
            uint64_t sum = 0;
            given = stream;
            given_size = size;
            interrupts = (uint32_t)(second % 2);
            uint32_t count = read_all(c, &store, first, &sum);
            count += read_all(c, &store, second, &sum);
            if (given_size > 0) count += read_all(c, &store, SIZE_MAX, &sum);
            assert_int_equal(count, MESSAGES);
            if (want == 0) want = sum;
            assert_int_equal(sum, want);
            assert_int_equal(c->in_size, 0);
        }
    }
    master_conn_free(c);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_partial_write),
        cmocka_unit_test(test_an_end_at_every_byte),
        cmocka_unit_test(test_a_peer_that_does_not_read),
        cmocka_unit_test(test_every_partial_read),
    };
    return cmocka_run_group_tests_name("server/master_queue", tests, NULL,
                                       NULL);
}
