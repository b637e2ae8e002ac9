/* waiting.c - see waiting.h. */
#include "waiting.h"
#include "coll.h"
#include "p2p.h"
#include "request.h"

#include <stdio.h>

bool waiting_turn(struct call_wait *w)
{
    backoff(&w->turn);
    return w->polls < WAITING_POLLS && ++w->polls == WAITING_POLLS;
}

static void tell(struct call_wait *w, const pcclWait_t *wait,
                 const char *function)
{
    w->wait = *wait;
    w->wait.size = sizeof w->wait;
    w->wait.call = public_name(function);
    if (world.pccl) (void)pcclWaitBegins(world.pccl, &w->wait);
}

static void tell_message(struct call_wait *w, pcclWaitKind_t kind,
                         const struct comm *comm, uint64_t member, int tag,
                         uint64_t bytes, const char *function)
{
    char where[32];
    snprintf(where, sizeof where, "communicator %u", (unsigned)comm->context);
    pcclWait_t wait = {.kind = kind,
                       .member = member == MATCH_ANY_SOURCE ? 0 : member,
                       .tag = tag < 0 ? UINT64_MAX : (uint64_t)tag,
                       .bytes = bytes,
                       .where = comm->name[0] != '\0' ? comm->name : where};
    tell(w, &wait, function);
}

void waiting_receive(struct call_wait *w, const struct receive *receive,
                     const char *function)
{
    const struct match_key *key = &receive->entry.key;
    tell_message(w, pcclWaitReceive, receive->comm, key->source, key->tag,
                 (uint64_t)receive->count, function);
}

void waiting_send(struct call_wait *w, const struct send *send,
                  const char *function)
{
    /* Not by its rank, which a loss may have changed. */
    const struct message *message = send->waiting;
    tell_message(w, pcclWaitSend, send->comm,
                 message ? message->entry.key.source : 0, send->tag,
                 (uint64_t)send->count, function);
}

void waiting_probe(struct call_wait *w, const struct comm *comm,
                   uint64_t source, int tag, const char *function)
{
    tell_message(w, pcclWaitReceive, comm, source, tag, 0, function);
}

void waiting_requests(struct call_wait *w, const char *function)
{
    pcclWait_t wait = {.kind = pcclWaitRequests};
    tell(w, &wait, function);
}

void waiting_request(struct call_wait *w, struct request *request,
                     const char *function)
{
    if (request && request->kind->tell)
        request->kind->tell(request, w, function);
    else
        waiting_requests(w, function);
}

void waiting_takes_back(struct call_wait *w)
{
    if (world.pccl) (void)pcclWaitEnds(world.pccl, &w->wait);
    waiting_begins(w);
}

void waiting_name(uint64_t tag, char *text, size_t size)
{
    uint32_t context = comm_context_of(tag);
    if (context == (comm_world.context & CONTEXT_MASK))
        snprintf(text, size, "MPI_COMM_WORLD");
    else
        snprintf(text, size, "communicator %u", (unsigned)context);
}
