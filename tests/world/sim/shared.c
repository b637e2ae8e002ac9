/* shared.c - shared state in the simulator: the tensors that processes
 * synchronize, and the conditions on them (rules S1..S9).
 *
 * A process that was synchronized changes its state as all others do before
 * the next time, but for some that err; a newcomer has bytes of its own. A
 * process that is refused because it lacks the run's state loads the last
 * checkpoint. */
#include "averages.h"
#include "election.h"
#include "faults.h"
#include "witness.h"

#include "../../../include/pccl.h"
#include "../../../src/hash/hash.h"

#include <stdlib.h>
#include <string.h>

enum { BLOCK = 65536 };

/* --- a device: the host cannot use its addresses --- */

#define DEVICE_BASE ((uintptr_t)1 << 62)

static uint8_t *inside(const uint8_t *data)
{
    assert((uintptr_t)data > DEVICE_BASE);
    return (uint8_t *)((uintptr_t)data - DEVICE_BASE);
}

static bool device_hash(void *user, const uint8_t *data, uint64_t size,
                        uint64_t *blocks)
{
    (void)user;
    hash_blocks(inside(data), size, 0, hash_block_count(size), blocks, 1);
    return true;
}

static bool device_read(void *user, uint8_t *host, const uint8_t *data,
                        uint64_t size)
{
    (void)user;
    memcpy(host, inside(data), size);
    return true;
}

static bool device_write(void *user, uint8_t *data, const uint8_t *host,
                         uint64_t size)
{
    (void)user;
    memcpy(inside(data), host, size);
    sim_coverage.sync_device++;
    return true;
}

static uint8_t *device_take(void *user, uint64_t size)
{
    (void)user;
    return malloc(size);
}

static void device_give(void *user, uint8_t *host)
{
    (void)user;
    free(host);
}

static const struct state_device device = {
    NULL, device_hash, device_read, device_write, device_take, device_give};

/* --- the state of processes --- */

static uint64_t fold(const uint8_t *bytes, size_t size)
{
    uint64_t h = size;
    for (size_t i = 0; i < size; i++) h = (h ^ bytes[i]) * 0x100000001b3u;
    return h ^ h >> 31;
}

static size_t tensor_size(const struct sim *s, uint32_t i)
{
    uint64_t h = sim_mix(s->seed, 88, i, 0);
    if (i == 1) return 0;
    bool large = s->options.large && (i == 2 || s->options.sync > 2);
    if (large) return 2 * BLOCK + h % BLOCK;
    return 1 + h % 2000;
}

static size_t state_size(const struct sim *s)
{
    size_t size = 0;
    for (uint32_t i = 0; i < SIM_TENSORS; i++) size += tensor_size(s, i);
    return size;
}

size_t shared_size(const struct sim *s)
{
    return state_size(s);
}

/* On some processes a tensor lies on a device, on others it does not. */
void shared_tensors(const struct sim *s, uint32_t uid, bool odd, uint8_t *bytes,
                    struct state_tensor tensors[SIM_TENSORS])
{
    for (uint32_t i = 0; i < SIM_TENSORS; i++) {
        size_t size = tensor_size(s, i);
        tensors[i] = (struct state_tensor){.name = odd && i == 0 ? "odd" : "t",
                                           .data = bytes,
                                           .count = size,
                                           .size = size};
        if (size > 0 && (uid + i) % 3 == 0) {
            tensors[i].device = &device;
            tensors[i].data = (uint8_t *)((uintptr_t)bytes + DEVICE_BASE);
        }
        bytes += size;
    }
}

void shared_init(struct sim *s, struct sim_proc *p)
{
    struct sim_shared *x = &p->shared;
    x->size = state_size(s);
    x->bytes = malloc(x->size);
    x->before = malloc(x->size);
    assert(x->bytes && x->before);
    /* Most bytes of a universe that never looks at them. */
    size_t used = s->options.sync > 0 ? x->size : 0;
    uint8_t period[256];
    for (uint32_t i = 0; i < sizeof period; i++)
        period[i] = (uint8_t)(i * 7 + p->uid % 2 * 3);
    for (size_t i = 0; i < used; i += sizeof period)
        memcpy(x->bytes + i, period,
               used - i < sizeof period ? used - i : sizeof period);
}

void shared_free(struct sim_proc *p)
{
    struct sim_shared *x = &p->shared;
    if (x->listed) state_list_free(&x->list);
    x->listed = false;
    fetch_forget(p);
    free(x->bytes);
    free(x->before);
    x->bytes = x->before = NULL;
}

static void advance(struct sim *s, struct sim_proc *p)
{
    struct sim_shared *x = &p->shared;
    uint64_t h = sim_mix(s->seed, 89, p->program.step, 0);
    if (x->synced) {
        x->bytes[h % x->size] = (uint8_t)(h >> 32);
        x->revision++;
        x->synced = false;
    }
    if (sim_pick(s, 6) == 0) x->bytes[sim_pick(s, (uint32_t)x->size)] ^= 1;
    if (!s->options.well && sim_pick(s, 40) == 0)
        x->revision += sim_pick(s, 2) ? 1 : 3;
}

static void choose_strategy(struct sim *s, struct sim_proc *p)
{
    struct sim_shared *x = &p->shared;
    x->strategy = SYNC_ENFORCE_POPULAR;
    if (s->options.well) return;
    if (sim_mix(s->seed, 90, p->program.step, 0) % 4 != 0) return;
    x->strategy = x->member ? SYNC_SEND_ONLY : SYNC_RECEIVE_ONLY;
}

/* Some processes do not call as the others do. */
static void err(struct sim *s, struct sim_shared *x)
{
    if (s->options.well || sim_pick(s, 60) > 0) return;
    x->strategy = (enum sync_strategy)sim_pick(s, SYNC_STRATEGY_COUNT);
}

bool shared_begin(struct sim *s, struct sim_proc *p)
{
    struct sim_shared *x = &p->shared;
    struct state_tensor tensors[SIM_TENSORS];
    advance(s, p);
    choose_strategy(s, p);
    err(s, x);
    memcpy(x->before, x->bytes, x->size);
    averages_vote(s, p);
    x->odd = !s->options.well && sim_pick(s, s->options.storm ? 8 : 50) == 0;
    shared_tensors(s, p->uid, x->odd, x->bytes, tensors);
    bool ok = state_list_make(&x->list, tensors, SIM_TENSORS, 1);
    SIM_CHECK(s, ok || s->options.scarce, "no memory");
    if (!ok) return false; /* the program calls again */
    x->listed = true;
    uint64_t content = sim_trace ? fold(x->bytes, x->size) : 0;
    int result = session_sync(p->session, &x->list, x->strategy, x->revision);
    SIM_TRACE(s,
              "process %u (id %llu) syncs revision %llu content %llx "
              "strategy %d: %d",
              p->uid, (unsigned long long)p->session->id,
              (unsigned long long)x->revision, (unsigned long long)content,
              (int)x->strategy, result);
    if (result == pcclInternalError && s->options.scarce) {
        state_list_free(&x->list);
        x->listed = false;
        return false;
    }
    SIM_CHECK(s, result == pcclSuccess || p->session->master_lost,
              "sync refused: %d", result);
    x->liar = s->options.liars && x->member && sim_pick(s, 8) == 0;
    if (x->liar) x->bytes[sim_pick(s, (uint32_t)x->size)] ^= 1;
    return result == pcclSuccess;
}

/* Bytes of the blocks that changed. */
static uint64_t moved(const struct sim *s, const struct sim_shared *x)
{
    uint64_t total = 0;
    size_t at = 0;
    for (uint32_t i = 0; i < SIM_TENSORS; i++) {
        size_t left = tensor_size(s, i);
        while (left > 0) {
            size_t size = left < BLOCK ? left : BLOCK;
            if (memcmp(x->bytes + at, x->before + at, size) != 0) total += size;
            at += size;
            left -= size;
        }
    }
    return total;
}

static struct sim_checkpoint *checkpoint(struct sim *s, uint32_t group)
{
    return &s->checkpoints[group % SIM_GROUPS];
}

/* The moment in a transfer at which a process has died. */
void shared_killed(struct sim *s, const struct sim_proc *dead)
{
    const struct state_sync *own = &dead->session->sync_state;
    if (own->phase != STATE_MOVING) return;
    sim_coverage.sync_lost++;
    for (uint32_t i = 0; i < own->flight_end; i++)
        sim_coverage.sync_cut_taker += own->flights[i].used;
    bool other = false;
    for (uint32_t left = s->live, k; sim_next(s, &left, &k);) {
        const struct sim_proc *p = &s->procs[k];
        if (p == dead) continue;
        const struct state_sync *t = &p->session->sync_state;
        other |= t->phase == STATE_MOVING && p->group != dead->group;
        for (uint32_t i = 0; t->phase == STATE_MOVING && i < t->flight_end;
             i++) {
            const struct state_flight *f = &t->flights[i];
            if (!f->used || f->peer != dead->session->id) continue;
            sim_coverage.sync_cut_names += f->piece.kind == STATE_NAMES;
            sim_coverage.sync_cut_tensors += f->piece.kind == STATE_TENSORS;
            sim_coverage.sync_cut_hashes += f->piece.kind == STATE_BLOCKS;
            sim_coverage.sync_cut_bytes += f->piece.kind == STATE_BYTES;
            sim_coverage.sync_cut_body += f->receiving;
        }
    }
    sim_coverage.sync_cut_two += other;
}

static void check_success(struct sim *s, struct sim_proc *p, uint64_t revision,
                          uint64_t tx, uint64_t rx)
{
    struct sim_shared *x = &p->shared;
    struct sim_checkpoint *c = checkpoint(s, p->group);
    /* Where a master died in the midst of it, another content may be elected,
     * which has blocks back as they were (H6). */
    uint64_t due = moved(s, x);
    SIM_CHECK(s, x->liar || rx == due || (p->session->sync_again && rx > due),
              "rx is %llu, not %llu", (unsigned long long)rx,
              (unsigned long long)due);
    SIM_CHECK(s, x->strategy != SYNC_RECEIVE_ONLY || tx == 0,
              "a receive-only peer has sent");
    SIM_CHECK(s, x->strategy != SYNC_SEND_ONLY || rx == 0,
              "a send-only peer has received");
    /* A SYNC that came twice is the vote of a call that nobody made. */
    if (sim_is_member(s, p->session->id) && !s->options.stutter) {
        SIM_CHECK(s,
                  !c->bytes || revision >= c->revision ||
                      c->holder == p->session->id,
                  "revision %llu after %llu", (unsigned long long)revision,
                  (unsigned long long)c->revision);
        SIM_CHECK(
            s,
            !c->bytes || revision != c->revision ||
                memcmp(c->bytes, x->bytes, x->size) == 0 || x->odd || x->liar,
            "two contents of revision %llu", (unsigned long long)revision);
    }
    election_taken(s, p->group, p->session->id, p->session->sync_state.id, tx,
                   rx);
    sim_coverage.sync++;
    sim_coverage.sync_received += rx > 0;
    sim_coverage.sync_blocks += rx > 0 && rx < x->size;
    sim_coverage.sync_alone += p->session->view->size == 1;
    sim_coverage.fetch_exact += x->fetched && rx == 0;
    x->fetched = false;
    bool former = p->session->id <= s->run_ids_from; /* of another run */
    if (x->odd || x->liar || former) return;
    if (!c->bytes) c->bytes = malloc(x->size);
    assert(c->bytes);
    if (revision < c->revision) return;
    memcpy(c->bytes, x->bytes, x->size);
    c->revision = revision;
    c->holder = p->session->id;
}

void shared_end(struct sim *s, struct sim_proc *p)
{
    struct sim_shared *x = &p->shared;
    struct sim_checkpoint *c = checkpoint(s, p->group);
    const char *why = p->session->sync_error;
    uint64_t revision, tx, rx;
    int result = session_sync_take(p->session, &revision, &tx, &rx);
    witness_shared(p, result, result == pcclSuccess ? revision : 0);
    state_list_free(&x->list);
    x->listed = false;
    SIM_TRACE(s,
              "process %u (id %llu) has synced: %d, revision %llu, rx %llu"
              " %s",
              p->uid, (unsigned long long)p->session->id, result,
              (unsigned long long)revision, (unsigned long long)rx,
              p->session->sync_error);
    x->member |= result == pcclSuccess;
    sim_coverage.resumed_syncs +=
        result == pcclSuccess && p->session->sync_again;
    x->synced = result == pcclSuccess && !x->liar;
    if (result == pcclSuccess) averages_receive(s, p);
    switch (result) {
    case pcclSuccess:
        check_success(s, p, revision, tx, rx);
        x->revision = x->liar ? 0 : revision;
        if (x->liar) memcpy(x->bytes, x->before, x->size);
        return;
    case pcclInvalidArgument:
        if (strstr(why, "another strategy")) break;
        SIM_CHECK(s, strstr(p->session->sync_error, "entry 0 of rank") != NULL,
                  "the tensor is not named: %s", p->session->sync_error);
        sim_coverage.sync_odd++;
        break;
    case pcclInvalidUsage:
        sim_coverage.sync_ahead += strstr(why, "ahead") != 0;
        sim_coverage.sync_foreign += strstr(why, "left") != 0;
        sim_coverage.sync_conflict += strstr(why, "only sends") != 0;
        break;
    case pcclNoSharedStateAvailable:
        sim_coverage.sync_none++;
        break;
    default:
        SIM_CHECK(s, p->session->state == SESSION_GONE,
                  "unexpected result %d of a sync", result);
        return;
    }
    /* What an election of a dead master has moved stays (H6). */
    if (!x->liar && !p->session->sync_again &&
        (x->strategy == SYNC_SEND_ONLY || result == pcclInvalidUsage))
        SIM_CHECK(s, memcmp(x->bytes, x->before, x->size) == 0,
                  "a refused peer's state was written");
    x->revision = 0;
    if (!c->bytes || sim_pick(s, 4) == 0) return;
    memcpy(x->bytes, c->bytes, x->size);
    x->revision = c->revision;
    sim_coverage.sync_resume++;
}
