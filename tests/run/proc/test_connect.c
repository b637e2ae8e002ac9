/* test_connect.c - tests of a master that is not there yet, sends nothing, or
 * ends. */
#include "house.h"

#include <arpa/inet.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

/* A port of this machine without a listener. */
static int reserve(uint16_t *port)
{
    struct sockaddr_in at = {.sin_family = AF_INET,
                             .sin_addr = {htonl(INADDR_LOOPBACK)}};
    socklen_t size = sizeof at;
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    assert_int_equal(bind(fd, (struct sockaddr *)&at, sizeof at), 0);
    assert_int_equal(getsockname(fd, (struct sockaddr *)&at, &size), 0);
    *port = ntohs(at.sin_port);
    return fd;
}

static void refused_then_accepted(void **state)
{
    (void)state;
    struct house h = {0};
    uint16_t port;
    int fd = reserve(&port);
    h.address = cluster_address(port);
    pcclComm_t *comm = create(&h, 0);
    for (int i = 0; i < 3; i++)
        assert_int_equal(pcclConnect(comm), pcclMasterConnectionFailed);
    MISUSED(pcclUpdateTopology(comm));
    char text[128] = "";
    OK(pcclGetLastError(comm, text, sizeof text));
    assert_non_null(strstr(text, "cannot reach the master at 127.0.0.1:"));
    close(fd);
    assert_true(open_master(&h, cluster_address(port)));
    OK(pcclConnect(comm));
    assert_int_equal(attribute(comm, PCCL_ATTRIBUTE_GLOBAL_WORLD_SIZE), 1);
    OK(pcclDestroyCommunicator(comm));
    OK(pcclDestroyMaster(h.master));
}

/* A listener that accepts the connection and sends nothing. */
static void silent_master(void **state)
{
    (void)state;
    struct house h = {0};
    uint16_t port;
    int fd = reserve(&port);
    assert_int_equal(listen(fd, 4), 0);
    h.address = cluster_address(port);
    pcclComm_t *comm = create(&h, 0);
    pcclCommOptions_t options = {
        .size = sizeof options, .rank_hint = -1, .deadline_ms = 300};
    OK(pcclSetOptions(comm, &options));
    options.size = offsetof(pcclCommOptions_t, evicts_nobody); /* older */
    OK(pcclSetOptions(comm, &options));
    options.size--;
    assert_int_equal(pcclSetOptions(comm, &options), pcclInvalidArgument);
    int64_t begun = now_ms();
    assert_int_equal(pcclConnect(comm), pcclMasterConnectionFailed);
    assert_in_range(now_ms() - begun, 300, PATIENCE_MS);
    OK(pcclDestroyCommunicator(comm));
    close(fd);
}

static void master_vanishes(void **state)
{
    struct house *h = *state;
    OK(pcclInterruptMaster(h->master));
    OK(pcclMasterAwaitTermination(h->master));
    assert_int_equal(pcclUpdateTopology(h->a), pcclUpdateTopologyFailed);
    int64_t begun = now_ms();
    OK(pcclDestroyCommunicator(h->a));
    OK(pcclDestroyCommunicator(h->b));
    h->a = h->b = NULL;
    assert_in_range(now_ms() - begun, 0, PATIENCE_MS);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        TWO(master_vanishes),
        cmocka_unit_test(refused_then_accepted),
        cmocka_unit_test(silent_master),
    };
    if (argc > 1) cmocka_set_test_filter(argv[1]);
    /* What waits for the deadline of the run takes too long. */
    (void)setenv("PCCL_DEADLINE", PATIENT, 1);
    return cmocka_run_group_tests_name("proc/connect", tests, NULL, NULL);
}
