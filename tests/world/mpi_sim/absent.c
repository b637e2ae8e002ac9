/* absent.c - what the simulator and pccl's entry points call, and this universe
 * has not: sockets, devices, shared state, and the checks of another program.
 */
#include "world.h"

#include "../../../src/peer/api.h"
#include "../../../src/peer/comm_device.h"
#include "../../../src/peer/comm_save.h"
#include "../sim/averages.h"
#include "../sim/election.h"
#include "../sim/faults.h"

#define ABSENT(type, name, result, ...)                                        \
    type name(__VA_ARGS__)                                                     \
    {                                                                          \
        return result;                                                         \
    }
#define NOTHING(name, ...)                                                     \
    void name(__VA_ARGS__)                                                     \
    {                                                                          \
    }

NOTHING(comm_abandon, pcclComm_t *c)
ABSENT(bool, comm_masters_set, true, pcclComm_t *c, const char *list)
ABSENT(int, comm_synchronize, pcclInternalError, pcclComm_t *c,
       pcclSharedState_t *state, pcclSharedStateSyncStrategy_t strategy,
       pcclSharedStateSyncInfo_t *info)
ABSENT(bool, comm_device_built, false, void)
ABSENT(bool, comm_io_push, false, pcclComm_t *c)
NOTHING(comm_io_push_to, pcclComm_t *c, uint64_t member)
NOTHING(progress_init, pcclComm_t *c)
NOTHING(comm_exchange_init, struct exchange *x)
NOTHING(progress_changed, pcclComm_t *c)
NOTHING(progress_launched, pcclComm_t *c)
ABSENT(enum look, progress_fast, LOOK_IDLE, pcclComm_t *c,
       const struct op_request *r, uint64_t view_epoch, struct op **rest)

ABSENT(bool, io_loop_watch, false, struct io_loop *loop, struct io_watch *w,
       uint32_t mask)
NOTHING(comm_key_drop, pcclComm_t *c)
NOTHING(comm_samples_init, pcclComm_t *c)
NOTHING(comm_samples_free, pcclComm_t *c)
NOTHING(comm_save_end, pcclComm_t *c)
ABSENT(pcclResult_t, pcclReportProgress, pcclInternalError, pcclComm_t *comm,
       uint64_t step, uint64_t samples, uint64_t target)
ABSENT(pcclResult_t, pcclGetProgress, pcclInternalError, const pcclComm_t *comm,
       pcclProgress_t *progress)
ABSENT(pcclResult_t, pcclSaveState, pcclInternalError, const pcclComm_t *comm,
       const pcclSharedState_t *state, const char *directory,
       const pcclSaveOptions_t *options)
ABSENT(pcclResult_t, pcclAwaitSave, pcclInternalError, const pcclComm_t *comm,
       pcclCheckpointInfo_t *info_out)
ABSENT(pcclResult_t, pcclLoadState, pcclInternalError, const pcclComm_t *comm,
       pcclSharedState_t *state, const char *directory,
       const pcclLoadOptions_t *options, pcclCheckpointInfo_t *info_out)
ABSENT(pcclResult_t, pcclAllReducePartial, pcclInternalError,
       const void *sendbuf, void *recvbuf,
       const pcclPartialDescriptor_t *descriptor, pcclComm_t *comm,
       pcclPartialInfo_t *info_out)
/* Nobody listens. */
atomic_bool comm_tell_state, trace_state;
NOTHING(comm_tell_call, pcclComm_t *c, const char *name, uint64_t partner,
        uint64_t bytes)
NOTHING(comm_tell_return, pcclComm_t *c)
NOTHING(comm_tell_blocked, pcclComm_t *c, const char *call, uint64_t partner)
NOTHING(comm_tell_unblocked, pcclComm_t *c)
NOTHING(comm_tell_began, pcclComm_t *c, struct told_op *told)
NOTHING(comm_tell_ended, pcclComm_t *c, struct told_op *told, int result)
ABSENT(struct told_op, comm_tell_called, (struct told_op){0},
       const pcclComm_t *c, const pcclCollective_t *op)
ABSENT(struct told_op, comm_tell_awaited, (struct told_op){0},
       const pcclComm_t *c, const struct op *op, pcclCollectiveKind_t kind)

ABSENT(int, comm_stop_waiting, why, pcclComm_t *c, int why, const char *next)
NOTHING(program_gives, const struct sim_proc *p, const struct wire_msg *msg)
ABSENT(bool, program_quick, false, struct sim *s, struct sim_proc *p)
ABSENT(uint64_t, spec_arguments, 0, const struct sim_spec *spec)
NOTHING(program_free, struct sim_proc *p)
NOTHING(fetch_turn, struct sim *s)
NOTHING(fetch_free, struct sim *s)
NOTHING(fetch_hello, struct sim *s, struct sim_proc *p, struct wire_msg *hello)
NOTHING(fetch_judge, struct sim *s, uint32_t link, enum wire_type type)
NOTHING(fetch_watch, struct sim *s, const struct sim_proc *p, uint32_t conn)
NOTHING(fetch_forget, struct sim_proc *p)
NOTHING(fetch_refuses, struct sim *s, uint32_t link)
NOTHING(averages_begin, void)
ABSENT(bool, averages_turn, false, struct sim *s, struct sim_proc *p)
NOTHING(averages_end, struct sim_proc *p)
NOTHING(averages_reads, struct sim *s, struct sim_proc *p,
        const struct wire_msg *m)
ABSENT(bool, averages_delivered, true, const struct sim *s)
NOTHING(counted_turn, struct sim *s, struct sim_proc *p)
NOTHING(counted_told, struct sim *s, uint32_t link, const struct wire_msg *m)
ABSENT(bool, counted_settled, true, const struct sim *s)
ABSENT(bool, letters_turn, false, struct sim *s, struct sim_proc *p)
ABSENT(bool, letters_delivered, true, const struct sim *s)
NOTHING(shared_init, struct sim *s, struct sim_proc *p)
NOTHING(shared_free, struct sim_proc *p)
NOTHING(shared_killed, struct sim *s, const struct sim_proc *dead)
ABSENT(struct oracle *, oracle_new, (struct oracle *)&universe, void)
NOTHING(oracle_free, struct oracle *o)
NOTHING(oracle_view, struct sim *s, struct sim_proc *p)
NOTHING(oracle_told, struct sim *s, struct sim_proc *p, bool allowed)
NOTHING(oracle_update, struct sim *s, const uint32_t *links, uint32_t count)
ABSENT(struct election *, election_new, (struct election *)&universe, void)
NOTHING(election_free, struct election *e)
NOTHING(election_asked, struct sim *s, uint32_t link,
        const struct wire_msg *msg)
NOTHING(election_reported, struct sim *s, uint32_t link,
        const struct wire_msg *msg)
NOTHING(election_gone, struct sim *s, uint32_t link)
NOTHING(election_settled, struct sim *s)
NOTHING(election_said, struct sim *s, const uint32_t *links, uint32_t count,
        const struct wire_msg *msg)
NOTHING(election_watch, struct sim *s, const struct sim_proc *p)
