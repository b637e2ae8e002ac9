/* scale_net.c - streams, and whose turn it is. See scale.h. */
#include "scale.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Parties that have work, the one that has waited longest first. */
struct turn {
    uint32_t party;
    struct scale_stream *stream; /* of the coordinator; a dial */
    bool dial;
};

static struct {
    struct turn *turns;
    size_t first, count, room;
} queue;

_Noreturn void scale_fail(const char *file, int line, const char *what)
{
    fprintf(stderr, "%s:%d: %s\n", file, line, what);
    exit(1);
}

void *scale_zeros(size_t size)
{
    void *bytes = calloc(1, size);
    SCALE_CHECK(bytes != NULL);
    return bytes;
}

static void append(struct turn turn)
{
    if (queue.count == queue.room) {
        size_t room = queue.room > 0 ? 2 * queue.room : 1024;
        struct turn *turns = calloc(room, sizeof *turns);
        SCALE_CHECK(turns != NULL);
        for (size_t i = 0; i < queue.count; i++)
            turns[i] = queue.turns[(queue.first + i) % queue.room];
        free(queue.turns);
        queue.turns = turns;
        queue.first = 0;
        queue.room = room;
    }
    queue.turns[(queue.first + queue.count++) % queue.room] = turn;
}

void scale_wake(uint32_t party, struct scale_stream *st)
{
    if (party == SCALE_NOBODY) return;
    if (party != SCALE_MASTER) {
        struct scale_member *m = &scale.members[party];
        if (m->queued) return;
        m->queued = true;
        st = NULL;
    }
    append((struct turn){.party = party, .stream = st});
}

struct scale_stream *scale_connect(uint32_t from, uint32_t conn, uint32_t to)
{
    struct scale_stream *st = scale_zeros(sizeof *st);
    st->party[0] = from;
    st->party[1] = to;
    st->conn[0] = conn;
    for (int i = 0; i < 2; i++) st->pipe[i].limit = SCALE_PIPE;
    st->dials = true;
    st->next = scale.streams;
    scale.streams = st;
    append((struct turn){.party = to, .stream = st, .dial = true});
    return st;
}

void scale_leave(struct scale_stream *st, int side)
{
    st->party[side] = SCALE_NOBODY;
    st->pipe[side].ended = true;
    scale_wake(st->party[!side], st);
    free(st->pipe[!side].bytes);
    st->pipe[!side] = (struct net_pipe){.limit = SIZE_MAX / 2};
}

size_t scale_write(struct scale_stream *st, int side, const uint8_t *bytes,
                   size_t size)
{
    struct net_pipe *p = &st->pipe[side];
    if (st->party[!side] == SCALE_NOBODY) return size; /* for nobody */
    bool idle = p->count == 0;
    size_t done = net_write(p, bytes, size);
    if (done > 0 && idle) scale_wake(st->party[!side], st);
    st->waits[side] |= done < size;
    return done;
}

void scale_was_read(struct scale_stream *st, int side)
{
    struct net_pipe *p = &st->pipe[!side];
    if (p->count == 0) {
        free(p->bytes);
        p->bytes = NULL;
        p->capacity = p->first = 0;
    }
    if (!st->waits[!side]) return;
    st->waits[!side] = false;
    if (st->party[!side] == SCALE_MASTER)
        scale_master_writable(st);
    else
        scale_wake(st->party[!side], st);
}

static void take(const struct turn *t)
{
    struct scale_stream *st = t->stream;
    if (t->dial) st->dials = false;
    if (t->dial && t->party == SCALE_MASTER) {
        scale_master_accept(st);
    } else if (t->dial) {
        scale_member_dialed(st);
    } else if (t->party == SCALE_MASTER && !st) {
        scale_master_rest();
    } else if (t->party == SCALE_MASTER) {
        scale_master_read(st);
    } else {
        scale.members[t->party].queued = false;
        scale_member_turn(t->party);
    }
}

void scale_run(void)
{
    while (queue.count > 0) {
        struct turn t = queue.turns[queue.first];
        queue.first = (queue.first + 1) % queue.room;
        queue.count--;
        take(&t);
    }
}

void scale_run_for(pccl_ns time)
{
    pccl_ns until = scale.now + time;
    for (;;) {
        scale_run();
        pccl_ns next = scale.master_tick_at;
        for (uint32_t i = 0; i < scale.count; i++) {
            const struct scale_member *m = &scale.members[i];
            if (m->session && m->tick_at < next) next = m->tick_at;
        }
        if (next > until) break;
        scale.now = next;
        if (scale.master_tick_at <= next) scale_master_tick();
        for (uint32_t i = 0; i < scale.count; i++)
            if (scale.members[i].session && scale.members[i].tick_at <= next)
                scale_member_tick(i);
    }
    scale.now = until;
}

void scale_net_end(void)
{
    while (scale.streams) {
        struct scale_stream *st = scale.streams;
        scale.streams = st->next;
        for (int i = 0; i < 2; i++) free(st->pipe[i].bytes);
        free(st);
    }
    free(queue.turns);
    memset(&queue, 0, sizeof queue);
}
