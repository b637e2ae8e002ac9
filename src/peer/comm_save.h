/* comm_save.h - checkpoints of a communicator: copies the tensors, and has a
 * thread write them (src/checkpoint/). All calls are locked. */
#ifndef PCCL_COMM_SAVE_H
#define PCCL_COMM_SAVE_H

#include "comm.h"

/* How a save is done; options with their defaults. */
struct comm_save_how {
    const char *directory;
    uint32_t keep;
    bool synchronous;
    uint32_t world; /* members of the group */
};

/* pcclSaveState where this peer writes. Releases the lock while it copies. */
int comm_save_begin(pcclComm_t *c, const pcclSharedState_t *state,
                    const struct comm_save_how *how);
/* Waits for the save and ends it; *info is filled in, but for its size. */
int comm_save_await(pcclComm_t *c, pccl_ns until, pcclCheckpointInfo_t *info);
/* Ends a save with the communicator. */
void comm_save_end(pcclComm_t *c);
/* In a child: frees the copy of the copy. */
void comm_save_abandon(pcclComm_t *c);

/* pcclLoadState; options with their defaults. Releases the lock meanwhile. */
int comm_load(pcclComm_t *c, pcclSharedState_t *state, const char *directory,
              const pcclLoadOptions_t *options, pcclCheckpointInfo_t *info);

/* Checks that the entries can stand in a checkpoint. */
int comm_save_check(pcclComm_t *c, const pcclSharedState_t *state);

#endif
