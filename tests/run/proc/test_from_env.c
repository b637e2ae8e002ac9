/* test_from_env.c - addresses and the environment: pcclParseAddress,
 * pcclConnectFromEnv, ranks as launched, versions. With an argument it is a
 * rank of pccl-master's. */
#include "house.h"

#include <stdio.h>
#include <string.h>

/* ------------------------------------------------------------- addresses */

static void addresses(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        uint8_t v4[4];
        uint16_t port;
        bool v6; /* the loopback of IPv6 */
    } good[] = {
        {"127.0.0.1:80", {127, 0, 0, 1}, 80, false},
        {"10.1.2.3", {10, 1, 2, 3}, 7, false},
        {"[::1]:80", {0}, 80, true},
        {"[::1]", {0}, 7, true},
        {"::1", {0}, 7, true},
        {":65535", {127, 0, 0, 1}, 65535, false},
        {"4000", {127, 0, 0, 1}, 4000, false},
    };
    static const char *const bad[] = {"",     "a:65536", "a:",     "a:x",
                                      "[::1", "[]:8",    "[::1]8", "a b:80"};
    for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
        ccoip_socket_address_t a;
        memset(&a, 0xff, sizeof a);
        OK(pcclParseAddress(good[i].text, 7, &a));
        assert_int_equal(a.port, good[i].port);
        assert_int_equal(a.inet.protocol, good[i].v6 ? inetIPv6 : inetIPv4);
        if (good[i].v6)
            assert_int_equal(a.inet.ipv6.data[15], 1);
        else
            assert_memory_equal(a.inet.ipv4.data, good[i].v4, 4);
    }
    ccoip_socket_address_t a = {.port = 9};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        REFUSED(pcclParseAddress(bad[i], 7, &a));
    REFUSED(pcclParseAddress(NULL, 7, &a));
    REFUSED(pcclParseAddress("1", 7, NULL));
    assert_int_equal(pcclParseAddress("no.such.host.invalid:1", 7, &a),
                     pcclMasterConnectionFailed);
    assert_int_equal(a.port, 9);
    OK(pcclParseAddress("localhost:80", 7, &a));
    assert_int_equal(a.port, 80);
}

static void versions(void **state)
{
    (void)state;
    int version = 0;
    OK(pcclGetVersion(&version));
    assert_int_equal(version, PCCL_VERSION);
    assert_int_equal(version, PCCL_VERSION_MAJOR * 10000 +
                                  PCCL_VERSION_MINOR * 100 +
                                  PCCL_VERSION_PATCH);
    REFUSED(pcclGetVersion(NULL));
}

/* ----------------------------------------------------------- environment */

static void says(const pcclComm_t *comm, const char *part)
{
    char text[256] = "";
    OK(pcclGetLastError(comm, text, sizeof text));
    if (!strstr(text, part)) fail_msg("%s: no %s", text, part);
}

static pcclResult_t connect_by(const char *master, pcclComm_t **comm)
{
    if (master)
        setenv("PCCL_MASTER", master, 1);
    else
        unsetenv("PCCL_MASTER");
    return pcclConnectFromEnv(NULL, comm);
}

static void environment(void **state)
{
    struct house *h = *state;
    char text[128];
    pcclComm_t *comm = NULL;
    MISUSED(connect_by(NULL, &comm));
    says(comm, "PCCL_MASTER");
    OK(pcclDestroyCommunicator(comm));
    REFUSED(connect_by("here and there:9", &comm));
    says(comm, "PCCL_MASTER=here and there:9: it is not host:port");
    OK(pcclDestroyCommunicator(comm));
    assert_int_equal(connect_by("no.such.host.invalid:1", &comm),
                     pcclMasterConnectionFailed);
    says(comm, "PCCL_MASTER=no.such.host.invalid:1");
    OK(pcclDestroyCommunicator(comm));
    REFUSED(pcclConnectFromEnv(NULL, NULL));

    (void)snprintf(text, sizeof text, "127.0.0.1:%u", h->address.port);
    setenv("PCCL_RANK", "3", 1);
    pcclCommCreateParams_t params = {.peer_group = 5};
    setenv("PCCL_MASTER", text, 1);
    OK(pcclConnectFromEnv(&params, &comm));
    unsetenv("PCCL_RANK");
    assert_int_equal(attribute(comm, PCCL_ATTRIBUTE_RANK), 0);
    assert_int_equal(attribute(comm, PCCL_ATTRIBUTE_LAUNCH_RANK), 3);
    /* "localhost" may name an address at which nobody listens first. */
    (void)snprintf(text, sizeof text, "localhost:%u", h->address.port);
    OK(pcclDestroyCommunicator(comm));
    OK(connect_by(text, &comm));
    assert_int_equal(attribute(comm, PCCL_ATTRIBUTE_LAUNCH_RANK), -1);
    MISUSED(pcclConnect(comm));
    OK(pcclDestroyCommunicator(comm));

    /* A list: the first is not there, the second has no name, the third is. */
    (void)snprintf(text, sizeof text,
                   "127.0.0.1:1,no.such.host.invalid,[::1]:1,"
                   ":%u",
                   h->address.port);
    OK(connect_by(text, &comm));
    OK(pcclDestroyCommunicator(comm));
    REFUSED(connect_by("127.0.0.1:1,,127.0.0.1:2", &comm));
    says(comm, "it is not host:port");
    OK(pcclDestroyCommunicator(comm));
    setenv("PCCL_MASTER_PATIENCE", "1", 1);
    assert_int_equal(connect_by("127.0.0.1:1,127.0.0.1:2", &comm),
                     pcclMasterConnectionFailed);
    says(comm, "cannot reach the master at 127.0.0.1:2");
    OK(pcclDestroyCommunicator(comm));
    unsetenv("PCCL_MASTER_PATIENCE");
}

static void attributes_before_connect(void **state)
{
    struct house *h = *state;
    int value = 77;
    for (int i = 1; i <= PCCL_ATTRIBUTE_LAUNCH_RANK; i++)
        MISUSED(pcclGetAttribute(h->a, (pcclAttribute_t)i, &value));
    assert_int_equal(value, 77);
}

static void ranks_of_two(void **state)
{
    struct house *h = *state;
    assert_int_equal(attribute(h->a, PCCL_ATTRIBUTE_RANK), 0);
    assert_int_equal(attribute(h->b, PCCL_ATTRIBUTE_RANK), 1);
    assert_int_equal(attribute(h->b, PCCL_ATTRIBUTE_LAUNCH_RANK), -1);
}

/* ------------------------------------------------------ started by pccl-master
 */

static int launched(void)
{
    const char *given = getenv("PCCL_RANK");
    pcclComm_t *comm = NULL;
    int rank = -1;
    int hint = -1;
    if (pcclInit() != pcclSuccess ||
        pcclConnectFromEnv(NULL, &comm) != pcclSuccess ||
        pcclGetAttribute(comm, PCCL_ATTRIBUTE_RANK, &rank) != pcclSuccess ||
        pcclGetAttribute(comm, PCCL_ATTRIBUTE_LAUNCH_RANK, &hint) !=
            pcclSuccess ||
        pcclDestroyCommunicator(comm) != pcclSuccess)
        return 1;
    return given && strtol(given, NULL, 10) == rank && hint == rank ? 0 : 2;
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        ONE(attributes_before_connect),
        cmocka_unit_test(addresses),
        cmocka_unit_test(versions),
        ONE(environment),
        TWO(ranks_of_two),
    };
    if (argc > 1 && strcmp(argv[1], "launched") == 0) return launched();
    if (argc > 1) cmocka_set_test_filter(argv[1]);
    return cmocka_run_group_tests_name("proc/from_env", tests, NULL, NULL);
}
