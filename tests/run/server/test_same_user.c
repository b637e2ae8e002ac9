/* test_same_user.c - whose process the other end of a connection is (rule L9):
 * for each family, before and after it was accepted, when it has ended, without
 * the kernel's short way; and what the coordinator does with others. Sockets of
 * other users need root; without it only the rest is tested. */
#include "fake_peer.h"

#include "../../patience.h"

#include "../../../src/base/same_user.h"
#include "../../../src/master/master.h"

#include <stdarg.h>
#include <setjmp.h>
#include <cmocka.h>

#include <arpa/inet.h>
#include <errno.h>
#include <linux/netlink.h>
#include <netinet/in.h>
#include <poll.h>
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/fsuid.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

enum { STRANGER = 54321, CROWD = 10000 };

#define LONG (2 * PATIENCE_S * PCCL_S)

static bool no_netlink; /* as in a sandbox that has no sock_diag */

int __real_socket(int family, int type, int protocol);
int __wrap_socket(int family, int type, int protocol);

int __wrap_socket(int family, int type, int protocol)
{
    if (family == AF_NETLINK && no_netlink) {
        errno = EPROTONOSUPPORT;
        return -1;
    }
    return __real_socket(family, type, protocol);
}

/* The kernel notes the user of the file system for a new socket. */
static void be(uid_t user)
{
    (void)setfsuid(user);
}

static bool can_be_others(void)
{
    return geteuid() == 0;
}

struct pair {
    int listener, caller, called; /* called -1: not accepted yet */
};

union name {
    struct sockaddr any;
    struct sockaddr_in in;
    struct sockaddr_in6 in6;
};

enum way { V4, V6, BOTH, WAYS }; /* BOTH: IPv4 to a socket of IPv6 */

static bool pair_open(struct pair *p, enum way way, uid_t listens, uid_t calls)
{
    union name name = {.in6 = {.sin6_family = AF_INET6}};
    socklen_t size = sizeof name.in6;
    int off = 0;
    if (way == V6) name.in6.sin6_addr = in6addr_loopback;
    if (way == V4) {
        name.in = (struct sockaddr_in){.sin_family = AF_INET,
                                       .sin_addr = {htonl(INADDR_LOOPBACK)}};
        size = sizeof name.in;
    }
    be(listens);
    *p = (struct pair){
        socket(name.any.sa_family, SOCK_STREAM | SOCK_CLOEXEC, 0), -1, -1};
    be(geteuid());
    if (way == BOTH)
        (void)setsockopt(p->listener, IPPROTO_IPV6, IPV6_V6ONLY, &off,
                         sizeof off);
    if (p->listener < 0 || bind(p->listener, &name.any, size) != 0) {
        if (p->listener >= 0) close(p->listener);
        return false; /* no IPv6 here */
    }
    assert_int_equal(listen(p->listener, 16), 0);
    size = sizeof name;
    assert_int_equal(getsockname(p->listener, &name.any, &size), 0);
    if (way == BOTH)
        name.in = (struct sockaddr_in){.sin_family = AF_INET,
                                       .sin_port = name.in6.sin6_port,
                                       .sin_addr = {htonl(INADDR_LOOPBACK)}};
    be(calls);
    p->caller = socket(name.any.sa_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
    be(geteuid());
    assert_true(p->caller >= 0);
    assert_int_equal(connect(p->caller, &name.any, size), 0);
    return true;
}

static void pair_accept(struct pair *p, uid_t user)
{
    be(user);
    p->called = accept4(p->listener, NULL, NULL, SOCK_CLOEXEC);
    be(geteuid());
    assert_true(p->called >= 0);
}

static void pair_close(struct pair *p)
{
    close(p->listener);
    if (p->called >= 0) close(p->called);
    if (p->caller >= 0) close(p->caller);
}

static void judge_pair(enum way way, uid_t listens, uid_t calls,
                       enum same_user of_caller, enum same_user of_called)
{
    struct pair p;
    uint32_t uid;
    if (!pair_open(&p, way, listens, calls)) return;
    assert_int_equal(same_user_of(p.caller, true, &uid), of_called);
    pair_accept(&p, listens);
    assert_int_equal(same_user_of(p.caller, true, &uid), of_called);
    if (of_called == SAME_USER_NO) assert_int_equal(uid, listens);
    assert_int_equal(same_user_of(p.called, false, &uid), of_caller);
    if (of_caller == SAME_USER_NO) assert_int_equal(uid, calls);
    close(p.caller); /* a socket that has ended is nobody's, not root's */
    p.caller = -1;
    assert_int_equal(same_user_of(p.called, false, &uid), SAME_USER_ENDED);
    pair_close(&p);
}

static void test_own_sockets(void **state)
{
    (void)state;
    for (int way = 0; way < WAYS; way++)
        judge_pair((enum way)way, geteuid(), geteuid(), SAME_USER_YES,
                   SAME_USER_YES);
}

static void test_sockets_of_others(void **state)
{
    (void)state;
    if (!can_be_others()) skip();
    for (int way = 0; way < WAYS; way++) {
        judge_pair((enum way)way, 0, STRANGER, SAME_USER_NO, SAME_USER_YES);
        judge_pair((enum way)way, STRANGER, 0, SAME_USER_YES, SAME_USER_NO);
    }
}

/* Root is admitted by every user, and no user by another. */
static void test_a_user_admits_root(void **state)
{
    (void)state;
    struct pair p, q;
    uint32_t uid;
    if (!can_be_others()) skip();
    assert_true(pair_open(&p, V4, STRANGER, 0));
    assert_true(pair_open(&q, V4, STRANGER, STRANGER + 1));
    pair_accept(&p, STRANGER);
    pair_accept(&q, STRANGER);
    assert_int_equal(seteuid(STRANGER), 0);
    enum same_user root = same_user_of(p.called, false, &uid);
    enum same_user other = same_user_of(q.called, false, &uid);
    assert_int_equal(seteuid(0), 0);
    assert_int_equal(root, SAME_USER_YES);
    assert_int_equal(other, SAME_USER_NO);
    assert_int_equal(uid, STRANGER + 1);
    pair_close(&p);
    pair_close(&q);
}

/* Only the short way tells a listener's user, before it has accepted. */
static void test_without_netlink(void **state)
{
    (void)state;
    uint32_t uid;
    no_netlink = true;
    for (int way = 0; way < WAYS; way++) {
        struct pair p;
        uid_t other = can_be_others() ? STRANGER : geteuid();
        if (!pair_open(&p, (enum way)way, geteuid(), other)) continue;
        pair_accept(&p, geteuid());
        assert_int_equal(same_user_of(p.caller, true, &uid), SAME_USER_YES);
        assert_int_equal(same_user_of(p.called, false, &uid),
                         can_be_others() ? SAME_USER_NO : SAME_USER_YES);
        pair_close(&p);
    }
    no_netlink = false;
}

static void test_a_variable_admits_all(void **state)
{
    (void)state;
    char why[128] = "";
    struct pair p;
    if (!can_be_others()) skip();
    assert_true(pair_open(&p, V4, 0, STRANGER));
    pair_accept(&p, 0);
    assert_false(same_user_admits(p.called, false, why, sizeof why));
    assert_non_null(strstr(why, "54321"));
    assert_int_equal(setenv("PCCL_INSECURE", "1", 1), 0);
    same_user_read_environment();
    assert_true(same_user_admits(p.called, false, why, sizeof why));
    assert_int_equal(unsetenv("PCCL_INSECURE"), 0);
    same_user_read_environment();
    assert_false(same_user_admits(p.called, false, why, sizeof why));
    pair_close(&p);
}

/* ---------------------------------------------------------- the coordinator */

static void member_check(struct bench *b, struct peer *member)
{
    static uint32_t calls;
    assert_int_equal(master_server_members(b->server), 1);
    struct wire_msg vote = {.type = WIRE_VOTE, .round = ++calls};
    vote.vote.kind = VOTE_PENDING;
    peer_send(member, &vote);
    peer_expect(member, WIRE_ANSWER);
}

static int crowd_size(void)
{
    struct rlimit r;
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &r), 0);
    r.rlim_cur = r.rlim_max;
    (void)setrlimit(RLIMIT_NOFILE, &r);
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &r), 0);
    return r.rlim_cur > CROWD + 1000 ? CROWD : (int)(r.rlim_cur / 2);
}

static int call(uint16_t port, uid_t user)
{
    struct sockaddr_in to = {.sin_family = AF_INET,
                             .sin_port = htons(port),
                             .sin_addr = {htonl(INADDR_LOOPBACK)}};
    be(user);
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    be(geteuid());
    assert_true(fd >= 0);
    int rc = connect(fd, (struct sockaddr *)&to, sizeof to);
    assert_true(rc == 0 || errno == EINPROGRESS);
    return fd;
}

/* Connections that say nothing, all open at once. Each costs one accept; the
 * member is served all the time, and a newcomer of this user comes in. */
static void crowd(uid_t user)
{
    struct bench b;
    struct peer member, newcomer;
    bench_open(&b, NULL, 1, LONG);
    peers_found(&member, 1, &b);
    int count = crowd_size();
    int *fds = calloc((size_t)count, sizeof *fds);
    assert_non_null(fds);
    int before = open_descriptors();
    struct mallinfo2 used = mallinfo2();
    uint16_t port = master_server_port(b.server);
    for (int i = 0; i < count; i++) {
        fds[i] = call(port, user);
        if (i % 16 == 0) ev_run(b.loop, EVRUN_NOWAIT);
    }
    member_check(&b, &member);
    struct mallinfo2 now = mallinfo2();
    assert_true(now.uordblks < used.uordblks + 4096 * (size_t)count);
    int held = open_descriptors() - before - count;
    assert_in_range(held, 0, user == geteuid() ? MASTER_STRANGERS_MAX : 4);
    peer_open(&newcomer, &b);
    peer_hello(&newcomer, 0, false);
    peer_expect(&newcomer, WIRE_WELCOME);
    peer_close(&newcomer);
    if (user != geteuid()) {
        for (int i = 0; i < count; i++) {
            struct pollfd p = {.fd = fds[i], .events = POLLIN};
            char text[300];
            while (poll(&p, 1, 0) == 0) ev_run(b.loop, EVRUN_NOWAIT);
            if (i > 0) continue;
            ssize_t n = recv(fds[i], text, sizeof text, 0);
            assert_true(n > 8); /* EVICT says why */
            assert_non_null(memmem(text, (size_t)n, "54321", 5));
        }
    }
    for (int i = 0; i < count; i++) close(fds[i]);
    member_check(&b, &member);
    free(fds);
    peer_close(&member);
    bench_close(&b);
}

static void test_a_crowd_of_another_user(void **state)
{
    (void)state;
    if (!can_be_others()) skip();
    crowd(STRANGER);
}

static void test_a_crowd_of_this_user(void **state)
{
    (void)state;
    crowd(geteuid());
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_own_sockets),
        cmocka_unit_test(test_sockets_of_others),
        cmocka_unit_test(test_a_user_admits_root),
        cmocka_unit_test(test_without_netlink),
        cmocka_unit_test(test_a_variable_admits_all),
        cmocka_unit_test(test_a_crowd_of_another_user),
        cmocka_unit_test(test_a_crowd_of_this_user),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
