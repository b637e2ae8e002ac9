/* api_wait.c - the calls of pccl.h by which a library above this one tells what
 * its callers wait in. */
#include "api.h"

#include <stddef.h>
#include <string.h>

_Static_assert(pcclWaitReceive == (int)WAIT_RECEIVE &&
                   pcclWaitSend == (int)WAIT_SEND &&
                   pcclWaitRequests == (int)WAIT_REQUESTS,
               "the wire has the same numbers");

static void copy(char to[WIRE_NAME_MAX + 1], const char *from)
{
    for (size_t i = 0; from && i < WIRE_NAME_MAX && from[i] != '\0'; i++)
        to[i] = from[i] < ' ' || from[i] > '~' ? '?' : from[i];
}

pcclResult_t pcclWaitBegins(pcclComm_t *comm, const pcclWait_t *wait)
{
    pcclComm_t *c;
    pcclResult_t rc = api_enter(comm, &c);
    if (rc != pcclSuccess) return rc;
    if (!wait || wait->size < sizeof *wait || wait->kind < pcclWaitReceive ||
        wait->kind > pcclWaitRequests)
        return api_leave(c, pcclInvalidArgument);
    struct wire_wait w = {.kind = (uint8_t)wait->kind,
                          .blocks = true,
                          .peer = wait->member,
                          .tag = wait->tag,
                          .count = wait->bytes};
    copy(w.call, wait->call);
    copy(w.where, wait->where);
    c->session->now = comm_now();
    session_wait_begins(c->session, wait, &w);
    if (comm_tells()) comm_tell_blocked(c, w.call, wait->member);
    return api_leave(c, pcclSuccess);
}

pcclResult_t pcclWaitEnds(pcclComm_t *comm, const pcclWait_t *wait)
{
    pcclComm_t *c;
    pcclResult_t rc = api_enter(comm, &c);
    if (rc != pcclSuccess) return rc;
    session_wait_ends(c->session, wait);
    if (comm_tells()) comm_tell_unblocked(c);
    return api_leave(c, pcclSuccess);
}

pcclResult_t pcclSetNamer(pcclComm_t *comm,
                          void (*name)(uint64_t tag, char *text, size_t size))
{
    if (!comm) return pcclInvalidArgument;
    comm_lock(comm);
    comm->namer = name;
    if (comm->session) comm->session->waits.name = name;
    pthread_mutex_unlock(&comm->lock);
    return pcclSuccess;
}
