/* pccl_1_0.c - uses the headers as programs made for PCCL 1.0 do: names of
 * headers, types of arguments, constants. It is only compiled, as C and as
 * C++. */
#include <ccoip.h>
#include <ccoip_inet.h>
#include <pccl.h>

int use(const pcclComm_t *comm, void *send, void *recv, const void *list);

/* Types of functions: a communicator is const where PCCL 1.0 has it so. */
static pcclResult_t (*const pending)(const pcclComm_t *,
                                     bool *) = pcclArePeersPending;
static pcclResult_t (*const optimize)(const pcclComm_t *) =
    pcclOptimizeTopology;
static pcclResult_t (*const update)(pcclComm_t *) = pcclUpdateTopology;
static pcclResult_t (*const sync_state)(
    const pcclComm_t *, pcclSharedState_t *, pcclSharedStateSyncStrategy_t,
    pcclSharedStateSyncInfo_t *PCCL_NULLABLE) = pcclSynchronizeSharedState;
static pcclResult_t (*const reduce)(
    const void *, void *, const pcclReduceDescriptor_t *, const pcclComm_t *,
    pcclReduceInfo_t *PCCL_NULLABLE) = pcclAllReduce;
static pcclResult_t (*const reduce_async)(
    const void *, void *, const pcclReduceDescriptor_t *, const pcclComm_t *,
    pcclAsyncReduceOp_t *) = pcclAllReduceAsync;
static pcclResult_t (*const reduce_many)(const pcclReduceOpDescriptor_t *,
                                         size_t, const pcclComm_t *,
                                         pcclReduceInfo_t *PCCL_NULLABLE,
                                         int) = pcclAllReduceMultipleWithRetry;

int use(const pcclComm_t *comm, void *send, void *recv, const void *list)
{
    ccoip_socket_address_t address;
    pcclReduceOpDescriptor_t op;
    pcclReduceDescriptor_t d;
    pcclSharedState_t state;
    bool flag;
    int value = CCOIP_PROTOCOL_PORT_P2P + CCOIP_PROTOCOL_PORT_SHARED_STATE +
                CCOIP_PROTOCOL_PORT_BANDWIDTH_BENCHMARK;
    address.inet.protocol = inetIPv4;
    address.inet.ipv4.data[0] = 127;
    address.port = CCOIP_PROTOCOL_PORT_MASTER;
    d.count = 1;
    d.op = pcclSum;
    d.tag = 0;
    d.src_descriptor.datatype = pcclFloat;
    d.src_descriptor.distribution_hint = pcclDistributionNone;
    d.quantization_options.quantized_datatype = pcclFloat;
    d.quantization_options.algorithm = pcclQuantNone;
    op.sendbuf = send;
    op.recvbuf = recv;
    op.descriptor = d;
    state.revision = 0;
    state.count = 0;
    state.infos = (pcclTensorInfo_t *)(size_t)list;
    value += pending(comm, &flag) != pcclSuccess;
    value += optimize(comm) != pcclSuccess;
    value += update((pcclComm_t *)(size_t)comm) != pcclSuccess;
    value += sync_state(comm, &state,
                        PCCL_SHARED_STATE_SYNC_STRATEGY_ENFORCE_POPULAR,
                        NULL) != pcclSuccess;
    value += reduce(send, recv, &d, comm, NULL) != pcclSuccess;
    value += reduce_async(send, recv, &d, comm, NULL) != pcclSuccess;
    value += reduce_many(&op, 1, comm, NULL, 1) != pcclSuccess;
    return value + (int)address.port;
}
