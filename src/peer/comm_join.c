/* comm_join.c - which masters are called for a place in the run, and how long
 * one that is not there is waited for (rules H8, H14). See comm.h. */
#include "comm.h"

#include "../base/address.h"
#include "../base/env.h"
#include "../base/io_addr.h"
#include "../base/log.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Between two rounds through the list. */
#define PAUSE_FIRST (PCCL_S / 10)
#define PAUSE_LAST (2 * PCCL_S)

static void warn_patience(const char *text)
{
    LOG(LOG_WARN, "PCCL_MASTER_PATIENCE=%s is not a number of seconds; ignored",
        text);
}

static void warn_grace(const char *text)
{
    LOG(LOG_WARN, "PCCL_MASTER_GRACE=%s is not a number of seconds; ignored",
        text);
}

bool comm_masters_set(pcclComm_t *c, const char *list)
{
    char *copy = strdup(list);
    if (!copy) return false;
    free(c->masters);
    c->masters = copy;
    return true;
}

ccoip_socket_address_t comm_public_address(const struct wire_addr *from)
{
    ccoip_socket_address_t a = {.port = from->port};
    a.inet.protocol = from->family == 6 ? inetIPv6 : inetIPv4;
    if (from->family == 6)
        memcpy(a.inet.ipv6.data, from->ip, sizeof a.inet.ipv6.data);
    else
        memcpy(a.inet.ipv4.data, from->ip, sizeof a.inet.ipv4.data);
    return a;
}

struct wire_addr comm_master_address(const pcclComm_t *c)
{
    const ccoip_socket_address_t *m = &c->params.master_address;
    struct wire_addr addr = {.family = 4, .port = m->port};
    memcpy(addr.ip, m->inet.ipv4.data, sizeof m->inet.ipv4.data);
    if (m->inet.protocol == inetIPv6) {
        addr.family = 6;
        memcpy(addr.ip, m->inet.ipv6.data, sizeof m->inet.ipv6.data);
    }
    return addr;
}

static int no_address(pcclComm_t *c, int result, const char *error)
{
    const char *set = getenv("PCCL_MASTER");
    bool named = set && strcmp(set, c->masters) == 0;
    comm_set_error(c, "%s%s: %s", named ? "PCCL_MASTER=" : "", c->masters,
                   error);
    return result;
}

int comm_masters_find(pcclComm_t *c, struct comm_masters *p, pccl_ns until)
{
    struct io_addr found[COMM_MASTERS_MAX];
    struct address a;
    const char *error = "there are too many";
    *p = (struct comm_masters){{comm_master_address(c)}, 1};
    if (!c->masters) return pcclSuccess;
    p->count = 0;
    for (const char *at = c->masters; at;) {
        if (!address_next(&at, MASTER_PORT, &a))
            return no_address(c, pcclInvalidArgument, "it is not host:port");
        if (*a.host == '\0') (void)snprintf(a.host, sizeof a.host, "127.0.0.1");
        if (p->count < COMM_MASTERS_MAX)
            p->count += comm_resolve(c, &a, until, found + p->count,
                                     COMM_MASTERS_MAX - p->count, &error);
    }
    int why = comm_interrupted(c, until);
    if (why != 0) return comm_stop_waiting(c, why, "no master was called yet");
    for (uint32_t i = 0; i < p->count; i++)
        p->at[i] = io_addr_to_wire(&found[i]);
    return p->count > 0 ? pcclSuccess
                        : no_address(c, pcclMasterConnectionFailed, error);
}

/* The first of them that takes us. A master that refuses counts for all of the
 * run; `absent` is set where none did. */
static int join_any(pcclComm_t *c, pccl_ns until)
{
    struct comm_masters p;
    char refusal[sizeof c->error] = "";
    bool deserted = false;
    int result = comm_masters_find(c, &p, until);
    if (result != pcclSuccess) return result;
    for (uint32_t i = 0; i < p.count; i++) {
        c->params.master_address = comm_public_address(&p.at[i]);
        result = comm_join(c);
        if (result != pcclMasterConnectionFailed) return result;
        deserted |= c->deserted;
        if (!c->absent && refusal[0] == '\0')
            memcpy(refusal, c->error, sizeof refusal);
    }
    c->deserted = deserted;
    c->absent = refusal[0] == '\0';
    if (refusal[0] != '\0') memcpy(c->error, refusal, sizeof refusal);
    return result;
}

/* A list says that another one may take over. */
static pccl_ns wait_for_master(const pcclComm_t *c)
{
    bool list = c->masters && strchr(c->masters, ',');
    pccl_ns grace = c->master_wait > 0
                        ? c->master_wait
                        : env_seconds_ns("PCCL_MASTER_GRACE", warn_grace);
    return list && grace < c->patience ? c->patience : grace;
}

static int join_in_time(pcclComm_t *c)
{
    pccl_ns until = comm_limit(c);
    c->patience = env_seconds_ns("PCCL_MASTER_PATIENCE", warn_patience);
    if (c->patience == 0) c->patience = MASTER_PATIENCE_DEFAULT;
    pccl_ns wait = wait_for_master(c);
    comm_spare_wait(c, until);
    pccl_ns end = comm_now() + wait;
    for (pccl_ns pause = PAUSE_FIRST;; pause *= 2) {
        c->absent = c->deserted = false;
        int result = join_any(c, until);
        if (c->deserted) end = comm_now() + wait; /* there was one */
        bool again = result == pcclMasterConnectionFailed && c->absent &&
                     comm_now() < end && comm_now() < until;
        if (pause > PAUSE_LAST) pause = PAUSE_LAST;
        if (!again || !comm_pause(c, pause)) return result;
    }
}

int comm_open(pcclComm_t *c)
{
    comm_tell_open(c);
    if (comm_tells()) comm_tell_call(c, "connect", 0, UINT64_MAX);
    int result = join_in_time(c);
    if (comm_tells()) comm_tell_return(c);
    return result;
}
