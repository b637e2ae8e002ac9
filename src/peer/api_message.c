/* api_message.c - the calls of pccl.h for messages between members. */
#include "api.h"

_Static_assert(PCCL_MESSAGE_HEADER_MAX == (int)MESSAGE_HEADER_MAX, "limits");
_Static_assert(PCCL_MESSAGE_MAX == (int)MESSAGE_MAX, "limits");

static pcclResult_t enter(pcclComm_t *c)
{
    return api_enter(c, &c);
}

static pcclResult_t leave(pcclComm_t *c, int result)
{
    return api_leave(c, (pcclResult_t)result);
}

static bool is_gone(const pcclComm_t *c)
{
    return c->session->state == SESSION_GONE;
}

pcclResult_t pcclPostMessage(pcclComm_t *comm, uint64_t to, const void *header,
                             size_t header_size, const void *body,
                             size_t body_size)
{
    pcclResult_t rc = enter(comm);
    if (rc != pcclSuccess) return rc;
    if ((!header && header_size > 0) || (!body && body_size > 0))
        return leave(comm, pcclInvalidArgument);
    if (is_gone(comm)) return leave(comm, pcclMasterConnectionFailed);
    int result = message_post(&comm->session->messages, to, header, header_size,
                              body, body_size);
    if (result == pcclSuccess) comm_io_push_to(comm, to);
    return leave(comm, result);
}

pcclResult_t pcclSendBulk(pcclComm_t *comm, uint64_t to, uint64_t key,
                          const void *buf, size_t size)
{
    pcclResult_t rc = enter(comm);
    if (rc != pcclSuccess) return rc;
    if (!buf && size > 0) return leave(comm, pcclInvalidArgument);
    if (is_gone(comm)) return leave(comm, pcclMasterConnectionFailed);
    int result =
        message_send_rndv(&comm->session->messages, to, key, buf, size);
    if (result == pcclSuccess) comm_io_push_to(comm, to);
    return leave(comm, result);
}

pcclResult_t pcclExpectBulk(pcclComm_t *comm, uint64_t from, uint64_t key,
                            void *buf, size_t size)
{
    pcclResult_t rc = enter(comm);
    if (rc != pcclSuccess) return rc;
    if (!buf && size > 0) return leave(comm, pcclInvalidArgument);
    if (is_gone(comm)) return leave(comm, pcclMasterConnectionFailed);
    int result =
        message_recv_rndv(&comm->session->messages, from, key, buf, size);
    if (result == pcclSuccess) comm_io_push_to(comm, from);
    return leave(comm, result);
}

pcclResult_t pcclCancelBulk(pcclComm_t *comm, uint64_t from, uint64_t key)
{
    pcclResult_t rc = enter(comm);
    if (rc != pcclSuccess) return rc;
    int result = message_cancel_recv(&comm->session->messages, from, key);
    if (result == pcclSuccess && comm_io_push(comm)) progress_changed(comm);
    return leave(comm, result);
}

pcclResult_t pcclWithdrawBulk(pcclComm_t *comm, uint64_t to, uint64_t key)
{
    pcclResult_t rc = enter(comm);
    if (rc != pcclSuccess) return rc;
    return leave(comm, message_cancel_send(&comm->session->messages, to, key));
}

static void describe(struct message_event *from, pcclEvent_t *to)
{
    static const pcclEventKind_t kinds[] = {[EVENT_MESSAGE] = pcclEventMessage,
                                            [EVENT_SENT] = pcclEventBulkSent,
                                            [EVENT_RECEIVED] =
                                                pcclEventBulkReceived,
                                            [EVENT_ROOM] = pcclEventRoom,
                                            [EVENT_LOST] = pcclEventMemberLost};
    *to = (pcclEvent_t){.kind = kinds[from->kind],
                        .result = (pcclResult_t)from->result,
                        .member = from->member,
                        .key = from->key};
    if (from->kind != EVENT_MESSAGE) return;
    struct message_block *block = (struct message_block *)from;
    to->header = block->bytes;
    to->header_size = block->head;
    to->body = block->bytes + block->head;
    to->body_size = block->size - block->head;
    to->owned = block;
}

/* The session that it came to may be over. */
static void release(pcclComm_t *comm, pcclEvent_t *event)
{
    if (event->owned && comm->session)
        message_release(&comm->session->messages, event->owned);
    else
        message_discard(event->owned);
    event->kind = pcclEventNone;
    event->owned = NULL;
}

/* The caller has the event, and what the library keeps of it is released. */
static void give(pcclComm_t *comm, struct message_event *taken,
                 pcclEvent_t *event)
{
    describe(taken, event);
    if (!event->owned) message_release(&comm->session->messages, taken);
}

/* The first event; NULL: *result says why. */
static struct message_event *await_event(pcclComm_t *comm, int timeout_ms,
                                         pcclResult_t *result)
{
    pccl_ns until = PCCL_NEVER;
    struct message_event *taken = progress_take_event(comm, 0);
    *result = pcclSuccess;
    if (taken) return taken;
    if (timeout_ms > 0) until = comm_now() + timeout_ms * PCCL_MS;
    if (timeout_ms < 0) until = comm_limit(comm);
    if (timeout_ms != 0) taken = progress_take_event(comm, until);
    if (taken) return taken;
    if (is_gone(comm))
        *result = pcclMasterConnectionFailed;
    else if (timeout_ms < 0 || (timeout_ms > 0 && comm_is_cancelled(comm)))
        *result = (pcclResult_t)comm_interrupted(comm, until);
    return NULL;
}

pcclResult_t pcclTakeEvent(pcclComm_t *comm, int timeout_ms, pcclEvent_t *event)
{
    pcclResult_t rc = enter(comm);
    if (rc != pcclSuccess) return rc;
    if (!event) return leave(comm, pcclInvalidArgument);
    *event = (pcclEvent_t){.kind = pcclEventNone};
    struct message_event *taken = await_event(comm, timeout_ms, &rc);
    if (taken) give(comm, taken, event);
    return leave(comm, (int)rc);
}

pcclResult_t pcclTakeEvents(pcclComm_t *comm, int timeout_ms,
                            pcclEvent_t *events, size_t room, size_t *count)
{
    pcclResult_t rc = enter(comm);
    if (rc != pcclSuccess) return rc;
    if (!count || (!events && (room > 0 || *count > 0)))
        return leave(comm, pcclInvalidArgument);
    for (size_t i = 0; i < *count; i++) release(comm, &events[i]);
    *count = 0;
    struct message_event *taken =
        room > 0 ? await_event(comm, timeout_ms, &rc) : NULL;
    while (taken) {
        give(comm, taken, &events[(*count)++]);
        if (*count == room) break;
        taken = message_take(&comm->session->messages);
    }
    return leave(comm, (int)rc);
}

pcclResult_t pcclReleaseEvent(pcclComm_t *comm, pcclEvent_t *event)
{
    pcclResult_t rc = api_begin(comm, &comm);
    if (rc != pcclSuccess) return rc;
    if (!event) return leave(comm, pcclInvalidArgument);
    release(comm, event);
    *event = (pcclEvent_t){.kind = pcclEventNone};
    return leave(comm, pcclSuccess);
}
