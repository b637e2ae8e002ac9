/* test_announce.c - where a member listens, and where it says that it is
 * reached: a port that is forwarded, one that leads nowhere, ranges that are
 * used up, texts that are wrong, and IPv6 (rules N1 to N3). */
#include "house.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

static struct sockaddr_in loopback(uint16_t port)
{
    struct sockaddr_in a = {.sin_family = AF_INET, .sin_port = htons(port)};
    a.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    return a;
}

/* A socket that holds a free port; it listens if `backlog` is not 0. */
static int hold(uint16_t *port, int backlog)
{
    struct sockaddr_in a = loopback(0);
    socklen_t size = sizeof a;
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(bind(fd, (struct sockaddr *)&a, sizeof a), 0);
    if (backlog > 0) assert_int_equal(listen(fd, backlog), 0);
    assert_int_equal(getsockname(fd, (struct sockaddr *)&a, &size), 0);
    *port = ntohs(a.sin_port);
    return fd;
}

/* ------------------------------------------------------------ the forwarder */

enum { PAIRS_MAX = 32 };

/* What a router does that forwards a port. */
struct forwarder {
    int fd, stop[2];
    uint16_t port, to;
    atomic_uint_fast64_t bytes;
    pthread_t thread;
    struct pollfd fds[2 + 2 * PAIRS_MAX]; /* stop, fd, then pairs */
    nfds_t count;
};

static void take_pair(struct forwarder *f)
{
    struct sockaddr_in to = loopback(f->to);
    int in = accept(f->fd, NULL, NULL);
    int out = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (in < 0) {
        (void)close(out);
        return;
    }
    if (f->count + 2 > 2 + 2 * PAIRS_MAX ||
        connect(out, (struct sockaddr *)&to, sizeof to) != 0) {
        (void)close(in);
        (void)close(out);
        return;
    }
    f->fds[f->count++] = (struct pollfd){.fd = in, .events = POLLIN};
    f->fds[f->count++] = (struct pollfd){.fd = out, .events = POLLIN};
}

static bool copy(struct forwarder *f, nfds_t i)
{
    char bytes[65536];
    nfds_t other = 2 + ((i - 2) ^ 1);
    ssize_t n = read(f->fds[i].fd, bytes, sizeof bytes);
    if (n <= 0) return false;
    atomic_fetch_add(&f->bytes, (uint64_t)n);
    for (ssize_t done = 0; done < n;) {
        ssize_t sent = send(f->fds[other].fd, bytes + done, (size_t)(n - done),
                            MSG_NOSIGNAL);
        if (sent <= 0) return false;
        done += sent;
    }
    return true;
}

static void *forward(void *forwarder)
{
    struct forwarder *f = forwarder;
    while (poll(f->fds, f->count, -1) > 0 && f->fds[0].revents == 0) {
        nfds_t count = f->count;
        for (nfds_t i = 2; i < count; i++) {
            if (f->fds[i].revents == 0 || copy(f, i)) continue;
            nfds_t first = 2 + ((i - 2) & ~(nfds_t)1);
            for (nfds_t k = first; k < first + 2; k++) {
                (void)close(f->fds[k].fd);
                f->fds[k] = (struct pollfd){.fd = -1};
            }
        }
        if (f->fds[1].revents != 0) take_pair(f);
    }
    return NULL;
}

static void forwarder_start(struct forwarder *f, uint16_t to)
{
    *f = (struct forwarder){.to = to, .count = 2};
    f->fd = hold(&f->port, 64);
    assert_int_equal(pipe(f->stop), 0);
    f->fds[0] = (struct pollfd){.fd = f->stop[0], .events = POLLIN};
    f->fds[1] = (struct pollfd){.fd = f->fd, .events = POLLIN};
    f->thread = spawn(forward, f);
}

static void forwarder_stop(struct forwarder *f)
{
    (void)close(f->stop[1]);
    (void)join(f->thread);
    for (nfds_t i = 0; i < f->count; i++)
        if (f->fds[i].fd >= 0) (void)close(f->fds[i].fd);
}

/* ------------------------------------------------------------------- runs */

static pcclResult_t set(pcclComm_t *comm, const char *ports,
                        const char *announce)
{
    const pcclCommOptions_t options = {.size = sizeof options,
                                       .rank_hint = -1,
                                       .ports = ports,
                                       .announce = announce};
    return pcclSetOptions(comm, &options);
}

struct sum {
    pcclComm_t *comm;
    float value;
};

static void *reduce(void *sum)
{
    struct sum *s = sum;
    pcclReduceInfo_t info;
    pcclReduceDescriptor_t d = {.count = 1,
                                .op = pcclSum,
                                .tag = 1,
                                .src_descriptor = {.datatype = pcclFloat}};
    float from = s->value;
    return (void *)(intptr_t)pcclAllReduce(&from, &s->value, &d, s->comm,
                                           &info);
}

static void reduces(const struct house *h)
{
    struct sum a = {h->a, 1}, b = {h->b, 2};
    pthread_t other = spawn(reduce, &b);
    assert_int_equal((int)(intptr_t)reduce(&a), pcclSuccess);
    assert_int_equal(join(other), pcclSuccess);
    assert_true(a.value == 3 && b.value == 3);
    assert_int_equal(attribute(h->a, PCCL_ATTRIBUTE_GLOBAL_WORLD_SIZE), 2);
}

/* The port that is held here is free a moment later; if somebody else has it by
 * then, another one is. */
static uint16_t listen_somewhere(pcclComm_t *comm, struct forwarder *f)
{
    char ports[16], announce[32];
    uint16_t port;
    (void)close(hold(&port, 0));
    forwarder_start(f, port);
    (void)snprintf(ports, sizeof ports, "%u", (unsigned)port);
    (void)snprintf(announce, sizeof announce, "127.0.0.1:%u",
                   (unsigned)f->port);
    OK(set(comm, ports, announce));
    return port;
}

static void a_forwarded_port(void **state)
{
    struct house *h = *state;
    struct forwarder f;
    OK(pcclConnect(h->a));
    h->b = create(h, 0);
    (void)listen_somewhere(h->b, &f);
    admit(h->a, h->b);
    reduces(h);
    /* a has dialed b there, as its id is the lower one (R3b) */
    assert_true(atomic_load(&f.bytes) > 1000);
    OK(pcclDestroyCommunicator(h->b));
    h->b = NULL;
    forwarder_stop(&f);
}

static void nothing_is_announced(void **state)
{
    reduces(*state);
}

static void the_announced_one_leads_nowhere(void **state)
{
    struct house *h = *state;
    char announce[32];
    uint16_t port;
    int fd = hold(&port, 0); /* refuses */
    OK(pcclConnect(h->a));
    h->b = create(h, 0);
    (void)snprintf(announce, sizeof announce, "127.0.0.1:%u", (unsigned)port);
    OK(set(h->b, NULL, announce));
    admit(h->a, h->b);
    reduces(h);
    (void)close(fd);
}

/* ------------------------------------------------------------------- errors */

static void says(const pcclComm_t *comm, const char *part)
{
    char text[256] = "";
    OK(pcclGetLastError(comm, text, sizeof text));
    if (!strstr(text, part)) fail_msg("%s: no %s", text, part);
}

static void used_up(void **state)
{
    struct house *h = *state;
    char ports[16], text[64];
    uint16_t port;
    int fd = hold(&port, 1);
    (void)snprintf(ports, sizeof ports, "%u", (unsigned)port);
    (void)snprintf(text, sizeof text, "all ports of %u-%u", (unsigned)port,
                   (unsigned)port);
    OK(set(h->a, ports, NULL));
    assert_int_equal(pcclConnect(h->a), pcclMasterConnectionFailed);
    says(h->a, text);
    /* the next one that is free */
    (void)snprintf(ports, sizeof ports, "%u-65535", (unsigned)port);
    OK(set(h->a, ports, NULL));
    OK(pcclConnect(h->a));
    (void)close(fd);
}

static void wrong_texts(void **state)
{
    struct house *h = *state;
    static const struct {
        const char *ports, *announce, *text;
    } rows[] = {
        {"9-3", NULL, "PCCL_PORTS=9-3"},
        {"0", NULL, "PCCL_PORTS=0"},
        {"1-65536", NULL, "PCCL_PORTS=1-65536"},
        {"a", NULL, "PCCL_PORTS=a"},
        {"5-", NULL, "PCCL_PORTS=5-"},
        {NULL, ":9", "PCCL_ANNOUNCE=:9"},
        {NULL, "a b", "PCCL_ANNOUNCE=a b"},
        {NULL, "0.0.0.0:5", "no address of one host"},
        {NULL, "224.0.0.1:5", "no address of one host"},
        {NULL, "no.such.host.invalid", "PCCL_ANNOUNCE=no.such.host.invalid: "},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        OK(set(h->a, rows[i].ports, rows[i].announce));
        REFUSED(pcclConnect(h->a));
        says(h->a, rows[i].text);
    }
    REFUSED(set(h->a, "1234567890-123456", NULL));
    /* The environment is for what the program leaves open. */
    OK(set(h->a, NULL, NULL));
    setenv("PCCL_PORTS", "x", 1);
    REFUSED(pcclConnect(h->a));
    says(h->a, "PCCL_PORTS=x");
    OK(set(h->a, "1024-65535", NULL));
    OK(pcclConnect(h->a));
    unsetenv("PCCL_PORTS");
}

/* --------------------------------------------------------------------- IPv6 */

static int open_v6(void **state)
{
    struct house *h = calloc(1, sizeof *h);
    ccoip_socket_address_t at;
    OK(pcclInit());
    OK(pcclParseAddress("[::1]:0", 0, &at));
    *state = h;
    if (!open_master(h, at)) return 0; /* no IPv6 here */
    h->a = create(h, 0);
    h->b = create(h, 0);
    return 0;
}

static void over_v6(void **state)
{
    struct house *h = *state;
    if (!h->a) skip();
    OK(set(h->a, NULL, "[::1]"));
    OK(set(h->b, NULL, "localhost"));
    OK(pcclConnect(h->a));
    admit(h->a, h->b);
    reduces(h);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        ONE(a_forwarded_port),
        TWO(nothing_is_announced),
        ONE(the_announced_one_leads_nowhere),
        ONE(used_up),
        ONE(wrong_texts),
        cmocka_unit_test_setup_teardown(over_v6, open_v6, close_house),
    };
    return cmocka_run_group_tests_name("proc/announce", tests, NULL, NULL);
}
