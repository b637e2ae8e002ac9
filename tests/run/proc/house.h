/* house.h - a master and up to two communicators in this process: the fixture
 * of test_api.c and test_connect.c. */
#ifndef PROC_HOUSE_H
#define PROC_HOUSE_H

#include "cluster.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>
#include <pthread.h>
#include <stdlib.h>

#define OK(call) assert_int_equal((call), pcclSuccess)
#define REFUSED(call) assert_int_equal((call), pcclInvalidArgument)
#define MISUSED(call) assert_int_equal((call), pcclInvalidUsage)

struct house {
    pcclMasterInstance_t *master;
    ccoip_socket_address_t address;
    pcclComm_t *a, *b;
};

static pcclComm_t *create(const struct house *h, uint32_t group)
{
    pcclCommCreateParams_t params = {.master_address = h->address,
                                     .peer_group = group,
                                     .p2p_connection_pool_size = 2};
    pcclComm_t *comm = NULL;
    OK(pcclCreateCommunicator(&params, &comm));
    return comm;
}

static bool open_master(struct house *h, ccoip_socket_address_t at)
{
    h->address = at;
    OK(pcclCreateMaster(at, &h->master));
    if (pcclRunMaster(h->master) != pcclSuccess) return false;
    OK(pcclGetMasterPort(h->master, &h->address.port));
    return true;
}

static void *connect_thread(void *comm)
{
    return (void *)(intptr_t)pcclConnect(comm);
}

static pthread_t spawn(void *(*run)(void *), void *arg)
{
    pthread_t thread;
    assert_int_equal(pthread_create(&thread, NULL, run, arg), 0);
    return thread;
}

static int join(pthread_t thread)
{
    void *result = NULL;
    assert_int_equal(pthread_join(thread, &result), 0);
    return (int)(intptr_t)result;
}

/* Admits b to the world of a. */
static void admit(pcclComm_t *a, pcclComm_t *b)
{
    pthread_t newcomer = spawn(connect_thread, b);
    bool pending = false;
    while (!pending) OK(pcclArePeersPending(a, &pending));
    OK(pcclUpdateTopology(a));
    assert_int_equal(join(newcomer), pcclSuccess);
}

static int open_one(void **state)
{
    struct house *h = calloc(1, sizeof *h);
    OK(pcclInit());
    if (!open_master(h, cluster_address(0))) return -1;
    h->a = create(h, 0);
    *state = h;
    return 0;
}

static int open_two(void **state)
{
    if (open_one(state) != 0) return -1;
    struct house *h = *state;
    h->b = create(h, 0);
    OK(pcclConnect(h->a));
    admit(h->a, h->b);
    return 0;
}

static int close_house(void **state)
{
    struct house *h = *state;
    if (h->a) OK(pcclDestroyCommunicator(h->a));
    if (h->b) OK(pcclDestroyCommunicator(h->b));
    OK(pcclDestroyMaster(h->master));
    free(h);
    return 0;
}

static int attribute(const pcclComm_t *comm, pcclAttribute_t which)
{
    int value = -1;
    OK(pcclGetAttribute(comm, which, &value));
    return value;
}

#define ONE(name) cmocka_unit_test_setup_teardown(name, open_one, close_house)
#define TWO(name) cmocka_unit_test_setup_teardown(name, open_two, close_house)

#endif
