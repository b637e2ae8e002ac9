/* memory.c - connections of a universe that go through shared memory: real
 * memory, mapped once for each end, so that a channel behaves as it does
 * between processes. */
#include "sim.h"

#include "../../../src/base/host_id.h"

#include <string.h>

static struct channel *make(void *user, uint32_t conn,
                            struct channel_offer *offer)
{
    struct sim_proc *p = user;
    struct sim *s = p->sim;
    if (s->options.share_fails && sim_pick(s, 6) == 0) return NULL;
    struct shared_memory *share = &p->shares[conn];
    SIM_CHECK(s, shared_memory_make(share, s->options.share, offer),
              "no memory");
    p->conns[conn].mapped = true;
    return &share->channel;
}

/* Offers that cannot be opened, or whose description is false, are refused. */
static struct channel *join(void *user, uint32_t conn,
                            const struct channel_offer *offer)
{
    struct sim_proc *p = user;
    struct sim *s = p->sim;
    struct channel_offer seen = *offer;
    bool wrong = s->options.share_fails && sim_pick(s, 6) == 0;
    if (wrong) {
        sim_coverage.share_half++;
        seen.nonce ^= 1;
    }
    struct shared_memory *share = &p->shares[conn];
    bool opened =
        shared_memory_open(share, &seen); /* not if its maker is gone */
    SIM_CHECK(s, !opened || !wrong, "a wrong offer is taken");
    p->conns[conn].mapped = opened;
    return opened ? &share->channel : NULL;
}

static void settled(void *user, uint32_t conn, bool taken)
{
    struct sim_proc *p = user;
    if (taken)
        shared_memory_settle(&p->shares[conn]);
    else
        memory_close(p, conn);
}

static uint8_t *lend(void *user, struct channel_offer *offer)
{
    struct sim_proc *p = user;
    struct sim *s = p->sim;
    if (!p->area.memory && s->options.share_fails && sim_pick(s, 6) == 0)
        return NULL;
    SIM_CHECK(s, p->area.memory || shared_region_make(&p->area, REGION_SIZE),
              "no memory");
    *offer = p->area.offer;
    return p->area.memory;
}

static const uint8_t *borrow(void *user, uint32_t conn,
                             const struct channel_offer *offer)
{
    struct sim_proc *p = user;
    struct sim *s = p->sim;
    struct channel_offer seen = *offer;
    bool wrong = s->options.share_fails && sim_pick(s, 6) == 0;
    if (wrong) seen.nonce ^= 1;
    struct shared_region *lent = &p->shares[conn].lent;
    bool opened = shared_region_open(lent, &seen);
    SIM_CHECK(s, !opened || !wrong, "a wrong offer is taken");
    return opened ? lent->memory : NULL;
}

void memory_close(struct sim_proc *p, uint32_t conn)
{
    if (p->conns[conn].mapped) shared_memory_free(&p->shares[conn]);
    p->conns[conn].mapped = false;
}

void memory_free(struct sim_proc *p)
{
    for (uint32_t i = 0; i < SIM_CONNS_MAX; i++) memory_close(p, i);
    shared_region_free(&p->area);
}

/* Rule D18: which buffers, and how much of them, is no choice by the random
 * numbers of the universe. */
static bool may_exchange(void *user, const void *bytes, size_t size)
{
    const struct sim_proc *p = user;
    (void)bytes;
    return (p->uid + size) % 4 > 0;
}

static size_t exchange(void *user, void *to, void *from, size_t size)
{
    const struct sim_proc *p = user;
    uint8_t *a = to;
    uint8_t *b = from;
    size_t done = size * ((p->uid + size / 8) % 3) / 2;
    for (size_t i = 0; i < done; i++) {
        uint8_t kept = a[i];
        a[i] = b[i];
        b[i] = kept;
    }
    if (done < size) memset(a + done, 0x5a, size - done);
    sim_coverage.exchanged += done > 0;
    return done;
}

void memory_exchanges(struct driver *out)
{
    out->may_exchange = may_exchange;
    out->exchange = exchange;
}

/* Rule D27: the process at the other end of a connection, if it lives. */
static const struct sim_proc *other_end(const struct sim_proc *p, uint32_t conn)
{
    const struct sim *s = p->sim;
    int stream = p->conns[conn].stream;
    if (stream < 0) return NULL;
    int32_t proc = s->streams[stream].end[!p->conns[conn].side].proc;
    return proc >= 0 && (s->live >> proc & 1) ? &s->procs[proc] : NULL;
}

static bool may_read(void *user, uint32_t conn,
                     const struct wire_member *member)
{
    const struct sim_proc *p = user;
    (void)member;
    return other_end(p, conn) && (p->uid + conn) % 8 > 0;
}

static bool may_be_read(void *user, const void *bytes, size_t size)
{
    const struct sim_proc *p = user;
    (void)bytes;
    return (p->uid + size) % 16 > 0;
}

static bool read_memory(void *user, uint32_t conn,
                        const struct wire_member *member, uint64_t address,
                        void *to, size_t size)
{
    const struct sim_proc *p = user;
    (void)member;
    if (!other_end(p, conn) || (p->uid + size) % 64 == 5) return false;
    memcpy(to, (const void *)(uintptr_t)address, size);
    sim_coverage.pulled++;
    return true;
}

void memory_outputs(struct driver *out)
{
    out->share = make;
    out->join = join;
    out->shared = settled;
    out->region_export = lend;
    out->region_attach = borrow;
    out->cma_works = may_read;
    out->cma_lends = may_be_read;
    out->cma_read = read_memory;
}

bool memory_read(struct sim *s, struct sim_proc *p, uint32_t conn, bool *empty)
{
    struct engine *e = p->session->engine;
    struct channel *channel = e->links.conns[conn]->channel;
    const uint8_t *from;
    /* A process that is about to launch mostly finds posts where they lie. */
    bool leaves = s->options.fast && p->program.stage == STAGE_LAUNCH &&
                  channel_has_post(channel, memory_order_relaxed) &&
                  sim_pick(s, 256) > 0;
    size_t size = leaves ? 0 : channel_ready(channel, &from);
    *empty = size == 0;
    if (*empty) return false;
    int stream = p->conns[conn].stream;
    sim_coverage.share_lost += s->streams[stream].pipe[0].ended;
    size_t whole = size;
    size = sim_chunk(s, size);
    /* Between two launches, unless time passes there. */
    e->defers = p->program.stage == STAGE_LAUNCH && sim_pick(s, 4) > 0;
    if (e->defers) size = whole;
    size = engine_rx_from(e, conn, from, size);
    sim_coverage.left +=
        e->defers && size < whole && !e->links.conns[conn]->parked;
    e->defers = false;
    if (e->links.conns[conn]->channel != channel) return true; /* closed */
    if (size > 0) channel_read(channel, size);
    sim_coverage.shared++;
    return size > 0;
}

/* Rule L11c: only of a member that has been left out, whose neighbours do not
 * count it any more. */
bool memory_broken(const struct sim *s, const struct sim_proc *p, uint32_t conn)
{
    const struct engine *e = p->session->engine;
    const struct channel *channel = e->links.conns[conn]->channel;
    if (!channel || !channel->broken) return false;
    SIM_CHECK(s, !sim_is_member(s, p->session->id), "indices of a channel");
    return true;
}

bool memory_write(struct sim *s, struct sim_proc *p, uint32_t conn)
{
    struct engine *e = p->session->engine;
    struct channel *channel = e->links.conns[conn]->channel;
    struct conn_part parts[2];
    uint32_t count = engine_tx_window(e, conn, parts);
    uint8_t *to;
    size_t total = parts[0].size + (count > 1 ? parts[1].size : 0);
    size_t room = channel_room(channel, &to);
    if (memory_broken(s, p, conn)) return false;
    p->conns[conn].blocked = true; /* until there are no bytes to send */
    if (room == 0) return false;
    size_t want = sim_chunk(s, total < room ? total : room);
    size_t head = want < parts[0].size ? want : parts[0].size;
    memcpy(to, parts[0].from, head);
    if (want > head) memcpy(to + head, parts[1].from, want - head);
    channel_write(channel, want);
    engine_tx(e, conn, want);
    return true;
}

/* Some hosts have a processor for each member. */
uint64_t sim_host(const struct sim *s)
{
    bool roomy = s->options.lends && s->seed / 16 % 2;
    if (!s->options.pairwise) return 1;
    return roomy ? host_id_make(1, SIM_ALIVE_MAX) : 2;
}

/* Sums of the smallest vectors are shared (rule D9f), and some members are soon
 * late. */
void memory_choose(const struct sim *s, struct sim_proc *p)
{
    p->session->engine->sums_least = 0;
    p->session->engine->pull_least = 1;
    if (s->seed % 4 > 1) p->session->engine->sums_looks = 2;
    if (s->seed % 2 == 0) p->session->engine->input_large = 0;
    p->session->engine->input_block = (size_t)100 << s->seed % 8;
}
