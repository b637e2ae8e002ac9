/* test_master_conn.c - tests of a connection's buffers, over a socket pair. */
#include "../../../src/master/server/master_socket.h"

#include <stdarg.h>
#include <setjmp.h>
#include <cmocka.h>

#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

static int own; /* descriptor of the connection */

static enum conn_result flush(struct master_conn *c)
{
    return master_socket_flush(own, NULL, c);
}

static enum conn_result receive(struct master_conn *c)
{
    size_t got;
    enum conn_result result = master_socket_receive(own, NULL, c, &got);
    if (result == CONN_DONE) master_conn_received(c, got);
    return result;
}

static void end(struct master_conn *c)
{
    master_conn_free(c);
    close(own);
}

static struct master_conn *conn_pair(int *other)
{
    int fds[2];
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds),
                     0);
    struct master_conn *c = master_conn_new();
    assert_non_null(c);
    own = fds[0];
    *other = fds[1];
    return c;
}

/* Frames of many sizes through a full socket arrive whole and in order. */
static void test_output_survives_a_full_socket(void **state)
{
    (void)state;
    enum { FRAMES = 600, SIZE_MAX_ = 4001 };
    static uint8_t bytes[SIZE_MAX_], got[SIZE_MAX_];
    int fd;
    struct master_conn *c = conn_pair(&fd);
    size_t total = 0;
    for (uint32_t i = 0; i < FRAMES; i++) {
        size_t size = 1 + i * 7919 % (SIZE_MAX_ - 1);
        memset(bytes, (int)(i & 0xff), size);
        struct master_frame *f = master_frame_new(bytes, size);
        assert_true(master_conn_queue(c, f));
        master_frame_release(f);
        total += size;
        if (i == 300) assert_int_equal(flush(c), CONN_WAIT);
    }
    assert_true(c->out_size <= total && c->out_size > 0);
    uint32_t waits = 0;
    for (uint32_t i = 0; i < FRAMES; i++) {
        size_t size = 1 + i * 7919 % (SIZE_MAX_ - 1);
        memset(bytes, (int)(i & 0xff), size);
        for (size_t at = 0; at < size;) {
            waits += flush(c) == CONN_WAIT;
            ssize_t n = recv(fd, got + at, size - at, MSG_DONTWAIT);
            assert_true(n > 0);
            at += (size_t)n;
        }
        assert_memory_equal(got, bytes, size);
    }
    assert_true(waits > 0);
    assert_int_equal(c->out_count, 0);
    assert_int_equal(c->out_size, 0);
    end(c);
    close(fd);
}

static uint32_t fill(size_t size, uint32_t *refs)
{
    int fd;
    struct master_conn *c = conn_pair(&fd);
    uint8_t *bytes = calloc(1, size);
    struct master_frame *f = master_frame_new(bytes, size);
    uint32_t count = 0;
    while (master_conn_queue(c, f)) count++;
    *refs = f->refs;
    assert_true(c->out_size <= CONN_OUT_MAX);
    end(c);
    assert_int_equal(f->refs, 1);
    master_frame_release(f);
    free(bytes);
    close(fd);
    return count;
}

static void test_output_is_bounded(void **state)
{
    (void)state;
    uint32_t refs;
    assert_int_equal(fill(WIRE_FRAME_MAX, &refs),
                     CONN_OUT_MAX / WIRE_FRAME_MAX);
    assert_int_equal(refs, 1 + CONN_OUT_MAX / WIRE_FRAME_MAX);
    assert_int_equal(fill(16, &refs), CONN_OUT_FRAMES_MAX);
}

/* The buffer grows with the received bytes up to the limit, and shrinks. */
static void test_input_follows_what_came(void **state)
{
    (void)state;
    static uint8_t frame[WIRE_FRAME_MAX];
    static uint64_t ids[PEERS_MAX];
    static struct wire_store store;
    struct wire_msg msg = {.type = WIRE_READY, .ids = ids}, got;
    int fd;
    struct master_conn *c = conn_pair(&fd);
    msg.id_count = PEERS_MAX;
    for (size_t i = 0; i < PEERS_MAX; i++) ids[i] = i * i;
    size_t size = wire_encode(&msg, frame);
    for (size_t at = 0; at < size;) {
        size_t part = size - at < 3000 ? size - at : 3000;
        assert_int_equal(send(fd, frame + at, part, 0), part);
        at += part;
        while (receive(c) == CONN_DONE) {
            if (at == size && c->in_size == size) break;
            assert_int_equal(master_conn_next(c, &store, &got), WIRE_MORE);
            assert_true(master_conn_make_room(c, WIRE_FRAME_MAX));
            assert_true(c->in_capacity <= 2 * at || at < CONN_IN_START);
        }
    }
    assert_int_equal(master_conn_next(c, &store, &got), WIRE_OK);
    assert_int_equal(got.id_count, PEERS_MAX);
    assert_memory_equal(got.ids, ids, sizeof ids);
    assert_int_equal(master_conn_next(c, &store, &got), WIRE_MORE);
    assert_true(master_conn_make_room(c, WIRE_FRAME_MAX));
    assert_int_equal(c->in_capacity, CONN_IN_START);

    assert_int_equal(send(fd, frame, CONN_IN_START, 0), CONN_IN_START);
    assert_int_equal(receive(c), CONN_DONE);
    assert_false(master_conn_make_room(c, CONN_IN_START));
    c->in_size = 0; /* a closed link: what comes is discarded */
    assert_int_equal(receive(c), CONN_WAIT);
    close(fd);
    assert_int_equal(receive(c), CONN_END);
    end(c);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_output_survives_a_full_socket),
        cmocka_unit_test(test_output_is_bounded),
        cmocka_unit_test(test_input_follows_what_came),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
