/* fake_pccl.c - pccl.h for a world of this process alone, enough to link the
 * facade's tests without the library. Calls that a world of one must not make
 * fail loudly. */
#include <pccl.h>

#include <stdio.h>
#include <stdlib.h>

static pcclResult_t unexpected(const char *function)
{
    fprintf(stderr, "fake pccl: %s in a world of one\n", function);
    abort();
}

pcclResult_t pcclInit(void)
{
    return pcclSuccess;
}

pcclResult_t pcclCreateCommunicator(const pcclCommCreateParams_t *params,
                                    pcclComm_t **comm_out)
{
    (void)params;
    *comm_out = NULL;
    return pcclMasterConnectionFailed;
}

pcclResult_t pcclSetOptions(pcclComm_t *comm, const pcclCommOptions_t *options)
{
    (void)comm;
    (void)options;
    return pcclSuccess;
}

pcclResult_t pcclConnect(pcclComm_t *comm)
{
    (void)comm;
    return pcclMasterConnectionFailed;
}

pcclResult_t pcclDestroyCommunicator(pcclComm_t *comm)
{
    (void)comm;
    return pcclSuccess;
}

const char *pcclGetErrorString(pcclResult_t result)
{
    (void)result;
    return "no library";
}

pcclResult_t pcclGetLastError(const pcclComm_t *comm, char *buf, size_t size)
{
    (void)comm;
    if (size > 0) buf[0] = 0;
    return pcclSuccess;
}

pcclResult_t pcclGetView(const pcclComm_t *comm, uint64_t *epoch, int *rank,
                         int *size, pcclMember_t *members, size_t capacity)
{
    (void)comm;
    (void)epoch;
    (void)rank;
    (void)size;
    (void)members;
    (void)capacity;
    return unexpected(__func__);
}

pcclResult_t pcclCollective(const pcclCollective_t *op, pcclComm_t *comm,
                            pcclReduceInfo_t *info_out)
{
    (void)op;
    (void)comm;
    (void)info_out;
    return unexpected(__func__);
}

pcclResult_t pcclCollectiveAsync(const pcclCollective_t *op, pcclComm_t *comm,
                                 pcclAsyncReduceOp_t *handle_out)
{
    (void)op;
    (void)comm;
    (void)handle_out;
    return unexpected(__func__);
}

pcclResult_t pcclAwaitAsyncReduce(const pcclAsyncReduceOp_t *handle,
                                  pcclReduceInfo_t *info_out)
{
    (void)handle;
    (void)info_out;
    return unexpected(__func__);
}

pcclResult_t pcclTestAsync(const pcclAsyncReduceOp_t *handle, bool *done_out)
{
    (void)handle;
    (void)done_out;
    return unexpected(__func__);
}

pcclResult_t pcclWaitAsync(const pcclAsyncReduceOp_t *handle, int timeout_ms,
                           bool *done_out)
{
    (void)handle;
    (void)timeout_ms;
    (void)done_out;
    return unexpected(__func__);
}

pcclResult_t pcclAbortRun(pcclComm_t *comm, int code)
{
    (void)comm;
    (void)code;
    return pcclSuccess;
}

pcclResult_t pcclUpdateTopology(pcclComm_t *comm)
{
    (void)comm;
    return unexpected(__func__);
}

pcclResult_t pcclArePeersPending(pcclComm_t *comm, bool *pending_out)
{
    (void)comm;
    (void)pending_out;
    return unexpected(__func__);
}
