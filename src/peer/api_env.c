/* api_env.c - the calls of pccl.h that read addresses and the environment. */
#include "api.h"

#include "../base/address.h"
#include "../base/io_addr.h"

#include <stdio.h>
#include <stdlib.h>

pcclResult_t pcclGetVersion(int *version_out)
{
    if (!version_out) return pcclInvalidArgument;
    *version_out = PCCL_VERSION;
    return pcclSuccess;
}

pcclResult_t pcclParseAddress(const char *text, uint16_t default_port,
                              ccoip_socket_address_t *address_out)
{
    struct address a;
    struct io_addr found;
    const char *error;
    if (!text || !address_out) return pcclInvalidArgument;
    if (!address_parse(text, default_port, &a)) return pcclInvalidArgument;
    if (*a.host == '\0') (void)snprintf(a.host, sizeof a.host, "127.0.0.1");
    if (io_addr_resolve(a.host, a.port, &found, 1, &error) == 0)
        return pcclMasterConnectionFailed;
    struct wire_addr wire = io_addr_to_wire(&found);
    *address_out = comm_public_address(&wire);
    return pcclSuccess;
}

static pcclResult_t connect_env(pcclComm_t *c)
{
    const char *text = getenv("PCCL_MASTER");
    pcclResult_t rc = api_begin(c, &c);
    if (rc != pcclSuccess) return rc;
    if (!text || *text == '\0') {
        comm_set_error(c,
                       "PCCL_MASTER=: it names the run, and pccl-master sets "
                       "it");
        return api_leave(c, pcclInvalidUsage);
    }
    if (!comm_masters_set(c, text)) return api_leave(c, pcclInternalError);
    return api_leave(c, (pcclResult_t)comm_open(c));
}

pcclResult_t pcclConnectFromEnv(const pcclCommCreateParams_t *params,
                                pcclComm_t **comm_out)
{
    const pcclCommCreateParams_t none = {.peer_group = 0};
    if (comm_out) *comm_out = NULL;
    pcclResult_t rc = pcclCreateCommunicator(params ? params : &none, comm_out);
    return rc == pcclSuccess ? connect_env(*comm_out) : rc;
}
