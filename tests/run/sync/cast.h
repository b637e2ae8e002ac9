/* cast.h - a master and up to CAST_MAX peers in one process, for tests of
 * shared state. All peers make each call at once, one thread each; the test's
 * own thread then checks the results. */
#ifndef PCCL_TEST_CAST_H
#define PCCL_TEST_CAST_H

#include "../../../include/pccl.h"

#include <pthread.h>
#include <stdint.h>

enum { CAST_MAX = 8, CAST_TENSORS_MAX = 16 };

enum cast_act {
    CAST_IDLE, /* makes no call */
    CAST_SYNC,
    CAST_UPDATE,
    CAST_REDUCE, /* an all-reduce of one float, tag 5 */
};

struct actor {
    pcclComm_t *comm; /* NULL: absent */
    uint32_t group;
    enum cast_act act;
    pcclSharedState_t state;
    pcclTensorInfo_t infos[CAST_TENSORS_MAX];
    pcclSharedStateSyncStrategy_t strategy;
    /* outcome */
    pcclResult_t result;
    pcclSharedStateSyncInfo_t info;
    char error[256];
    pthread_t thread;
};

struct cast {
    pcclMasterInstance_t *master;
    uint16_t port;
    struct actor actors[CAST_MAX];
};

void cast_open(struct cast *c, uint32_t deadline_ms);
void cast_close(struct cast *c);
/* Actor i joins group g with the next rank. */
void cast_join(struct cast *c, int i, uint32_t g);
void cast_leave(struct cast *c, int i);
/* All present actors make their calls; returns when all have returned. */
void cast_run(struct cast *c);

/* Adds a tensor to actor i. */
void cast_tensor(struct cast *c, int i, const char *name, void *data,
                 size_t count, pcclDataType_t type);
void cast_clear(struct cast *c); /* no tensors, act SYNC, revision 0 */

#endif
