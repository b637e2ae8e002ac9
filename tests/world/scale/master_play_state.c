/* master_play_state.c - shared state and partial all-reduces in the life of a
 * run. See master_play.h. */
#include "master_play.h"

#include "../../../src/master/coverage/coverage.h"

#include <string.h>

/* Of four one lacks the state, and says that it has received it from all. */
void play_sync(const struct crowd *c)
{
    static uint64_t ids[PEERS_MAX];
    struct wire_msg m = {.type = WIRE_SYNC, .round = ++play_calls};
    m.sync.revision = 1;
    for (uint32_t i = 0; i < run->link_end; i++) {
        m.epoch = run->groups[run->peers[i].group].epoch;
        m.sync.content = i / c->groups % 4 == 3;
        if (play_is_member(i)) play(MASTER_RECEIVED, i, &m);
    }
    m.type = WIRE_SYNCED;
    m.ids = ids;
    for (uint32_t i = 0; i < c->members && m.id_count + 2 < PEERS_MAX; i++) {
        ids[m.id_count++] = run->peers[i].info.id;
        ids[m.id_count++] = 1;
    }
    for (uint32_t i = 0; i < run->link_end; i++) {
        const struct master_peer *p = &run->peers[i];
        if (!play_is_member(i) || p->sync.part != PART_LACKS) continue;
        m.sync.id = run->groups[p->group].sync_id;
        m.sync.role = SYNC_COMPLETE;
        play(MASTER_RECEIVED, i, &m);
    }
    for (uint32_t i = 0; i < run->group_count; i++)
        PCCL_ASSERT(run->groups[run->group_list[i]].sync_id == 0);
}

/* ------------------------------------------------------ partial all-reduces */

static uint32_t versions;

static void call(uint32_t link, uint64_t tag)
{
    struct wire_msg m = {.type = WIRE_PARTIAL};
    m.partial.word = PARTIAL_CALL;
    m.partial.tag = tag;
    m.partial.version = ++versions;
    m.partial.count = 1 << 20;
    m.partial.dtype = 10;
    m.partial.redop = 1;
    m.partial.weight = 1;
    m.partial.deadline_ms = 1000;
    play(MASTER_RECEIVED, link, &m);
}

static struct coverage_round *last_of(uint64_t tag)
{
    struct coverage_round *found = NULL;
    for (struct coverage_round *r = run->groups[0].averages; r; r = r->next)
        if (r->tag == tag) found = r;
    return found;
}

/* All parts have been folded from those that have called. */
static void fold(const struct coverage_round *r)
{
    static uint8_t set[WIRE_AVERAGED_MAX / 8];
    memset(set, 0, sizeof set);
    for (uint32_t i = 0; i < r->member_count; i++)
        if (r->members[i].called) set[i / 8] |= (uint8_t)(1u << i % 8);
    uint64_t number = r->number;
    for (uint32_t i = 0; i < r->part_count; i++) {
        struct wire_msg m = {.type = WIRE_PARTIAL,
                             .set_count = 1,
                             .set_size = (r->member_count + 7) / 8,
                             .sets = set};
        m.partial.word = PARTIAL_FOLDED;
        m.partial.number = number;
        m.partial.part = i;
        m.partial.hash = 100 + i;
        play(MASTER_RECEIVED, r->members[r->parts[i].owner].link, &m);
    }
}

static void hold(uint64_t tag, uint64_t number, uint32_t parts, uint32_t link)
{
    static uint64_t ids[2 * WIRE_PARTS_MAX];
    struct wire_msg m = {.type = WIRE_PARTIAL, .ids = ids};
    m.partial.word = PARTIAL_HOLDS;
    m.partial.tag = tag;
    m.partial.number = number;
    for (uint32_t i = 0; i < parts; i++) {
        ids[m.id_count++] = i;
        ids[m.id_count++] = 100 + i;
    }
    play(MASTER_RECEIVED, link, &m);
}

/* The last quarter comes too late for each round of each tag; one that has
 * called lacks the parts. */
void play_partial(const struct crowd *c)
{
    versions = 0;
    uint32_t callers = c->members / 4 * 3;
    for (uint32_t k = 0; k < 4; k++) {
        for (uint64_t tag = 1; tag <= c->tags; tag++)
            for (uint32_t i = 0; i < callers; i++) call(i, tag);
        run_now += 300 * PCCL_MS;
        play(MASTER_TICK, 0, NULL);
        for (uint64_t tag = 1; tag <= c->tags; tag++) {
            const struct coverage_round *r = last_of(tag);
            PCCL_ASSERT(r && r->state == COVERAGE_MOVING);
            uint64_t number = r->number;
            uint32_t parts = r->part_count;
            fold(r);
            for (uint32_t i = 0; i + 1 < callers; i++)
                hold(tag, number, parts, i);
        }
        run_now += 600 * PCCL_MS;
        play(MASTER_TICK, 0, NULL);
        run_now += 100 * PCCL_MS;
        play(MASTER_TICK, 0, NULL);
        for (uint64_t tag = 1; tag <= c->tags; tag++) {
            const struct coverage_round *r = last_of(tag);
            PCCL_ASSERT(r && r->state == COVERAGE_DECIDED);
            hold(tag, r->number, r->part_count, callers - 1);
        }
    }
    struct wire_msg failed = {.type = WIRE_PARTIAL};
    failed.partial.word = PARTIAL_FAILED;
    failed.partial.number = 1;
    play(MASTER_RECEIVED, 0, &failed);
}
