/* test_links.c - the rings that the master proposes and who is to call whom:
 * rules D15, R3, R4 and O4 to O8. */
#include "unit.h"

#include "../../src/master/master.h"

enum { WORLD = 7 };

static struct master *master;
static void *store;
static pccl_ns now;

/* What the master said last. */
static struct wire_msg proposed, installed;
static uint16_t order[WORLD], places[WORLD];
static struct wire_pair pairs[WIRE_PAIRS_MAX];
static uint64_t blockers[2 * WIRE_PAIRS_MAX];
static char evicted[WIRE_TEXT_MAX + 1];
static uint32_t notes, searches, proposals;
static struct {
    bool due;
    uint64_t with;
    uint32_t step;
    bool calls;
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
        memcpy(pairs, m->pairs, m->pair_count * sizeof *pairs);
    }
    if (m->type == WIRE_INSTALL) {
        installed = *m;
        memcpy(blockers, m->ids, m->id_count * sizeof *blockers);
    }
    if (m->type == WIRE_EVICT) memcpy(evicted, m->abort.text, sizeof evicted);
    for (uint32_t i = 0; i < count && m->type == WIRE_PROBE; i++) {
        probes[links[i]].due = m->probe.takes;
        probes[links[i]].with = m->probe.peer;
        probes[links[i]].step = m->round;
        probes[links[i]].calls = m->probe.calls;
    }
}

static void on_close(void *user, uint32_t link, const char *reason)
{
    (void)user, (void)link, (void)reason;
}

static void on_note(void *user, const struct master_note *note)
{
    (void)user;
    notes += note->kind == NOTE_NO_RING;
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
    master = calloc(1, sizeof *master);
    size_t size = bandwidth_size(PEERS_MAX);
    store = calloc(1, size);
    if (!master || !store) return 1;
    now = 1;
    notes = searches = proposals = 0;
    evicted[0] = '\0';
    memset(probes, 0, sizeof probes);
    struct master_config c = {.out = {.send = on_send,
                                      .close = on_close,
                                      .note = on_note,
                                      .search = on_search},
                              .edges = bandwidth_init(store, size, PEERS_MAX),
                              .small_world = 2,
                              .deadline = 100,
                              .quorum = 1};
    master_init(master, &c);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    free(master);
    free(store);
    return 0;
}

static void step(enum master_event_type type, uint32_t link,
                 const struct wire_msg *m)
{
    struct master_event e = {.type = type, .link = link, .now = now, .msg = m};
    master_step(master, &e);
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
    step(MASTER_CONNECTED, link, NULL);
    step(MASTER_RECEIVED, link, &m);
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
    struct wire_msg m = {.type = WIRE_VOTE, .vote = {.kind = (uint8_t)kind}};
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

/* --------------------------------------------------------- who calls (R3) */

static void test_the_other_end_is_told_to_call(void **state)
{
    (void)state;
    quorum(3);
    for (uint32_t i = 0; i < 3; i++) hello(i, 0, 0);
    assert_int_equal(proposed.pair_count, 0);
    ready(0, 2);
    assert_int_equal(proposals, 1); /* 3 may have more to say, 2 cannot */
    ready(2, 0);
    assert_int_equal(proposals, 2);
    assert_int_equal(proposed.pair_count, 1);
    assert_int_equal(pairs[0].dialer, 2);
    assert_int_equal(pairs[0].acceptor, 1);
    for (uint32_t i = 0; i < 3; i++) ready(i, 0);
    assert_int_equal(installed.round, proposed.round);
    assert_true(installed.view.mesh);
    /* It is remembered. */
    step(MASTER_CLOSED, 2, NULL);
    struct wire_msg flushed = {.type = WIRE_FLUSHED,
                               .round = master->groups[0].round};
    step(MASTER_RECEIVED, 0, &flushed);
    step(MASTER_RECEIVED, 1, &flushed);
    assert_int_equal(proposed.pair_count, 1);
}

/* Both ends report one attempt. */
static void test_an_attempt_counts_once(void **state)
{
    (void)state;
    quorum(2);
    for (uint32_t i = 0; i < 2; i++) hello(i, 0, 0);
    assert_true(edges_failed(master, 0, 1, 2, 77));
    assert_true(edges_failed(master, 0, 2, 1, 77));
    assert_false(edges_calls(master, 0, 1));
    assert_true(edges_calls(master, 1, 0));
    assert_true(edges_failed(master, 0, 1, 2, 78));
    assert_true(edges_calls(master, 0, 1));
    assert_true(edges_failed(master, 0, 1, 2, 79));
    assert_false(edges_failed(master, 0, 1, 2, 80));
}

/* ------------------------------------------------------ no such pair (R4) */

/* The search that is asked for where an order cannot be repaired. */
static void no_ring_is_found(void)
{
    if (master->groups[0].phase != GROUP_SOLVING) return;
    struct master_event none = {.type = MASTER_SEARCHED,
                                .now = now,
                                .group = search.group,
                                .ticket = search.ticket};
    master_step(master, &none);
}

static void never_links(uint32_t count, uint32_t link, uint64_t with)
{
    for (uint32_t i = 0; i < MASTER_EDGE_TRIES; i++) {
        uint32_t before = proposals;
        ready(link, with);
        for (uint32_t k = 0; k < count && proposals == before; k++) ready(k, 0);
    }
    no_ring_is_found();
}

static void test_a_ring_round_a_pair(void **state)
{
    (void)state;
    quorum(4);
    for (uint32_t i = 0; i < 4; i++) hello(i, 0, 0);
    assert_order("0123");
    never_links(4, 0, 2);
    for (uint32_t i = 0; i < 4; i++) ready(i, 0);
    assert_int_equal(installed.round, proposed.round);
    assert_true(installed.view.ring);
    assert_false(installed.view.mesh);
    for (uint32_t i = 0; i < 4; i++)
        assert_true(order[i] + order[(i + 1) % 4] != 1); /* not 0 beside 1 */
    assert_int_equal(notes, 0);
}

static void test_a_newcomer_is_told_of_the_pair(void **state)
{
    (void)state;
    quorum(3);
    for (uint32_t i = 0; i < 3; i++) hello(i, 0, 0);
    never_links(3, 0, 3);
    assert_non_null(strstr(evicted, "rank 0 (pid 1000)"));
    for (uint32_t i = 0; i < 2; i++) ready(i, 0);
    assert_int_equal(installed.view.world, 2);
    assert_true(installed.view.ring);
}

/* Of many pairs the one that all have in common goes. */
static void test_the_unreachable_newcomer_is_refused(void **state)
{
    (void)state;
    quorum(4);
    for (uint32_t i = 0; i < 4; i++) hello(i, 0, 0);
    for (uint64_t id = 2; id <= 4; id++)
        for (uint32_t k = 0; k < MASTER_EDGE_TRIES; k++)
            (void)edges_failed(master, 0, 1, id, 100 * id + k);
    ready(0, 2);
    for (uint32_t i = 1; i < 4; i++) ready(i, 0);
    no_ring_is_found();
    assert_int_equal(master->peers[0].state, PEER_FREE);
    for (uint32_t i = 1; i < 4; i++) ready(i, 0);
    assert_int_equal(installed.view.world, 3);
}

static void test_members_are_never_thrown_out(void **state)
{
    (void)state;
    view_of(3);
    struct wire_msg suspect = {.type = WIRE_SUSPECT, .epoch = 1};
    step(MASTER_RECEIVED, 0, &suspect);
    for (uint32_t i = 0; i < 3; i++) {
        struct wire_msg flushed = {.type = WIRE_FLUSHED, .round = 2};
        step(MASTER_RECEIVED, i, &flushed);
    }
    for (uint32_t k = 0; k < 200 && installed.round == 1; k++) {
        /* Everybody flushes, and 1 and 2 do not reach each other. */
        struct wire_msg flushed = {.type = WIRE_FLUSHED,
                                   .round = master->groups[0].round};
        for (uint32_t i = 0; i < 3; i++) step(MASTER_RECEIVED, i, &flushed);
        no_ring_is_found();
        for (uint32_t i = 0; i < 3; i++)
            ready(i, proposed.view.ring && i == 0 ? 2 : 0);
    }
    assert_int_equal(installed.view.world, 3);
    assert_false(installed.view.ring);
    assert_int_equal(installed.id_count, 2);
    assert_int_equal(blockers[0] + blockers[1], 3);
    assert_int_equal(notes, 1);
    assert_string_equal(evicted, "");
    /* The next update tries again, and all is well. */
    for (uint32_t i = 0; i < 3; i++) vote(i, VOTE_UPDATE);
    for (uint32_t i = 0; i < 3; i++) ready(i, 0);
    assert_true(installed.view.ring);
}

/* ----------------------------------------------------- neighbours (O6, O8) */

static void test_hosts_become_neighbours(void **state)
{
    (void)state;
    quorum(6);
    for (uint32_t i = 0; i < 6; i++) hello(i, 100 + 2 * (i % 3), 0);
    assert_order("031425");
}

static void test_then_networks(void **state)
{
    (void)state;
    quorum(6);
    /* Hosts: a b a c b d; networks: 1 1 1 2 1 2. */
    static const uint64_t hosts[] = {2, 4, 2, 6, 4, 8};
    static const uint8_t sites[] = {1, 1, 1, 2, 1, 2};
    for (uint32_t i = 0; i < 6; i++) hello(i, hosts[i], sites[i]);
    assert_order("021435");
}

/* No two are on one host, so only the networks tell. */
static void test_networks_become_neighbours(void **state)
{
    (void)state;
    quorum(6);
    for (uint32_t i = 0; i < 6; i++) hello(i, 2 + 2 * i, (uint8_t)(1 + i % 2));
    assert_order("024135");
}

static void test_newcomers_stand_beside_theirs(void **state)
{
    (void)state;
    quorum(4);
    for (uint32_t i = 0; i < 4; i++)
        hello(i, 2 + 2 * (i / 2), (uint8_t)(i / 2));
    for (uint32_t i = 0; i < 4; i++) ready(i, 0);
    hello(4, 2, 0); /* of the first host */
    hello(5, 8, 1); /* of the second network */
    for (uint32_t i = 0; i < 4; i++) vote(i, VOTE_UPDATE);
    assert_order("014235");
}

/* ------------------------------------------------------------ sites (D15) */

static void assert_sites(const char *expected)
{
    assert_int_equal(proposed.site_count, strlen(expected));
    for (uint32_t i = 0; expected[i]; i++)
        assert_int_equal(places[i], expected[i] - '0');
}

static void test_hosts_are_sites(void **state)
{
    (void)state;
    quorum(6);
    /* The last bit of a host says nothing of where it is; 0: nobody knows. */
    static const uint64_t hosts[] = {2, 4, 3, 0, 5, 2};
    for (uint32_t i = 0; i < 6; i++) hello(i, hosts[i], 0);
    assert_sites("010310");
}

static void test_few_at_each_site_are_none(void **state)
{
    (void)state;
    quorum(5);
    static const uint64_t hosts[] = {2, 4, 2, 4, 6};
    for (uint32_t i = 0; i < 5; i++) hello(i, hosts[i], 0);
    assert_int_equal(proposed.site_count, 0);
}

static void round_trip(uint32_t a, uint32_t b, pccl_ns rtt)
{
    struct wire_edge edge = {
        .peer = a + 1, .rate = 1000000, .rtt = (uint64_t)rtt};
    struct wire_msg m = {
        .type = WIRE_MEASURED, .edges = &edge, .edge_count = 1};
    step(MASTER_RECEIVED, b, &m);
}

/* A newcomer, of whom nothing is known, is admitted. */
static void admit(uint32_t count)
{
    hello(count, 0, 0);
    for (uint32_t i = 0; i < count; i++) vote(i, VOTE_UPDATE);
    for (uint32_t i = 0; i <= count; i++) ready(i, 0);
}

static void test_short_ways_are_within_a_site(void **state)
{
    (void)state;
    quorum(5);
    for (uint32_t i = 0; i < 5; i++) hello(i, 2 + 2 * i, 0);
    assert_int_equal(proposed.site_count, 0);
    for (uint32_t i = 0; i < 5; i++) ready(i, 0);
    round_trip(0, 2, 1 * PCCL_MS);
    round_trip(4, 2, 2 * PCCL_MS); /* near through 2 */
    round_trip(0, 4, 5 * PCCL_MS);
    round_trip(1, 0, 40 * PCCL_MS);
    round_trip(3, 1, 1 * PCCL_MS);
    admit(5);
    assert_sites("010105");
}

static void test_all_at_one_site_are_none(void **state)
{
    (void)state;
    quorum(6);
    for (uint32_t i = 0; i < 6; i++) hello(i, i < 3 ? 2 : 4, 0);
    assert_sites("000333");
    for (uint32_t i = 0; i < 6; i++) ready(i, 0);
    for (uint32_t i = 1; i < 6; i++) round_trip(0, i, PCCL_MS / 10);
    admit(6);
    assert_sites("0000006");
    round_trip(6, 0, PCCL_MS / 10);
    struct wire_msg m = {.type = WIRE_LEAVE};
    step(MASTER_RECEIVED, 3, &m);
    struct wire_msg flushed = {.type = WIRE_FLUSHED,
                               .round = master->groups[0].round};
    for (uint32_t i = 0; i < 7; i++) step(MASTER_RECEIVED, i, &flushed);
    assert_sites("000335"); /* but hosts */
}

/* ------------------------------------------------------------ probes (O4) */

static void measured(uint32_t link, enum edge_kind kind)
{
    struct wire_edge edge = {.peer = probes[link].with,
                             .kind = (uint8_t)kind,
                             .rate = 1000000,
                             .rtt = 1000};
    struct wire_msg m = {.type = WIRE_MEASURED,
                         .round = probes[link].step,
                         .edges = &edge,
                         .edge_count = 1};
    step(MASTER_RECEIVED, link, &m);
}

static void probe_two(void)
{
    view_of(2);
    for (uint32_t i = 0; i < 2; i++) vote(i, VOTE_OPTIMIZE);
    assert_int_equal(master->groups[0].phase, GROUP_PROBING);
    assert_true(probes[0].due && probes[1].due);
}

/* It is begun again at once, though the other end says nothing. */
static void test_a_failed_probe_is_turned(void **state)
{
    (void)state;
    probe_two();
    uint32_t before = probes[1].step;
    bool called = probes[0].calls;
    measured(0, EDGE_FAILED);
    assert_int_equal(probes[0].step, before + 1);
    assert_int_equal(probes[1].step, before + 1);
    assert_int_equal(probes[0].calls, !called);
    assert_int_equal(probes[1].calls, called);
}

static void test_a_silent_probe_ends_by_time(void **state)
{
    (void)state;
    static const struct wire_msg beat = {.type = WIRE_HEARTBEAT};
    probe_two();
    measured(0, EDGE_SATURATED);
    for (int last = 0; last < 2; last++) {
        now = master->groups[0].step_until - !last;
        for (uint32_t i = 0; i < 2; i++) step(MASTER_RECEIVED, i, &beat);
        step(MASTER_TICK, 0, NULL);
        assert_int_equal(master->groups[0].phase == GROUP_PROBING, !last);
    }
}

/* Of a world that takes longer to measure than a measurement is good for. */
static void test_a_sweep_measures_nothing_twice(void **state)
{
    (void)state;
    uint32_t count = 0;
    view_of(6);
    for (uint32_t i = 0; i < 6; i++) vote(i, VOTE_OPTIMIZE);
    while (master->groups[0].phase == GROUP_PROBING && count < 100) {
        now += 11 * 100;
        for (uint32_t i = 0; i < 6; i++) {
            if (!probes[i].due) continue;
            probes[i].due = false;
            measured(i, EDGE_SATURATED);
            count++;
        }
    }
    assert_int_equal(master->groups[0].phase, GROUP_SOLVING);
    assert_in_range(count, 6, 6 * 5);
}

static void found(const uint16_t *ring)
{
    struct master_event e = {.type = MASTER_SEARCHED,
                             .now = now,
                             .group = search.group,
                             .ticket = search.ticket,
                             .order = ring};
    master_step(master, &e);
}

/* All distances are known: the best guess at a ring is measured, and no pair
 * beside it. */
static void test_a_guess_says_what_to_probe(void **state)
{
    (void)state;
    static const uint16_t ring[] = {0, 2, 4, 1, 3, 5};
    uint32_t count = 0;
    view_of(6);
    for (uint32_t i = 0; i < 6; i++) {
        struct wire_edge edges[6];
        struct wire_msg m = {.type = WIRE_MEASURED, .edges = edges};
        for (uint32_t j = 0; j < 6; j++) {
            if (j == i) continue;
            edges[m.edge_count++] = (struct wire_edge){
                .peer = j + 1, .rtt = 9000000, .kind = EDGE_WAY};
        }
        step(MASTER_RECEIVED, i, &m);
        vote(i, VOTE_OPTIMIZE);
    }
    assert_int_equal(master->groups[0].phase, GROUP_SOLVING);
    assert_int_equal(search.view.caution, 0);
    assert_false(probes[0].due);
    found(ring);
    for (uint32_t k = 0; k < 10; k++) {
        if (master->groups[0].phase != GROUP_PROBING) break;
        for (uint32_t i = 0; i < 6; i++) {
            if (!probes[i].due) continue;
            probes[i].due = false;
            measured(i, EDGE_SATURATED);
            count++;
        }
    }
    assert_int_equal(count, 6 * 2); /* every edge, and its way back */
    assert_int_equal(master->groups[0].phase, GROUP_SOLVING);
    found(ring);
    assert_order("024135");
}

/* ------------------------------------------------------- searches (O5, O6) */

/* Votes, measures and searches until a ring is proposed. */
static void optimize(uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) vote(i, VOTE_OPTIMIZE);
    for (uint32_t k = 0; k < 100 && master->groups[0].phase == GROUP_PROBING;
         k++) {
        for (uint32_t i = 0; i < count; i++) {
            if (!probes[i].due) continue;
            probes[i].due = false;
            measured(i, EDGE_SATURATED);
        }
    }
    assert_int_equal(master->groups[0].phase, GROUP_SOLVING);
}

static void in_the_background(void)
{
    static const uint16_t ring[] = {0, 2, 1, 3};
    static const uint16_t better[] = {0, 1, 3, 2};
    view_of(4);
    optimize(4);
    assert_false(search.background);
    /* The search of a hopeful ring may be asked for once more. */
    for (uint32_t k = 0; k < 8 && master->groups[0].phase == GROUP_SOLVING; k++)
        found(ring);
    assert_order("0213");
    for (uint32_t i = 0; i < 4; i++) ready(i, 0);
    assert_true(search.background);
    found(better); /* of indexes into its world, in the order of ranks */
    assert_true(optimize_has_better(master, 0));
}

static void test_a_better_ring_waits_for_the_update(void **state)
{
    (void)state;
    in_the_background();
    uint32_t before = proposals;
    for (uint32_t i = 0; i < 4; i++) vote(i, VOTE_UPDATE);
    assert_true(proposals > before);
    assert_order("0132");
}

static void test_a_better_ring_of_other_members_is_dropped(void **state)
{
    (void)state;
    in_the_background();
    hello(4, 0, 0);
    for (uint32_t i = 0; i < 4; i++) vote(i, VOTE_UPDATE);
    assert_order("02134"); /* as it was, with the newcomer */
    for (uint32_t i = 0; i < 5; i++) ready(i, 0);
    assert_false(optimize_has_better(master, 0));
}

/* Its indexes are those of a world that is no more. */
static void test_a_ring_with_one_lost_since_is_dropped(void **state)
{
    (void)state;
    static const uint16_t late[] = {3, 0, 2, 1};
    in_the_background();
    step(MASTER_CLOSED, 3, NULL);
    struct wire_msg flushed = {.type = WIRE_FLUSHED,
                               .round = master->groups[0].round};
    for (uint32_t i = 0; i < 3; i++) step(MASTER_RECEIVED, i, &flushed);
    for (uint32_t i = 0; i < 3; i++) ready(i, 0);
    assert_int_equal(installed.view.world, 3);
    found(late);
    assert_false(optimize_has_better(master, 0));
    for (uint32_t i = 0; i < 3; i++) vote(i, VOTE_UPDATE);
    assert_order("021");
}

/* Founders that a search has to fit into a ring. */
static void founders_without_a_ring(uint32_t count)
{
    quorum(count);
    for (uint32_t i = 0; i < count; i++) hello(i, 0, 0);
    for (uint32_t k = 0; k < MASTER_EDGE_TRIES; k++)
        (void)edges_failed(master, 0, 1, 2, 100 + k);
    for (uint32_t k = 0; k < MASTER_EDGE_TRIES; k++)
        (void)edges_failed(master, 0, 1, 3, 200 + k);
    ready(0, 2);
    for (uint32_t i = 1; i < count; i++) ready(i, 0);
    assert_int_equal(master->groups[0].phase, GROUP_SOLVING);
    assert_int_equal(search.n, count);
}

/* As many as were asked for, but not the same. */
static void test_a_ring_without_a_newcomer_is_dropped(void **state)
{
    (void)state;
    static const uint16_t late[] = {3, 0, 2, 1};
    founders_without_a_ring(4);
    step(MASTER_CLOSED, 3, NULL);
    hello(3, 0, 0);
    found(late);
    assert_int_equal(master->groups[0].wish, 0);
}

static void test_a_ring_with_one_gone_since_is_dropped(void **state)
{
    (void)state;
    static const uint16_t late[] = {3, 0, 2, 1};
    founders_without_a_ring(4);
    step(MASTER_CLOSED, 3, NULL);
    found(late);
    assert_int_equal(master->groups[0].wish, 0);
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
    const struct CMUnitTest tests[] = {
        TEST(test_the_other_end_is_told_to_call),
        TEST(test_an_attempt_counts_once),
        TEST(test_a_ring_round_a_pair),
        TEST(test_a_newcomer_is_told_of_the_pair),
        TEST(test_the_unreachable_newcomer_is_refused),
        TEST(test_members_are_never_thrown_out),
        TEST(test_hosts_become_neighbours),
        TEST(test_then_networks),
        TEST(test_networks_become_neighbours),
        TEST(test_newcomers_stand_beside_theirs),
        TEST(test_hosts_are_sites),
        TEST(test_few_at_each_site_are_none),
        TEST(test_short_ways_are_within_a_site),
        TEST(test_all_at_one_site_are_none),
        TEST(test_a_failed_probe_is_turned),
        TEST(test_a_silent_probe_ends_by_time),
        TEST(test_a_sweep_measures_nothing_twice),
        TEST(test_a_guess_says_what_to_probe),
        TEST(test_a_better_ring_waits_for_the_update),
        TEST(test_a_better_ring_of_other_members_is_dropped),
        TEST(test_a_ring_with_one_lost_since_is_dropped),
        TEST(test_a_ring_without_a_newcomer_is_dropped),
        TEST(test_a_ring_with_one_gone_since_is_dropped),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
