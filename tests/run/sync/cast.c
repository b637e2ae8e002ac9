/* cast.c - runs the peers of a test in threads. */
#include "cast.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static uint32_t deadline;

static ccoip_socket_address_t loopback(uint16_t port)
{
    ccoip_socket_address_t a = {.inet = {.protocol = inetIPv4}, .port = port};
    a.inet.ipv4.data[0] = 127;
    a.inet.ipv4.data[3] = 1;
    return a;
}

void cast_open(struct cast *c, uint32_t deadline_ms)
{
    char seconds[32];
    memset(c, 0, sizeof *c);
    deadline = deadline_ms;
    snprintf(seconds, sizeof seconds, "%u.%03u", deadline_ms / 1000,
             deadline_ms % 1000);
    setenv("PCCL_DEADLINE", seconds, 1);
    pcclResult_t rc = pcclInit();
    assert(rc == pcclSuccess);
    rc = pcclCreateMaster(loopback(0), &c->master);
    assert(rc == pcclSuccess);
    rc = pcclRunMaster(c->master);
    assert(rc == pcclSuccess);
    rc = pcclGetMasterPort(c->master, &c->port);
    assert(rc == pcclSuccess);
    (void)rc;
}

void cast_close(struct cast *c)
{
    for (int i = 0; i < CAST_MAX; i++) cast_leave(c, i);
    (void)pcclInterruptMaster(c->master);
    (void)pcclMasterAwaitTermination(c->master);
    (void)pcclDestroyMaster(c->master);
}

static void *connect_actor(void *actor)
{
    struct actor *a = actor;
    a->result = pcclConnect(a->comm);
    return NULL;
}

static int world_of(const pcclComm_t *comm)
{
    int world = 0;
    (void)pcclGetAttribute(comm, PCCL_ATTRIBUTE_GLOBAL_WORLD_SIZE, &world);
    return world;
}

void cast_join(struct cast *c, int i, uint32_t g)
{
    struct actor *a = &c->actors[i];
    pcclCommCreateParams_t params = {.master_address = loopback(c->port),
                                     .peer_group = g};
    pcclResult_t rc = pcclCreateCommunicator(&params, &a->comm);
    assert(rc == pcclSuccess);
    (void)rc;
    pcclComm_t *joining = a->comm;
    a->comm = NULL;
    int there = 0;
    int first = -1;
    enum cast_act acts[CAST_MAX];
    for (int k = 0; k < CAST_MAX; k++) {
        acts[k] = c->actors[k].act;
        c->actors[k].act = CAST_UPDATE;
        if (!c->actors[k].comm) continue;
        if (first < 0) first = k;
        there++;
    }
    struct actor guest = {.comm = joining};
    pthread_create(&guest.thread, NULL, connect_actor, &guest);
    while (there > 0 && world_of(c->actors[first].comm) < there + 1)
        cast_run(c);
    pthread_join(guest.thread, NULL);
    assert(guest.result == pcclSuccess);
    for (int k = 0; k < CAST_MAX; k++) c->actors[k].act = acts[k];
    a->comm = joining;
    a->group = g;
}

void cast_leave(struct cast *c, int i)
{
    if (!c->actors[i].comm) return;
    (void)pcclDestroyCommunicator(c->actors[i].comm);
    c->actors[i].comm = NULL;
}

static void *play(void *actor)
{
    struct actor *a = actor;
    float one = 1;
    float sum = 0;
    pcclReduceDescriptor_t d = {
        .count = 1,
        .tag = 5,
        .src_descriptor = {pcclFloat, pcclDistributionNone}};
    a->info = (pcclSharedStateSyncInfo_t){SIZE_MAX, SIZE_MAX};
    a->error[0] = '\0';
    switch (a->act) {
    case CAST_IDLE:
        break;
    case CAST_SYNC:
        a->result = pcclSynchronizeSharedState(a->comm, &a->state, a->strategy,
                                               &a->info);
        break;
    case CAST_UPDATE:
        a->result = pcclUpdateTopology(a->comm);
        break;
    case CAST_REDUCE:
        a->result = pcclAllReduce(&one, &sum, &d, a->comm, NULL);
        break;
    }
    if (a->result != pcclSuccess)
        (void)pcclGetLastError(a->comm, a->error, sizeof a->error);
    return NULL;
}

void cast_run(struct cast *c)
{
    for (int i = 0; i < CAST_MAX; i++) {
        if (c->actors[i].comm)
            pthread_create(&c->actors[i].thread, NULL, play, &c->actors[i]);
    }
    for (int i = 0; i < CAST_MAX; i++) {
        if (c->actors[i].comm) pthread_join(c->actors[i].thread, NULL);
    }
}

void cast_tensor(struct cast *c, int i, const char *name, void *data,
                 size_t count, pcclDataType_t type)
{
    struct actor *a = &c->actors[i];
    assert(a->state.count < CAST_TENSORS_MAX);
    a->infos[a->state.count++] = (pcclTensorInfo_t){
        .name = name, .data = data, .count = count, .datatype = type};
    a->state.infos = a->infos;
}

void cast_clear(struct cast *c)
{
    for (int i = 0; i < CAST_MAX; i++) {
        struct actor *a = &c->actors[i];
        memset(&a->state, 0, sizeof a->state);
        memset(a->infos, 0, sizeof a->infos);
        a->act = CAST_SYNC;
        a->strategy = PCCL_SHARED_STATE_SYNC_STRATEGY_ENFORCE_POPULAR;
    }
}
