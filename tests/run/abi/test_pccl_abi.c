/* test_pccl_abi.c - values and layouts of PCCL 1.0's ABI that programs have
 * compiled in. All of it is checked by the compiler. */
#include <pccl.h>
#include <stddef.h>

#define SIZE(type, bytes) _Static_assert(sizeof(type) == (bytes), #type)
#define AT(type, field, offset)                                                \
    _Static_assert(offsetof(type, field) == (offset), #type "." #field)
#define IS(name, value) _Static_assert((name) == (value), #name)

SIZE(pcclResult_t, 4);
SIZE(ccoip_ipv4_address_t, 4);
SIZE(ccoip_ipv6_address_t, 16);
SIZE(ccoip_inet_address_t, 24);
AT(ccoip_inet_address_t, ipv4, 4);
AT(ccoip_inet_address_t, ipv6, 8);
SIZE(ccoip_socket_address_t, 28);
AT(ccoip_socket_address_t, port, 24);
SIZE(pcclCommCreateParams_t, 36);
AT(pcclCommCreateParams_t, peer_group, 28);
AT(pcclCommCreateParams_t, p2p_connection_pool_size, 32);
SIZE(pcclReduceInfo_t, 24);
AT(pcclReduceInfo_t, tx_bytes, 8);
AT(pcclReduceInfo_t, rx_bytes, 16);
SIZE(pcclReduceOperandDescriptor_t, 8);
AT(pcclReduceOperandDescriptor_t, distribution_hint, 4);
SIZE(pcclQuantizationOptions_t, 8);
AT(pcclQuantizationOptions_t, algorithm, 4);
SIZE(pcclReduceDescriptor_t, 40);
AT(pcclReduceDescriptor_t, op, 8);
AT(pcclReduceDescriptor_t, tag, 16);
AT(pcclReduceDescriptor_t, src_descriptor, 24);
AT(pcclReduceDescriptor_t, quantization_options, 32);
SIZE(pcclReduceOpDescriptor_t, 56);
AT(pcclReduceOpDescriptor_t, recvbuf, 8);
AT(pcclReduceOpDescriptor_t, descriptor, 16);
SIZE(pcclAsyncReduceOp_t, 16);
AT(pcclAsyncReduceOp_t, tag, 8);
SIZE(pcclRankUuid_t, 16);
SIZE(pcclTensorInfo_t, 40);
AT(pcclTensorInfo_t, data, 8);
AT(pcclTensorInfo_t, count, 16);
AT(pcclTensorInfo_t, datatype, 24);
AT(pcclTensorInfo_t, device_type, 28);
AT(pcclTensorInfo_t, allow_content_inequality, 32);
SIZE(pcclSharedState_t, 24);
AT(pcclSharedState_t, count, 8);
AT(pcclSharedState_t, infos, 16);
SIZE(pcclSharedStateSyncInfo_t, 16);
AT(pcclSharedStateSyncInfo_t, rx_bytes, 8);
SIZE(pcclBuildInfo_t, 1);

IS(inetIPv4, 0);
IS(inetIPv6, 1);
IS(pcclSuccess, 0);
IS(pcclNotInitialized, 1);
IS(pcclInternalError, 2);
IS(pcclInvalidArgument, 3);
IS(pcclInvalidUsage, 4);
IS(pcclTooFewPeers, 5);
IS(pcclMasterConnectionFailed, 6);
IS(pcclRankConnectionFailed, 7);
IS(pcclRankConnectionLost, 8);
IS(pcclNoSharedStateAvailable, 9);
IS(pcclPendingAsyncOps, 10);
IS(pcclUpdateTopologyFailed, 11);
IS(pcclTopologyOptimizationFailed, 12);
IS(pcclUint8, 0);
IS(pcclInt8, 1);
IS(pcclInt16, 2);
IS(pcclUint16, 3);
IS(pcclUint32, 4);
IS(pcclInt32, 5);
IS(pcclUint64, 6);
IS(pcclInt64, 7);
IS(pcclFloat16, 8);
IS(pcclBFloat16, 9);
IS(pcclFloat, 10);
IS(pcclDouble, 11);
IS(pcclDeviceCpu, 0);
IS(pcclDeviceCuda, 1);
IS(pcclSum, 0);
IS(pcclAvg, 1);
IS(pcclProd, 2);
IS(pcclMax, 3);
IS(pcclMin, 4);
IS(PCCL_ATTRIBUTE_GLOBAL_WORLD_SIZE, 1);
IS(PCCL_ATTRIBUTE_PEER_GROUP_WORLD_SIZE, 2);
IS(PCCL_ATTRIBUTE_NUM_DISTINCT_PEER_GROUPS, 3);
IS(PCCL_ATTRIBUTE_LARGEST_PEER_GROUP_WORLD_SIZE, 4);
IS(PCCL_SHARED_STATE_SYNC_STRATEGY_ENFORCE_POPULAR, 0);
IS(PCCL_SHARED_STATE_SYNC_STRATEGY_RECEIVE_ONLY, 1);
IS(PCCL_SHARED_STATE_SYNC_STRATEGY_SEND_ONLY, 2);
IS(pcclDistributionNone, 0);
IS(pcclDistributionNormal, 1);
IS(pcclDistributionUniform, 2);
IS(pcclQuantNone, 0);
IS(pcclQuantMinMax, 1);
IS(pcclQuantZeroPointScale, 2);

int main(void)
{
    return 0;
}
