/* proposals.h - a master of one group, and its last messages: the fixture of
 * test_links and test_probes. */
#ifndef CORE_PROPOSALS_H
#define CORE_PROPOSALS_H

#include "founded.h"

enum { WORLD = 20 };

static void *store;

/* The last messages of the master. */
static struct wire_msg proposed, installed;
static uint16_t order[WORLD], places[WORLD];
static uint64_t blockers[2 * MASTER_EDGES_MAX];
static char evicted[WIRE_TEXT_MAX + 1];
static uint32_t evictions, cuts;
static uint32_t notes, searches, proposals;
static struct {
    bool due;
    uint64_t with;
    uint32_t step;
} probes[WORLD];
static struct master_search search;

static void on_send(void *user, const uint32_t *links, uint32_t count,
                    const struct wire_msg *m)
{
    (void)user;
    if (m->type == WIRE_PROPOSE) {
        proposed = *m;
        proposals++;
        for (uint32_t i = 0; i < WORLD; i++) order[i] = (uint16_t)i;
        memcpy(order, m->order, m->order_count * sizeof *order);
        memcpy(places, m->sites, m->site_count * sizeof *places);
    }
    if (m->type == WIRE_INSTALL) {
        installed = *m;
        memcpy(blockers, m->ids, m->id_count * sizeof *blockers);
    }
    evictions += m->type == WIRE_EVICT;
    if (m->type == WIRE_EVICT) memcpy(evicted, m->abort.text, sizeof evicted);
    if (m->type == WIRE_PROBE) { /* as pccl.h says */
        assert_in_range(m->probe.bytes, 1, 16 << 20);
        assert_in_range(m->probe.time_us, 1, 1000000);
    }
    for (uint32_t i = 0; i < count && m->type == WIRE_PROBE; i++) {
        probes[links[i]].due = m->probe.takes;
        probes[links[i]].with = m->probe.peer;
        probes[links[i]].step = m->round;
    }
}

static void on_note(void *user, const struct master_note *note)
{
    (void)user;
    notes += note->kind == NOTE_NO_RING;
    cuts += note->kind == NOTE_CUT;
}

static bool on_search(void *user, const struct master_search *s)
{
    (void)user;
    search = *s;
    searches++;
    return true;
}

static int setup(void **state)
{
    (void)state;
    size_t size = bandwidth_size(PEERS_MAX);
    store = calloc(1, size);
    if (!store) return 1;
    notes = searches = proposals = evictions = cuts = 0;
    evicted[0] = '\0';
    memset(probes, 0, sizeof probes);
    struct master_config c = {
        .out = {.send = on_send, .note = on_note, .search = on_search},
        .edges = bandwidth_init(store, size, PEERS_MAX),
        .small_world = 2,
        .deadline = 100,
        .quorum = 1};
    return serve(&c) ? 0 : 1;
}

static int end(void **state)
{
    free(store);
    return teardown(state);
}

/* Link i is id i + 1; `site` is the last but one byte of its address. */
static void hello(uint32_t link, uint64_t host, uint8_t site)
{
    struct wire_msg m = {.type = WIRE_HELLO};
    m.hello.self.host = host;
    m.hello.self.hint = (int32_t)link;
    m.hello.self.pid = 1000 + link;
    m.hello.self.addr = (struct wire_addr){
        .family = 4, .ip = {10, 0, site, (uint8_t)(link + 1)}, .port = 7};
    comes(link, &m);
}

static void quorum(uint32_t count)
{
    struct master_event e = {
        .type = MASTER_QUORUM, .now = now, .quorum = count};
    master_step(master, &e);
}

static void ready(uint32_t link, uint64_t failed)
{
    struct wire_msg m = {.type = WIRE_READY,
                         .round = proposed.round,
                         .ids = &failed,
                         .id_count = failed > 0};
    step(MASTER_RECEIVED, link, &m);
}

static void vote(uint32_t link, enum vote_kind kind)
{
    static uint32_t calls; /* a later one has a higher number (V1) */
    struct wire_msg m = {
        .type = WIRE_VOTE, .round = ++calls, .vote = {.kind = (uint8_t)kind}};
    step(MASTER_RECEIVED, link, &m);
}

static void view_of(uint32_t count)
{
    quorum(count);
    for (uint32_t i = 0; i < count; i++) hello(i, 0, 0);
    for (uint32_t i = 0; i < count; i++) ready(i, 0);
    assert_int_equal(installed.round, proposed.round);
}

static void assert_order(const char *ranks)
{
    for (uint32_t i = 0; ranks[i]; i++)
        assert_int_equal(order[i], ranks[i] - '0');
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, end)

#endif
