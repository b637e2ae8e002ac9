/* test_resolver.c - tests of a resolver that hangs, and of a name whose first
 * address does not answer. This program's getaddrinfo stands before that of the
 * system. */
#include "cluster.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

#include <arpa/inet.h>
#include <dlfcn.h>
#include <errno.h>
#include <netdb.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define OK(call) assert_int_equal((call), pcclSuccess)

static sem_t asked, released;

typedef int lookup(const char *, const char *, const struct addrinfo *,
                   struct addrinfo **);

/* hangs.test has no address before the test says so; half.test has ::1 first,
 * then 127.0.0.1. */
__attribute__((visibility("default"))) int
getaddrinfo(const char *host, const char *service, const struct addrinfo *hints,
            struct addrinfo **found)
{
    lookup *real = (lookup *)(uintptr_t)dlsym(RTLD_NEXT, "getaddrinfo");
    bool numeric = hints && (hints->ai_flags & AI_NUMERICHOST);
    if (!numeric && host && strcmp(host, "hangs.test") == 0) {
        (void)sem_post(&asked);
        while (sem_wait(&released) != 0) continue;
        return EAI_AGAIN;
    }
    if (numeric || !host || strcmp(host, "half.test") != 0)
        return real(host, service, hints, found);
    int code = real("::1", service, hints, found);
    return code ? code : real("127.0.0.1", service, hints, &(*found)->ai_next);
}

static int setup(void **state)
{
    (void)state;
    return sem_init(&asked, 0, 0) || sem_init(&released, 0, 0);
}

static pcclComm_t *create(const char *masters, const char *announce)
{
    pcclCommCreateParams_t params = {.master_address = cluster_address(1),
                                     .p2p_connection_pool_size = 1};
    pcclComm_t *comm = NULL;
    pcclCommOptions_t options = {.size = sizeof options,
                                 .rank_hint = -1,
                                 .deadline_ms = 300,
                                 .masters = masters,
                                 .announce = announce};
    OK(pcclCreateCommunicator(&params, &comm));
    OK(pcclSetOptions(comm, &options));
    return comm;
}

static void *connect_thread(void *comm)
{
    return (void *)(intptr_t)pcclConnect(comm);
}

/* Its connect is in the resolver. */
static pthread_t begin(pcclComm_t *comm)
{
    pthread_t thread;
    assert_int_equal(pthread_create(&thread, NULL, connect_thread, comm), 0);
    while (sem_wait(&asked) != 0) continue;
    return thread;
}

static int join(pthread_t thread)
{
    void *result = NULL;
    assert_int_equal(pthread_join(thread, &result), 0);
    return (int)(intptr_t)result;
}

static void release(int lookups)
{
    while (lookups-- > 0) (void)sem_post(&released);
}

static void cancel_ends_a_lookup(void **state)
{
    (void)state;
    pcclComm_t *comm = create("hangs.test:48148", NULL);
    pthread_t thread = begin(comm);
    OK(pcclCancel(comm));
    assert_int_equal(join(thread), pcclCancelled);
    OK(pcclResume(comm));
    OK(pcclSetTimeLimit(comm, 50));
    thread = begin(comm);
    assert_int_equal(join(thread), pcclTimedOut);
    OK(pcclSetTimeLimit(comm, 0));
    thread = begin(comm);
    release(3); /* it answers: no address */
    assert_int_equal(join(thread), pcclMasterConnectionFailed);
    OK(pcclDestroyCommunicator(comm));
}

static void the_end_of_a_communicator_ends_a_lookup(void **state)
{
    (void)state;
    pcclComm_t *comm = create("127.0.0.1:1", "hangs.test:7000");
    pthread_t thread = begin(comm);
    OK(pcclDestroyCommunicator(comm));
    assert_int_equal(join(thread), pcclCancelled);
    release(1);
}

/* A listener of ::1 whose queue is full, so that a dial gets no answer. */
static int open_hole(uint16_t port, int *dials, int count)
{
    const int on = 1;
    struct sockaddr_in6 at = {.sin6_family = AF_INET6,
                              .sin6_addr = IN6ADDR_LOOPBACK_INIT,
                              .sin6_port = htons(port)};
    int fd = socket(AF_INET6, SOCK_STREAM, 0);
    if (fd < 0 || setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &on, sizeof on) ||
        bind(fd, (struct sockaddr *)&at, sizeof at) || listen(fd, 0))
        skip();
    for (int i = 0; i < count; i++) {
        dials[i] = socket(AF_INET6, SOCK_STREAM | SOCK_NONBLOCK, 0);
        int rc = connect(dials[i], (struct sockaddr *)&at, sizeof at);
        assert_true(rc == 0 || errno == EINPROGRESS);
    }
    return fd;
}

static void a_dead_first_address_costs_a_deadline(void **state)
{
    (void)state;
    enum { DIALS = 4 };
    pcclMasterInstance_t *master;
    uint16_t port;
    int dials[DIALS], size = 0;
    char masters[32];
    OK(pcclCreateMaster(cluster_address(0), &master));
    OK(pcclRunMaster(master));
    OK(pcclGetMasterPort(master, &port));
    int hole = open_hole(port, dials, DIALS);
    (void)snprintf(masters, sizeof masters, "half.test:%u", port);
    pcclComm_t *comm = create(masters, NULL);
    OK(pcclConnect(comm));
    OK(pcclGetAttribute(comm, PCCL_ATTRIBUTE_GLOBAL_WORLD_SIZE, &size));
    assert_int_equal(size, 1);
    OK(pcclDestroyCommunicator(comm));
    for (int i = 0; i < DIALS; i++) close(dials[i]);
    close(hole);
    OK(pcclDestroyMaster(master));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(cancel_ends_a_lookup, setup),
        cmocka_unit_test_setup(the_end_of_a_communicator_ends_a_lookup, setup),
        cmocka_unit_test_setup(a_dead_first_address_costs_a_deadline, setup),
    };
    if (pcclInit() != pcclSuccess) return 1;
    return cmocka_run_group_tests_name("resolver", tests, NULL, NULL);
}
