/* fuzz_master.c - plays a tape on the coordinator: any sequence of connections
 * and messages, well-formed or not. No assertion fails, everything it says can
 * be encoded, its status has no bytes that a terminal obeys, and when the last
 * one has gone nothing is left. */
#include "../../src/master/watch/stall.h"
#include "../../src/base/scope.h"
#include "../../src/master/master.h"
#include "../../src/master/watch/master_report.h"
#include "../../src/master/server/master_server.h"
#include "../../src/master/watch/master_status.h"
#include "master_say.h"
#include "sparse.h"
#include "tape.h"

#include <stdlib.h>

enum {
    LINKS = SAY_LINKS,
    SEARCHES = 16,
    WORLD_MAX = 64 /* links at a time */,
    PASSES = 12
};

struct search {
    bool owed, background;
    uint32_t group, ticket, n;
    uint16_t initial[WORLD_MAX];
};

struct universe {
    struct master *m;
    struct status_desk desk;
    struct master_report report;
    bool open[MASTER_LINKS_MAX];
    struct search searches[SEARCHES];
    uint32_t search_last;
    pccl_ns now;
};

static struct sparse master_memory, edges_memory;
static struct wire_store store;

/* ------------------------------------------------------------- the outside */

static void send_effect(void *user, const uint32_t *links, uint32_t count,
                        const struct wire_msg *msg)
{
    static uint8_t sent[WIRE_FRAME_MAX];
    struct universe *u = user;
    assert(count > 0);
    for (uint32_t i = 0; i < count; i++) assert(u->open[links[i]]);
    (void)wire_encode(msg, sent);
}

static void close_effect(void *user, uint32_t link, const char *reason)
{
    struct universe *u = user;
    assert(u->open[link] && reason);
    u->open[link] = false;
    status_desk_closed(&u->desk, link);
}

/* Its connection is for others from now on: the link is free. */
static void relay_effect(void *user, uint32_t link, const struct wire_msg *msg)
{
    struct universe *u = user;
    assert(u->open[link] && u->m->may_relay && msg->type == WIRE_RELAY);
    u->open[link] = false;
    status_desk_closed(&u->desk, link);
}

/* What the operator's log has of it. */
static void note_effect(void *user, const struct master_note *note)
{
    struct universe *u = user;
    char line[REPORT_SIZE];
    assert(note->kind == NOTE_VIEW || note->kind == NOTE_SUCCESSION ||
           note->peer || (note->kind == NOTE_STALLED && note->reason));
    status_desk_depart(&u->desk, u->m, note);
    if (!master_report_note(&u->report, note, line)) return;
    for (const char *c = line; *c; c++) assert((uint8_t)*c >= ' ');
    status_desk_note(&u->desk, u->m, note, line);
}

static void status_effect(void *user, uint32_t link, bool json)
{
    struct universe *u = user;
    status_desk_ask(&u->desk, u->m, link, json, u->now);
}

static void look_effect(void *user, const struct wire_member *peer)
{
    (void)user;
    (void)peer;
}

/* A later search of a group takes the place of its last one. */
static struct search *search_place(struct universe *u,
                                   const struct master_search *search)
{
    struct search *free = NULL;
    for (uint32_t i = 0; i < SEARCHES; i++) {
        struct search *s = &u->searches[(u->search_last + i) % SEARCHES];
        if (s->owed && s->group == search->group &&
            s->background == search->background)
            return s;
        if (!s->owed && !free) free = s;
    }
    return free ? free : &u->searches[u->search_last++ % SEARCHES];
}

static bool search_effect(void *user, const struct master_search *search)
{
    struct universe *u = user;
    if (search->n > WORLD_MAX || search->n < 2) return false;
    struct search *s = search_place(u, search);
    *s = (struct search){.owed = true,
                         .background = search->background,
                         .group = search->group,
                         .ticket = search->ticket,
                         .n = search->n};
    for (uint32_t i = 0; i < search->n; i++) s->initial[i] = search->initial[i];
    return true;
}

/* ------------------------------------------------------------------- events */

static void feed(struct universe *u, struct master_event event)
{
    event.now = u->now;
    if (event.type == MASTER_CLOSED) status_desk_closed(&u->desk, event.link);
    master_step(u->m, &event);
    /* What is due at a tick is done by it: a driver never spins. */
    pccl_ns next = master_next_tick(u->m);
    assert(event.type == MASTER_TICK ? next > u->now : next >= u->now);
    status_desk_settle(&u->desk, u->m, u->now);
}

static void receive(struct universe *u, uint32_t link, const uint8_t *bytes,
                    size_t size)
{
    struct wire_msg msg;
    size_t used;
    while (u->open[link] && size > 0 &&
           wire_decode(bytes, size, &store, &msg, &used) == WIRE_OK) {
        feed(u, (struct master_event){
                    .type = MASTER_RECEIVED, .link = link, .msg = &msg});
        bytes += used;
        size -= used;
    }
}

static bool is_ring(const uint16_t *order, uint32_t n)
{
    bool seen[WORLD_MAX] = {false};
    for (uint32_t i = 0; i < n; i++) {
        if (order[i] >= n || seen[order[i]]) return false;
        seen[order[i]] = true;
    }
    return true;
}

/* The answer of a search: the ring of the tape, if it is one, else the one that
 * the search began with. */
static void searched(struct universe *u, const struct tape_record *r)
{
    struct fuzz_input in = {r->bytes, r->size};
    uint16_t order[WORLD_MAX] = {0};
    uint32_t group = fuzz_u8(&in);
    struct search *s = NULL;
    for (uint32_t i = 0; i < SEARCHES && !s; i++) {
        struct search *x = &u->searches[(u->search_last + i) % SEARCHES];
        if (x->owed && (x->group == group || group >= 128)) s = x;
    }
    if (!s) return;
    for (uint32_t i = 0; i < s->n; i++) order[i] = fuzz_u16(&in);
    bool ring = is_ring(order, s->n);
    s->owed = s->background;
    feed(u, (struct master_event){.type = MASTER_SEARCHED,
                                  .group = s->group,
                                  .ticket = s->ticket - (r->arg == 2),
                                  .order = r->arg == 0 ? NULL
                                           : ring      ? order
                                                       : s->initial});
}

/* ---------------------------------------- messages that fit what is going on
 */

/* The verdict of whatever was told has no effect, and a text. */
static void look_for_stalls(struct universe *u)
{
    struct stall stalls[4];
    char text[STALL_TEXT_MAX];
    uint32_t count = stall_find(u->m, 0, stalls, ARRAY_COUNT(stalls));
    for (uint32_t i = 0; i < count; i++) stall_print(u->m, &stalls[i], text);
}

static void say(struct universe *u, uint32_t link, struct fuzz_input *in)
{
    static uint8_t out[WIRE_FRAME_MAX];
    struct say_room room;
    struct wire_msg msg;
    if (!u->open[link]) return;
    master_say_make(u->m, link, in, &room, &msg);
    receive(u, link, out, wire_encode(&msg, out));
    if (msg.type == WIRE_WAITING) look_for_stalls(u);
}

static void say_partial(struct universe *u, uint32_t link,
                        struct fuzz_input *in)
{
    static uint8_t out[WIRE_FRAME_MAX];
    uint64_t ids[PARTIAL_IDS] = {0};
    uint8_t set = 0;
    struct wire_msg msg = {.ids = ids};
    if (!u->open[link]) return;
    master_partial_fill(u->m, link, in, &msg, ids, &set);
    msg.epoch = u->m->groups[u->m->peers[link].group].epoch;
    receive(u, link, out, wire_encode(&msg, out));
}

static void say_relay(struct universe *u, uint32_t link, struct fuzz_input *in)
{
    static uint8_t out[WIRE_FRAME_MAX];
    struct wire_msg msg = {.ids = NULL};
    if (!u->open[link]) return;
    master_relay_fill(u->m, in, &msg);
    receive(u, link, out, wire_encode(&msg, out));
}

static void connect_link(struct universe *u, uint32_t link)
{
    if (u->open[link] || u->m->peers[link].state != PEER_FREE) {
        link = master_free_link(u->m);
    }
    if (link >= WORLD_MAX) return;
    u->open[link] = true;
    feed(u, (struct master_event){
                .type = MASTER_CONNECTED, .link = link, .addr.family = 4});
}

/* All that owe something say it, and what follows from that. */
static void settle(struct universe *u, const struct tape_record *r)
{
    static uint8_t out[WIRE_FRAME_MAX];
    static struct crowd_room room;
    static const struct wire_msg alive = {.type = WIRE_HEARTBEAT};
    struct fuzz_input in = {r->bytes, r->size};
    struct crowd_mood mood = crowd_mood(r->arg, &in);
    struct wire_msg msg;
    bool any = true;
    for (uint32_t pass = 0; pass < PASSES && any; pass++) {
        any = false;
        for (uint32_t i = 0; i < u->m->link_end; i++) {
            if (!u->open[i] || !master_say_due(u->m, i, &mood, &room, &msg))
                continue;
            receive(u, i, out, wire_encode(&msg, out));
            any = true;
        }
        mood.votes = mood.optimizes = mood.measures = false;
    }
    if (!(r->arg & 16)) return;
    u->now += PCCL_S;
    for (uint32_t i = 0; i < u->m->link_end; i++)
        if (u->open[i]) receive(u, i, out, wire_encode(&alive, out));
    feed(u, (struct master_event){.type = MASTER_TICK});
}

static void grant(struct universe *u, const struct tape_record *r)
{
    struct fuzz_input in = {r->bytes, r->size};
    uint32_t link = r->arg % LINKS;
    uint8_t rights = fuzz_u8(&in);
    struct grant given = {.rights = rights & 7, .group = fuzz_below(&in, 3)};
    given.any_group = given.group == 2;
    if (!u->open[link]) return;
    for (uint32_t i = 0; i + 1 < sizeof given.name && in.left > 0; i++)
        given.name[i] = (char)('a' + fuzz_below(&in, 26));
    feed(u, (struct master_event){.type = rights == 255 ? MASTER_EXPELLED
                                                        : MASTER_GRANTED,
                                  .link = link,
                                  .grant = &given,
                                  .reason = "expelled"});
}

/* ----------------------------------------------------------------- the tape */

static void play(struct universe *u, const struct tape_record *r)
{
    struct fuzz_input in = {r->bytes, r->size};
    uint32_t link = r->arg;
    switch (r->kind % COORD_KIND_COUNT) {
    case COORD_CONNECTED:
        connect_link(u, link);
        return;
    case COORD_RECEIVED:
        receive(u, link, r->bytes, r->size);
        return;
    case COORD_CLOSED:
        if (!u->open[link]) return;
        u->open[link] = false;
        feed(u, (struct master_event){.type = MASTER_CLOSED, .link = link});
        return;
    case COORD_TICK:
        if (r->arg == 2) {
            feed(u, (struct master_event){.type = MASTER_SLEPT,
                                          .gap = fuzz_u32(&in)});
            return;
        }
        u->now += fuzz_u32(&in);
        if (r->arg == 0) feed(u, (struct master_event){.type = MASTER_TICK});
        return;
    case COORD_QUORUM:
        feed(u, (struct master_event){.type = MASTER_QUORUM,
                                      .quorum = r->arg % 8u});
        return;
    case COORD_SEARCHED:
        searched(u, r);
        return;
    case COORD_EVIDENCE:
        feed(u, (struct master_event){.type = MASTER_EVIDENCE,
                                      .id = fuzz_u64(&in),
                                      .evidence = r->arg % EVIDENCE_COUNT});
        return;
    case COORD_SAY:
        say(u, link % LINKS, &in);
        return;
    case COORD_PARTIAL:
        say_partial(u, link % LINKS, &in);
        return;
    case COORD_RELAY:
        say_relay(u, link % LINKS, &in);
        return;
    case COORD_CROWD:
        for (uint32_t i = link % WORLD_MAX; i > 0; i--) connect_link(u, 0);
        return;
    case COORD_SETTLE:
        settle(u, r);
        return;
    case COORD_GRANT:
        grant(u, r);
        return;
    default:
        return;
    }
}

static void open_master(struct universe *u, const struct tape_record *config)
{
    struct fuzz_input in = {config->bytes, config->size};
    size_t edges_size = bandwidth_size(WORLD_MAX);
    u->m = sparse_take(&master_memory, sizeof *u->m);
    u->report.machine = u->m;
    void *edges = sparse_take(&edges_memory, edges_size);
    struct master_config c = {.out = {.user = u,
                                      .send = send_effect,
                                      .close = close_effect,
                                      .relay = relay_effect,
                                      .note = note_effect,
                                      .look = look_effect,
                                      .status = status_effect,
                                      .search = search_effect},
                              .edges =
                                  bandwidth_init(edges, edges_size, WORLD_MAX),
                              .probe_bytes = 600,
                              .quorum = config->arg % 8u};
    c.small_world = fuzz_u8(&in);
    c.key.word[0] = fuzz_u64(&in);
    c.key.word[1] = fuzz_u64(&in);
    c.deadline = (fuzz_u16(&in) + 1) * PCCL_MS;
    c.probe_time = c.deadline / 20;
    uint8_t bits = fuzz_u8(&in);
    c.job = bits & 1;
    c.relays = bits & 2;
    if (bits & 4) c.grace = 2 * c.deadline;
    if (bits & 8) c.warn_after = PCCL_S / 20;
    c.tokens = bits & 16;
    if (bits & 32) c.minimum = 3;
    if (bits & 64) c.peers_max = 4;
    (void)master_init(u->m, &c);
}

/* What an operator reads, with names that others gave. */
static void read_status(struct universe *u, enum status_form form)
{
    struct status_writing w;
    status_desk_write(&u->desk, u->m, form, &w);
    assert(w.text);
    for (size_t i = 0; i < w.size; i++)
        assert(w.text[i] == '\n' || (uint8_t)w.text[i] >= ' ');
    if (form == STATUS_JSON) assert(w.events <= w.history);
    if (form == STATUS_JSON) assert(w.history <= w.size);
    free(w.text);
}

/* Of the server, which is not here: its status is the desk's, above. */
void master_server_write(struct master_server *server, enum status_form form,
                         struct status_writing *writing)
{
    (void)server, (void)form, (void)writing;
    abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    static struct universe u;
    struct fuzz_input in = {bytes, size};
    struct tape_record r = {.arg = 2, .size = 0};
    memset(&u, 0, sizeof u);
    u.desk.host = UINT64_MAX; /* none of their processes is here */
    if (in.left >= TAPE_HEAD && in.at[0] == COORD_CONFIG) tape_next(&in, &r);
    open_master(&u, &r);
    while (tape_next(&in, &r)) play(&u, &r);
    for (int form = 0; form < STATUS_FORMS; form++)
        read_status(&u, (enum status_form)form);

    for (uint32_t i = 0; i < MASTER_LINKS_MAX; i++) {
        if (!u.open[i]) continue;
        u.open[i] = false;
        feed(&u, (struct master_event){.type = MASTER_CLOSED, .link = i});
    }
    /* A driver answers each search, also when nobody is left to hear it. */
    const struct tape_record nothing = {
        .kind = COORD_SEARCHED, .bytes = (const uint8_t *)"\377", .size = 1};
    for (uint32_t i = 0; i < SEARCHES; i++) {
        u.searches[i].background = false;
        searched(&u, &nothing);
    }
    assert(master_count(u.m, PEER_FREE) == u.m->link_end);
    assert(master_next_tick(u.m) == PCCL_NEVER);
    master_free(u.m);
    return 0;
}

/* ------------------------------------------------------------- for mutate.c */

const uint8_t tape_kinds = COORD_KIND_COUNT;

size_t tape_make(uint8_t kind, uint64_t *random, uint8_t *to)
{
    static const uint8_t often[] = {COORD_SAY,       COORD_SAY,   COORD_SAY,
                                    COORD_CONNECTED, COORD_TICK,  COORD_PARTIAL,
                                    COORD_SETTLE,    COORD_SETTLE};
    static const uint8_t crowds[] = {2, 3, 5, 12, 18, 27};
    uint8_t body[64];
    uint8_t arg = (uint8_t)tape_pick(random, LINKS);
    size_t size = tape_pick(random, 40);
    if (tape_pick(random, 4)) kind = often[tape_pick(random, sizeof often)];
    for (size_t i = 0; i < size; i++) body[i] = (uint8_t)tape_random(random);
    if (kind == COORD_TICK) {
        arg = 0;
        size = 4;
        memset(body, 0, 4);
        body[3] = (uint8_t)tape_pick(random, 4);
        body[2] = (uint8_t)tape_random(random);
    }
    if (kind == COORD_CROWD) arg = crowds[tape_pick(random, 6)];
    if (kind == COORD_SETTLE) {
        arg = (uint8_t)tape_random(random);
        if (tape_pick(random, 2)) body[1] %= 60; /* most pairs are good */
    }
    if (kind == COORD_SAY && size > 1 && tape_pick(random, 2))
        body[1] &= 0xf0; /* of this round */
    if (kind == COORD_EVIDENCE) {
        memset(body, 0, 8);
        body[0] = (uint8_t)(1 + tape_pick(random, LINKS));
        size = 8;
    }
    return tape_put(to, kind, arg, body, (uint16_t)size);
}

void tape_vary(uint8_t kind, uint64_t *random, uint8_t *bytes, size_t size)
{
    size_t at = tape_pick(random, (uint32_t)size);
    size_t width = (size_t)1 << tape_pick(random, 4);
    if (kind == COORD_RECEIVED && size > WIRE_HEADER_SIZE)
        at = WIRE_HEADER_SIZE + at % (size - WIRE_HEADER_SIZE);
    if (at + width > size) width = 1;
    tape_vary_number(random, bytes + at, width);
}
