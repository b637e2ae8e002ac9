/* test_cma.c - tests that data read by CMA (rule P2P-9) are discarded if the
 * owner may have reused the memory meanwhile. */
#include "cluster.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

enum { READ = 1, WRITTEN, OLD }; /* reports */
enum { RANKS = 2, BYTES = 8 * 1024 * 1024, KEY = 7, BEFORE = 1, AFTER = 2 };

static const struct seat *reader;

/* Replaces the system call. After the data are read, the owner's connection
 * ends and its memory is overwritten. */
__attribute__((visibility("default"))) ssize_t
process_vm_readv(pid_t pid, const struct iovec *to, unsigned long to_count,
                 const struct iovec *from, unsigned long from_count,
                 unsigned long flags)
{
    ssize_t size = syscall(SYS_process_vm_readv, (long)pid, to, to_count, from,
                           from_count, flags);
    if (reader) {
        seat_report(reader, READ, size);
        (void)seat_hear(reader);
        reader = NULL;
    }
    return size;
}

/* Shuts down every connection to another member. */
static void cut(const struct seat *seat)
{
    for (int fd = 3; fd < 256; fd++) {
        struct sockaddr_storage name;
        socklen_t size = sizeof name;
        if (getpeername(fd, (struct sockaddr *)&name, &size) != 0) continue;
        uint16_t port = 0;
        if (name.ss_family == AF_INET)
            port = ntohs(((struct sockaddr_in *)&name)->sin_port);
        if (name.ss_family == AF_INET6)
            port = ntohs(((struct sockaddr_in6 *)&name)->sin6_port);
        if (port != 0 && port != seat->port) (void)shutdown(fd, SHUT_RDWR);
    }
}

static pcclComm_t *join(struct seat *seat, uint64_t *other)
{
    setenv("PCCL_TRANSPORT", "shm", 1);
    pcclComm_t *comm = seat_join(seat);
    seat_gather(seat, comm, RANKS);
    pcclMember_t members[RANKS];
    int rank = -1;
    SEAT_EQUAL(seat, pcclGetView(comm, NULL, &rank, NULL, members, RANKS),
               pcclSuccess);
    *other = members[1 - rank].id;
    return comm;
}

static void lend(struct seat *seat)
{
    uint64_t other;
    pcclComm_t *comm = join(seat, &other);
    char *data = malloc(BYTES);
    SEAT_CHECK(seat, data != NULL);
    memset(data, BEFORE, BYTES);
    SEAT_EQUAL(seat, pcclSendBulk(comm, other, KEY, data, BYTES), pcclSuccess);
    struct pollfd order = {.fd = seat->order_fd, .events = POLLIN};
    pcclEvent_t event;
    while (poll(&order, 1, 0) == 0) {
        SEAT_EQUAL(seat, pcclTakeEvent(comm, 5, &event), pcclSuccess);
        SEAT_EQUAL(seat, event.kind, pcclEventNone);
    }
    (void)seat_hear(seat);
    cut(seat);
    memset(data, AFTER, BYTES);
    seat_report(seat, WRITTEN, 0);
    SEAT_EQUAL(seat, pcclTakeEvent(comm, PATIENCE_MS, &event), pcclSuccess);
    SEAT_EQUAL(seat, event.kind, pcclEventBulkSent);
    SEAT_EQUAL(seat, event.result, pcclSuccess);
    SEAT_EQUAL(seat, pcclDestroyCommunicator(comm), pcclSuccess);
    free(data);
}

static void borrow(struct seat *seat)
{
    uint64_t other;
    pcclComm_t *comm = join(seat, &other);
    char *data = calloc(1, BYTES);
    SEAT_CHECK(seat, data != NULL);
    reader = seat;
    SEAT_EQUAL(seat, pcclExpectBulk(comm, other, KEY, data, BYTES),
               pcclSuccess);
    pcclEvent_t event;
    SEAT_EQUAL(seat, pcclTakeEvent(comm, PATIENCE_MS, &event), pcclSuccess);
    SEAT_EQUAL(seat, event.kind, pcclEventBulkReceived);
    SEAT_EQUAL(seat, event.result, pcclSuccess);
    int64_t old = 0;
    for (int i = 0; i < BYTES; i++) old += data[i] != AFTER;
    seat_report(seat, OLD, old);
    SEAT_EQUAL(seat, pcclDestroyCommunicator(comm), pcclSuccess);
    free(data);
}

static void test_what_may_be_gone_is_not_believed(void **state)
{
    struct cluster *c = *state;
    cluster_start(c, "20");
    int lender = cluster_add(c, lend, NULL);
    int borrower = cluster_add(c, borrow, NULL);
    (void)cluster_await(c, borrower, READ);
    cluster_order(c, lender, 0);
    (void)cluster_await(c, lender, WRITTEN);
    cluster_order(c, borrower, 0);
    assert_int_equal(cluster_await(c, borrower, OLD), 0);
    cluster_finish(c, lender);
    cluster_finish(c, borrower);
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
        cmocka_unit_test_setup_teardown(test_what_may_be_gone_is_not_believed,
                                        start, stop),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
