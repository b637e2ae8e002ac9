/* agree.c - agreement on context ids, and private messages of the library. */
#include "agree.h"
#include "coll.h"
#include "p2p.h"
#include "request.h"
#include "revoke.h"
#include "transport.h"

#include <assert.h>
#include <string.h>

int private_send(uint64_t to, uint32_t context, int tag, const void *data,
                 size_t size)
{
    assert(size <= PRIVATE_MAX);
    struct message *message = message_new((MPI_Count)size);
    if (!message) return error_note(MPI_ERR_NO_MEM, "out of memory");
    if (size > 0) memcpy(message->data, data, size);
    message->entry.key = (struct match_key){world.self, context, tag};
    return transport_send(to, message, false, false);
}

int private_receive(uint64_t from, uint32_t context, int tag, void *data,
                    size_t room, size_t *size)
{
    struct receive receive = {.buffer = data,
                              .count = (MPI_Count)room,
                              .type = type_find(MPI_BYTE),
                              .comm = &comm_world,
                              .blocking = true};
    receive.entry.key = (struct match_key){from, context, tag};
    status_empty(&receive.status);
    p2p_post(&receive);
    for (unsigned turn = 0; !atomic_load(&receive.done); backoff(&turn))
        coll_progress_all();
    if (size) *size = (size_t)status_count(&receive.status);
    if (receive.error == MPI_SUCCESS) return MPI_SUCCESS;
    const char *gone = transport_gone();
    return error_note(receive.error, "%s",
                      receive.error == MPIX_ERR_REVOKED
                          ? "the communicator was revoked"
                      : gone ? gone
                             : "a process needed for it was lost");
}

struct word {
    uint32_t value;
    int32_t error;
};

static void fold(struct word *into, const struct word *from, bool highest)
{
    if (from->error != MPI_SUCCESS) into->error = from->error;
    if (highest ? from->value > into->value : from->value < into->value)
        into->value = from->value;
}

/* The highest or lowest of all values: reduced at the first member and sent to
 * all. */
static int round_trip(const struct group *group, uint32_t context, int tag,
                      bool highest, uint32_t *value)
{
    struct word all = {*value, MPI_SUCCESS};
    if (group->rank > 0) {
        int result =
            private_send(group->ids[0], context, tag, &all, sizeof all);
        if (result == MPI_SUCCESS)
            result = private_receive(group->ids[0], context, tag, &all,
                                     sizeof all, NULL);
        if (result != MPI_SUCCESS) return result;
    }
    for (int i = 1; group->rank == 0 && i < group->size; i++) {
        struct word one = all;
        int error = private_receive(group->ids[i], context, tag, &one,
                                    sizeof one, NULL);
        if (error != MPI_SUCCESS) one.error = error;
        fold(&all, &one, highest);
    }
    for (int i = 1; group->rank == 0 && i < group->size; i++)
        (void)private_send(group->ids[i], context, tag, &all, sizeof all);
    *value = all.value;
    if (all.error == MPI_SUCCESS) return MPI_SUCCESS;
    return error_note(all.error, "a process needed for it was lost");
}

int agree_context(const struct group *group, uint32_t context, int tag,
                  uint32_t *out)
{
    for (;;) {
        uint32_t candidate = context_first_free();
        int result = round_trip(group, context, tag, true, &candidate);
        if (result != MPI_SUCCESS) return result;
        if (!context_can_be(candidate, 1)) return context_none_left();
        bool mine = context_claim(candidate, 1);
        uint32_t taken = mine;
        result = round_trip(group, context, tag, false, &taken);
        *out = candidate;
        /* A member that has all answers makes it (U6). Before the second
         * round nobody has them. */
        if (result != MPI_SUCCESS) revoke_unmade(group, candidate);
        /* Nobody else can claim it for this process. */
        if (result != MPI_SUCCESS || (taken && mine)) return result;
    }
}
