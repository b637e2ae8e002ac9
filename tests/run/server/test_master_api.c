/* test_master_api.c - tests of the master functions of pccl.h. */
#include "../../../include/pccl.h"
#include "../../../src/base/io_addr.h"
#include "../../../src/base/wire.h"

#include <stdarg.h>
#include <setjmp.h>
#include <cmocka.h>

#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <unistd.h>

static const ccoip_socket_address_t loopback = {
    .inet = {.protocol = inetIPv4, .ipv4 = {{127, 0, 0, 1}}}};

/* Sends HELLO and waits for the WELCOME; returns the socket. */
static int visit(const char *host, uint16_t port)
{
    static uint8_t frame[WIRE_FRAME_MAX];
    static struct wire_store store;
    struct io_addr at;
    struct timeval limit = {.tv_sec = 20};
    assert_true(io_addr_numeric(host, port, false, &at));
    int fd = socket(at.name.ss_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_true(fd >= 0);
    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
    assert_int_equal(connect(fd, (struct sockaddr *)&at.name, at.size), 0);
    struct wire_msg msg = {.type = WIRE_HELLO};
    size_t size = wire_encode(&msg, frame), got = 0, used;
    assert_int_equal(send(fd, frame, size, MSG_NOSIGNAL), size);
    while (wire_decode(frame, got, &store, &msg, &used) == WIRE_MORE) {
        ssize_t n = recv(fd, frame + got, sizeof frame - got, 0);
        assert_true(n > 0);
        got += (size_t)n;
    }
    assert_int_equal(msg.type, WIRE_WELCOME);
    return fd;
}

static void test_null_is_an_invalid_argument(void **state)
{
    (void)state;
    pcclMasterInstance_t *m = NULL;
    uint16_t port;
    ccoip_socket_address_t bad = loopback;
    assert_int_equal(pcclCreateMaster(loopback, NULL), pcclInvalidArgument);
    bad.inet.protocol = (ccoip_inet_protocol_t)7;
    assert_int_equal(pcclCreateMaster(bad, &m), pcclInvalidArgument);
    assert_int_equal(pcclRunMaster(NULL), pcclInvalidArgument);
    assert_int_equal(pcclInterruptMaster(NULL), pcclInvalidArgument);
    assert_int_equal(pcclMasterAwaitTermination(NULL), pcclInvalidArgument);
    assert_int_equal(pcclDestroyMaster(NULL), pcclInvalidArgument);
    assert_int_equal(pcclGetMasterPort(NULL, &port), pcclInvalidArgument);
    assert_int_equal(pcclCreateMaster(loopback, &m), pcclSuccess);
    assert_int_equal(pcclGetMasterPort(m, NULL), pcclInvalidArgument);
    assert_int_equal(pcclDestroyMaster(m), pcclSuccess);
}

static void test_states(void **state)
{
    (void)state;
    pcclMasterInstance_t *m;
    uint16_t port = 0;
    assert_int_equal(pcclCreateMaster(loopback, &m), pcclSuccess);
    assert_int_equal(pcclInterruptMaster(m), pcclInvalidUsage);
    assert_int_equal(pcclMasterAwaitTermination(m), pcclInvalidUsage);
    assert_int_equal(pcclGetMasterPort(m, &port), pcclInvalidUsage);
    assert_int_equal(pcclRunMaster(m), pcclSuccess);
    assert_int_equal(pcclRunMaster(m), pcclInvalidUsage);
    assert_int_equal(pcclGetMasterPort(m, &port), pcclSuccess);
    close(visit("127.0.0.1", port));
    for (int i = 0; i < 2; i++) {
        assert_int_equal(pcclInterruptMaster(m), pcclSuccess);
        assert_int_equal(pcclMasterAwaitTermination(m), pcclSuccess);
    }
    assert_int_equal(pcclRunMaster(m), pcclInvalidUsage);
    assert_int_equal(pcclDestroyMaster(m), pcclSuccess);
}

/* The port is busy while a master runs and free once it has stopped, even with
 * a connected peer. */
static void test_the_port_is_free_again(void **state)
{
    (void)state;
    pcclMasterInstance_t *first, *second;
    ccoip_socket_address_t at = loopback;
    assert_int_equal(pcclCreateMaster(at, &first), pcclSuccess);
    assert_int_equal(pcclRunMaster(first), pcclSuccess);
    assert_int_equal(pcclGetMasterPort(first, &at.port), pcclSuccess);
    int fd = visit("127.0.0.1", at.port);
    assert_int_equal(pcclCreateMaster(at, &second), pcclSuccess);
    assert_int_equal(pcclRunMaster(second), pcclInvalidUsage);
    assert_int_equal(pcclInterruptMaster(second), pcclInvalidUsage);
    assert_int_equal(pcclInterruptMaster(first), pcclSuccess);
    assert_int_equal(pcclMasterAwaitTermination(first), pcclSuccess);
    assert_int_equal(pcclRunMaster(second), pcclSuccess);
    close(visit("127.0.0.1", at.port));
    assert_int_equal(pcclDestroyMaster(second),
                     pcclSuccess); /* running: destroying stops it */
    assert_int_equal(pcclDestroyMaster(first), pcclSuccess);
    close(fd);
}

static void *await(void *user)
{
    assert_int_equal(pcclMasterAwaitTermination(user), pcclSuccess);
    return NULL;
}

static pcclMasterInstance_t *signalled;

static void on_signal(int number)
{
    (void)number;
    (void)pcclInterruptMaster(signalled);
}

/* Several threads may wait; a signal handler may end it. */
static void test_await_blocks_until_the_interrupt(void **state)
{
    (void)state;
    pthread_t threads[3];
    uint16_t port;
    struct sigaction action = {.sa_handler = on_signal}, old;
    assert_int_equal(pcclCreateMaster(loopback, &signalled), pcclSuccess);
    assert_int_equal(pcclRunMaster(signalled), pcclSuccess);
    assert_int_equal(pcclGetMasterPort(signalled, &port), pcclSuccess);
    for (int i = 0; i < 3; i++)
        pthread_create(&threads[i], NULL, await, signalled);
    close(visit("127.0.0.1", port)); /* still running */
    sigaction(SIGUSR1, &action, &old);
    raise(SIGUSR1);
    sigaction(SIGUSR1, &old, NULL);
    for (int i = 0; i < 3; i++) pthread_join(threads[i], NULL);
    assert_int_equal(pcclDestroyMaster(signalled), pcclSuccess);
}

/* A system without IPv6 may have the sockets but no address for them. */
static bool is_mine(const char *host)
{
    struct io_addr at;
    assert_true(io_addr_numeric(host, 0, false, &at));
    int fd = socket(at.name.ss_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
    bool mine = fd >= 0 && bind(fd, (struct sockaddr *)&at.name, at.size) == 0;
    if (fd >= 0) close(fd);
    return mine;
}

static void test_ipv6_serves_both(void **state)
{
    (void)state;
    pcclMasterInstance_t *m;
    uint16_t port;
    ccoip_socket_address_t any = {.inet = {.protocol = inetIPv6}};
    assert_int_equal(pcclCreateMaster(any, &m), pcclSuccess);
    pcclResult_t result = pcclRunMaster(m);
    if (result == pcclSuccess) {
        assert_int_equal(pcclGetMasterPort(m, &port), pcclSuccess);
        if (is_mine("::1")) close(visit("::1", port));
        close(visit("127.0.0.1", port));
    }
    assert_int_equal(pcclDestroyMaster(m), pcclSuccess);
    if (result != pcclSuccess) skip(); /* no IPv6 here */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_null_is_an_invalid_argument),
        cmocka_unit_test(test_states),
        cmocka_unit_test(test_the_port_is_free_again),
        cmocka_unit_test(test_await_blocks_until_the_interrupt),
        cmocka_unit_test(test_ipv6_serves_both),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
