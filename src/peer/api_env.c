/* api_env.c - the calls of pccl.h that read addresses and the environment. */
#include "api.h"

#include "../base/io_addr.h"

#include <stdlib.h>
#include <string.h>

enum { ADDRESSES_MAX = 32 }; /* of all names that are tried */

/* Between two rounds through a list of masters. */
#define PAUSE_FIRST (PCCL_S / 10)
#define PAUSE_LAST (2 * PCCL_S)

pcclResult_t pcclGetVersion(int *version_out)
{
    if (!version_out) return pcclInvalidArgument;
    *version_out = PCCL_VERSION;
    return pcclSuccess;
}

static ccoip_socket_address_t to_public(const struct io_addr *from)
{
    struct wire_addr w = io_addr_to_wire(from);
    ccoip_socket_address_t a = {.port = w.port};
    a.inet.protocol = w.family == 6 ? inetIPv6 : inetIPv4;
    if (w.family == 6)
        memcpy(a.inet.ipv6.data, w.ip, sizeof a.inet.ipv6.data);
    else
        memcpy(a.inet.ipv4.data, w.ip, sizeof a.inet.ipv4.data);
    return a;
}

/* Returns the number of addresses, at most max; 0: *rc and *error say why. */
static uint32_t read_address(const char *text, uint16_t port,
                             struct io_addr *out, uint32_t max,
                             pcclResult_t *rc, const char **error)
{
    char host[IO_ADDR_HOST_SIZE];
    *rc = pcclInvalidArgument;
    *error = "it is not host:port";
    if (!io_addr_split(text, host, &port)) return 0;
    *rc = pcclMasterConnectionFailed;
    if (host[0] == '\0') memcpy(host, "127.0.0.1", sizeof "127.0.0.1");
    return io_addr_resolve(host, port, out, max, error);
}

pcclResult_t pcclParseAddress(const char *text, uint16_t default_port,
                              ccoip_socket_address_t *address_out)
{
    struct io_addr found;
    pcclResult_t rc;
    const char *error;
    if (!text || !address_out) return pcclInvalidArgument;
    if (read_address(text, default_port, &found, 1, &rc, &error) == 0)
        return rc;
    *address_out = to_public(&found);
    return pcclSuccess;
}

/* Locked; leaves the communicator. */
static pcclResult_t fail(pcclComm_t *c, pcclResult_t rc, const char *text,
                         const char *error)
{
    comm_set_error(c, "PCCL_MASTER=%s: %s", text, error);
    return api_leave(c, rc);
}

/* Of a list "a:1,b:2" all that can be resolved now: a host that is down may
 * have no name. What is no address is an error wherever it stands. */
static uint32_t read_list(const char *text, struct io_addr *out,
                          pcclResult_t *rc, const char **error)
{
    char one[IO_ADDR_HOST_SIZE + 8];
    uint32_t count = 0;
    for (const char *at = text;; at++) {
        size_t length = strcspn(at, ",");
        *rc = pcclInvalidArgument;
        *error = "it is not host:port";
        if (length >= sizeof one) return 0;
        memcpy(one, at, length);
        one[length] = '\0';
        count += read_address(one, MASTER_PORT, out + count,
                              ADDRESSES_MAX - count, rc, error);
        if (*rc == pcclInvalidArgument) return 0;
        at += length;
        if (*at == '\0' || count == ADDRESSES_MAX) return count;
    }
}

/* The first of them that answers. */
static pcclResult_t connect_once(pcclComm_t *c, const struct io_addr *found,
                                 uint32_t count)
{
    pcclResult_t rc = pcclMasterConnectionFailed;
    for (uint32_t i = 0; i < count; i++) {
        c->params.master_address = to_public(&found[i]);
        rc = (pcclResult_t)comm_open(c);
        if (rc != pcclMasterConnectionFailed) break;
    }
    return rc;
}

static pcclResult_t connect_any(pcclComm_t *c)
{
    const char *text = getenv("PCCL_MASTER");
    struct io_addr found[ADDRESSES_MAX];
    pcclResult_t rc = api_begin(c, &c);
    const char *error;
    if (rc != pcclSuccess) return rc;
    if (!text || *text == '\0')
        return fail(c, pcclInvalidUsage, "",
                    "it names the run, and pccl-master sets it");
    bool list = strchr(text, ',') != NULL;
    pccl_ns begun = comm_now();
    for (pccl_ns pause = PAUSE_FIRST;; pause *= 2) {
        uint32_t count = read_list(text, found, &rc, &error);
        if (count == 0) return fail(c, rc, text, error);
        rc = connect_once(c, found, count);
        /* A list says that another one may take over. */
        bool again = list && rc == pcclMasterConnectionFailed &&
                     comm_now() - begun < c->patience;
        if (pause > PAUSE_LAST) pause = PAUSE_LAST;
        if (!again || !comm_pause(c, pause)) return api_leave(c, rc);
    }
}

pcclResult_t pcclConnectFromEnv(const pcclCommCreateParams_t *params,
                                pcclComm_t **comm_out)
{
    const pcclCommCreateParams_t none = {.peer_group = 0};
    if (comm_out) *comm_out = NULL;
    pcclResult_t rc = pcclCreateCommunicator(params ? params : &none, comm_out);
    return rc == pcclSuccess ? connect_any(*comm_out) : rc;
}
