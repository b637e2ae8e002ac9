/* coll_again.c - a blocking collective whose arguments are those of the one
 * before, but for its buffers, runs again as that was filled in.
 *
 * What a communicator keeps has one operation, whose buffers are those of the
 * call, and predefined types and operators, which are never freed. */
#include "coll.h"

#include <stdlib.h>
#include <string.h>

/* Nothing but the buffers could be different. */
static bool may_keep(const struct coll *coll)
{
    bool predefined = (!coll->recvtype || coll->recvtype->predefined) &&
                      (!coll->reducer || coll->reducer->predefined);
    return predefined && !coll->comm->remote && !coll->unaware &&
           !coll->in_place && coll->round == 1 && !coll->stages[0] &&
           coll->members->size > 1 && coll->members == coll->called;
}

static bool is_same(const struct coll_key *a, const struct coll_key *b)
{
    return a->call == b->call && a->type == b->type && a->op == b->op &&
           a->count == b->count && a->root == b->root;
}

static void drop(struct coll *kept)
{
    if (!kept) return;
    coll_arguments_free(kept);
    free(kept);
}

void coll_forget(struct comm *comm)
{
    drop(atomic_exchange(&comm->kept, NULL));
}

static void put_back(struct coll *kept)
{
    drop(atomic_exchange(&kept->comm->kept, kept));
}

/* The numbers and texts that pccl may name move with it. */
static void move(struct coll *to, const struct coll *from)
{
    memcpy(to, from, sizeof *to);
    to->op.arguments = to->named;
    for (size_t i = 0; i < to->op.argument_count; i++)
        if (to->named[i].values) to->named[i].values = &to->numbers[i];
}

/* A program that does it twice in a row will do it again. */
void coll_end(struct coll *coll)
{
    struct coll_key *last = &coll->comm->last_key;
    bool may = coll->key.call != CALL_INTERNAL && is_same(last, &coll->key);
    if (coll->key.call != CALL_INTERNAL) *last = coll->key;
    struct coll *kept = may && may_keep(coll) ? malloc(sizeof *kept) : NULL;
    if (!kept) {
        coll_arguments_free(coll);
        return;
    }
    move(kept, coll);
    put_back(kept);
}

static bool is_buffer(const void *buffer)
{
    return buffer && buffer != MPI_IN_PLACE;
}

/* The errors of buffers are those of a call that is filled in. */
static bool has_buffers(const struct coll *coll, const void *sendbuf,
                        const void *recvbuf)
{
    switch (coll->call) {
    case CALL_BARRIER:
        return true;
    case CALL_BCAST:
        return is_buffer(recvbuf);
    default:
        if (!coll->reduction.keep) return is_buffer(sendbuf);
        return is_buffer(sendbuf) && is_buffer(recvbuf) && sendbuf != recvbuf;
    }
}

static bool fits(const struct coll *coll, const struct coll_key *key,
                 const void *sendbuf, const void *recvbuf)
{
    return is_same(&coll->key, key) && coll->called == comm_scope(coll->comm) &&
           has_buffers(coll, sendbuf, recvbuf);
}

bool coll_again(struct comm *comm, const struct coll_key *key,
                const void *sendbuf, void *recvbuf, const char *function,
                int *result)
{
    if (!atomic_load_explicit(&comm->kept, memory_order_relaxed)) return false;
    /* Nobody else has it while it runs. */
    struct coll *coll = atomic_exchange(&comm->kept, NULL);
    if (!coll) return false;
    if (!fits(coll, key, sendbuf, recvbuf)) {
        put_back(coll);
        return false;
    }
    coll->function = function;
    coll->op.sendbuf = coll->sendbuf = sendbuf;
    coll->op.recvbuf = coll->recvbuf = recvbuf;
    coll->round = 0;
    coll->ready = true;
    int error = coll_settle(coll);
    *result = MPI_SUCCESS;
    if (error == MPI_SUCCESS && may_keep(coll)) {
        put_back(coll);
        return true;
    }
    drop(coll);
    if (error != MPI_SUCCESS)
        *result = error_raise_noted(comm, error, function);
    return true;
}
