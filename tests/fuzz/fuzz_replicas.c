/* fuzz_replicas.c - plays a tape on coordinators without a journal, one after
 * the other, whose members keep the record (rules H10 to H14). Members keep it
 * by the real code, and obey when the tape says so; in between they send any
 * records, names and terms, and coordinators that lie do so to them.
 *
 * No assertion fails; a claim is above all terms that were named to it; what a
 * coordinator begins with counts; nobody is kept waiting for longer than the
 * grace; and when the last one has gone nothing is left. */
#include "../../src/base/wire_resume.h"
#include "../../src/elastic/session.h"
#include "../../src/master/master.h"
#include "sparse.h"
#include "tape.h"

#include <assert.h>

enum { MEMBERS = 5, QUEUE = 32, RECORDS = 4, LINKS = 64 };

/* What happens; the argument is a member, unless it says otherwise. */
enum replicas_kind {
    REPLICAS_CONFIG, /* first; argument: bits, see begin_master() */
    REPLICAS_CALLS,  /* dials: RESUME, if it was a member, else HELLO */
    REPLICAS_OBEYS,  /* answers what has come; argument 7: so do all */
    REPLICAS_LEAVES, /* its connection ends; body: by LEAVE */
    REPLICAS_TICK,   /* ms (2) */
    REPLICAS_DIES,   /* the coordinator; argument: of the next one, as CONFIG */
    REPLICAS_VOTES,  /* for an update */
    REPLICAS_LIES,   /* see lie() */
    REPLICAS_TRICKS, /* a coordinator that lies to it: see trick() */
    REPLICAS_EDITS,  /* the bytes of its record: place (2), value (1), ... */
    REPLICAS_KIND_COUNT,
};

struct member {
    struct session *keeps; /* of which only the record is used */
    bool open, gone;
    uint32_t link, epoch, proposed, calls;
    uint64_t id, term;
    struct wire_key secret;
    struct wire_msg owed[QUEUE]; /* borrows nothing */
    uint32_t owed_count;
};

static struct {
    struct master *m;
    pccl_ns now;
    uint64_t deadline, lives;
    uint64_t named; /* the highest term that it has been told */
    pccl_ns waits;  /* since then for members, or 0 */
    struct member members[MEMBERS];
    /* Records that coordinators have sent, whole; the last ones. */
    struct {
        struct wire_record_name name;
        uint8_t bytes[16384];
        uint32_t size;
    } records[RECORDS];
    uint32_t record_count;
} u;

static struct sparse master_memory, edges_memory;
static struct wire_store store;

/* ------------------------------------------------------- the coordinator */

static struct member *member_at(uint32_t link)
{
    for (uint32_t i = 0; i < MEMBERS; i++)
        if (u.members[i].open && u.members[i].link == link)
            return &u.members[i];
    return NULL;
}

/* So that later inputs can say it again, cut or changed. */
static void note_record(const struct wire_msg *msg)
{
    uint32_t at = u.record_count % RECORDS;
    if (msg->keep.total > sizeof u.records[0].bytes) return;
    if (msg->keep.offset == 0) {
        u.records[at].name = msg->keep.name;
        u.records[at].size = msg->keep.total;
    }
    memcpy(u.records[at].bytes + msg->keep.offset, msg->keep.bytes,
           msg->keep.size);
    if (msg->keep.offset + msg->keep.size == msg->keep.total) u.record_count++;
}

static void hear(struct member *p, const struct wire_msg *msg);

static void send_effect(void *user, const uint32_t *links, uint32_t count,
                        const struct wire_msg *msg)
{
    static uint8_t sent[WIRE_FRAME_MAX];
    (void)user;
    assert(count > 0);
    (void)wire_encode(msg, sent);
    if (msg->type == WIRE_CLAIM) assert(msg->keep.name.term > u.named);
    if (msg->type == WIRE_KEEP) note_record(msg);
    for (uint32_t i = 0; i < count; i++) {
        struct member *p = member_at(links[i]);
        assert(p);
        hear(p, msg);
    }
}

static void close_effect(void *user, uint32_t link, const char *reason)
{
    struct member *p = member_at(link);
    (void)user;
    assert(p && reason);
    p->open = false;
}

static void note_effect(void *user, const struct master_note *note)
{
    (void)user, (void)note;
}

static void look_effect(void *user, const struct wire_member *peer)
{
    (void)user, (void)peer;
}

static bool search_effect(void *user, const struct master_search *search)
{
    (void)user, (void)search;
    return false;
}

/* Bits: others may take over meanwhile, it stands by, the quorum less one. */
static void begin_master(uint8_t bits)
{
    size_t edges_size = bandwidth_size(LINKS);
    void *edges = sparse_take(&edges_memory, edges_size);
    struct master_config c = {.out = {.send = send_effect,
                                      .close = close_effect,
                                      .note = note_effect,
                                      .look = look_effect,
                                      .search = search_effect},
                              .edges = bandwidth_init(edges, edges_size, LINKS),
                              .deadline = (pccl_ns)u.deadline * PCCL_MS,
                              .grace = 6 * (pccl_ns)u.deadline * PCCL_MS,
                              .replicas = true,
                              .fenced = bits & 1,
                              .standby = bits & 2,
                              .quorum = 1 + (bits >> 2) % MEMBERS,
                              .secret = {{bits, ++u.lives}}};
    u.m = sparse_take(&master_memory, sizeof *u.m);
    u.named = 0;
    u.waits = 0;
    (void)master_init(u.m, &c);
}

static void feed(enum master_event_type type, uint32_t link,
                 const struct wire_msg *msg);

/* Heirs that have not come are given up after the grace. */
static void end_master(void)
{
    for (uint32_t i = 0; i < MEMBERS; i++) {
        struct member *p = &u.members[i];
        if (!p->open) continue;
        p->open = false;
        feed(MASTER_CLOSED, p->link, NULL);
    }
    for (uint32_t i = 0; i < 4; i++) {
        u.now += u.m->succession.grace;
        feed(MASTER_TICK, 0, NULL);
    }
    assert(u.m->replicas.over || master_count(u.m, PEER_FREE) == u.m->link_end);
    master_free(u.m);
}

/* Rule H13. Members are taken over, or told that too few have come. */
static void check_waits(void)
{
    const struct replicas *k = &u.m->replicas;
    bool held = false;
    for (uint32_t i = 0; i < u.m->link_end; i++)
        held |= u.m->peers[i].held_resume;
    assert(!held || k->phase != REPLICAS_SERVES);
    if (!held) u.waits = 0;
    if (held && u.waits == 0) u.waits = u.now;
    assert(!held || u.now - u.waits <= u.m->succession.grace);
    assert(k->phase != REPLICAS_SERVES || k->in_size <= k->in_total);
}

static void feed(enum master_event_type type, uint32_t link,
                 const struct wire_msg *msg)
{
    struct master_event e = {
        .type = type, .link = link, .now = u.now, .msg = msg};
    if (type == MASTER_CONNECTED) e.addr.family = 4;
    master_step(u.m, &e);
    pccl_ns next = master_next_tick(u.m);
    assert(type == MASTER_TICK ? next > u.now : next >= u.now);
    if (type == MASTER_TICK) check_waits();
}

/* As a frame, so that what no decoder lets pass does not arrive. */
static void tell(struct member *p, const struct wire_msg *msg)
{
    static uint8_t frame[WIRE_FRAME_MAX];
    struct wire_msg read;
    size_t used;
    size_t size = wire_encode(msg, frame);
    if (!p->open || wire_decode(frame, size, &store, &read, &used) != WIRE_OK)
        return;
    feed(MASTER_RECEIVED, p->link, &read);
    if (!p->open || read.type != WIRE_RESUME) return;
    const struct replicas *k = &u.m->replicas;
    if (read.resume.term > u.named) u.named = read.resume.term;
    if (read.resume.claimed > u.named) u.named = read.resume.claimed;
    assert(k->phase != REPLICAS_CLAIMS || k->claim > u.named);
}

/* ------------------------------------------------------------ the members */

static void owes(struct member *p, enum wire_type type, uint32_t round)
{
    if (p->owed_count == QUEUE) return;
    p->owed[p->owed_count++] =
        (struct wire_msg){.type = type, .round = round, .epoch = p->epoch};
}

/* A record is given when its turn comes. */
static void to_master(void *user, const struct wire_msg *msg)
{
    struct member *p = user;
    bool gives = msg->type == WIRE_KEEP;
    if (p->owed_count == QUEUE || (gives && msg->keep.offset > 0)) return;
    p->owed[p->owed_count] = *msg;
    if (gives) p->owed[p->owed_count].type = WIRE_KEEP_GET;
    p->owed_count++;
}

static struct wire_msg resume_of(const struct member *p)
{
    struct wire_msg msg = {.type = WIRE_RESUME, .epoch = p->epoch};
    msg.round = p->proposed;
    msg.resume.id = p->id;
    msg.resume.secret = p->secret;
    msg.resume.term = p->term;
    msg.resume.claimed = p->keeps->claimed;
    msg.resume.kept = p->keeps->kept.name;
    msg.resume.counts = p->keeps->kept.counts;
    return msg;
}

static void hear(struct member *p, const struct wire_msg *msg)
{
    static const uint8_t answers[WIRE_TYPE_COUNT] = {
        [WIRE_FLUSH] = WIRE_FLUSHED, [WIRE_PROPOSE] = WIRE_READY};
    if (answers[msg->type]) owes(p, answers[msg->type], msg->round);
    switch (msg->type) {
    case WIRE_WELCOME:
        p->id = msg->welcome.id;
        p->secret = msg->welcome.secret;
        p->term = p->keeps->claimed = msg->welcome.term;
        return;
    case WIRE_PROPOSE:
        p->proposed = msg->round;
        return;
    case WIRE_INSTALL:
        p->epoch = msg->round;
        p->proposed = 0;
        return;
    case WIRE_RESUMED:
        p->term = msg->resume.term;
        owes(p, WIRE_RESUME, 0);
        return;
    case WIRE_EVICT:
        p->gone = true;
        return;
    case WIRE_KEEP_GET:
    case WIRE_KEEP:
    case WIRE_KEPT:
    case WIRE_CLAIM:
        session_on_record(p->keeps, msg);
        return;
    default:
        return;
    }
}

static void renew(struct member *p)
{
    session_keep_free(p->keeps);
    p->keeps->claimed = 0;
    p->id = 0;
    p->epoch = p->proposed = p->calls = 0;
    p->gone = false;
}

static void calls(struct member *p)
{
    struct wire_msg hello = {.type = WIRE_HELLO};
    uint32_t i = (uint32_t)(p - u.members);
    if (p->open) return;
    p->link = master_free_link(u.m);
    if (p->link >= LINKS) return;
    if (p->gone) renew(p);
    p->open = true;
    p->owed_count = 0;
    feed(MASTER_CONNECTED, p->link, NULL);
    hello.hello.self.hint = (int32_t)i;
    hello.hello.join = i >= 3;
    hello.hello.group = i == 4;
    struct wire_msg resume = resume_of(p);
    tell(p, p->id > 0 ? &resume : &hello);
}

static void gives(struct member *p)
{
    const struct session_record *r = &p->keeps->kept;
    for (uint32_t at = 0; at < r->size;) {
        struct wire_msg msg;
        at = wire_record_part(&msg, r->name, r->bytes, r->size, at);
        tell(p, &msg);
    }
}

static void obeys(struct member *p)
{
    for (uint32_t i = 0; i < p->owed_count && p->open; i++) {
        struct wire_msg msg = p->owed[i];
        if (msg.type == WIRE_KEEP_GET) {
            gives(p);
            continue;
        }
        if (msg.type == WIRE_RESUME) msg = resume_of(p);
        if (msg.type == WIRE_READY && msg.round != p->proposed) continue;
        tell(p, &msg);
    }
    p->owed_count = 0;
}

static void all_obey(void)
{
    for (uint32_t turn = 0; turn < 8; turn++)
        for (uint32_t i = 0; i < MEMBERS; i++) obeys(&u.members[i]);
}

/* ------------------------------------------------------- what nobody should */

/* The name of a record that somebody has, or of none. */
static struct wire_record_name some_name(struct fuzz_input *in,
                                         const struct member *p)
{
    static const uint64_t odd[] = {0,
                                   1,
                                   UINT32_MAX,
                                   UINT64_MAX / 2 - 1,
                                   UINT64_MAX / 2,
                                   UINT64_MAX - 1,
                                   UINT64_MAX};
    uint8_t bits = fuzz_u8(in);
    struct wire_record_name name = p->keeps->kept.name;
    if (bits & 1) name = u.m->replicas.name;
    if (bits & 2) name = u.records[bits >> 6].name;
    if (bits & 4) name.seq += (bits >> 4 & 3) - 1u;
    if (bits & 8) name.term += (bits >> 5 & 3) - 1u;
    if ((bits & 12) == 12) name.term = odd[(bits >> 4) % ARRAY_COUNT(odd)];
    return name;
}

static struct wire_msg some_resume(struct fuzz_input *in, struct member *p)
{
    uint8_t who = fuzz_u8(in), bits = fuzz_u8(in);
    const struct member *as = &u.members[who % MEMBERS];
    struct wire_msg msg = resume_of(who & 128 ? as : p);
    msg.resume.kept = some_name(in, p);
    msg.resume.counts = bits & 1;
    if (bits & 2) msg.resume.term = some_name(in, p).term;
    if (bits & 4) msg.resume.claimed = some_name(in, p).term;
    if (bits & 8) msg.resume.claimed = u.m->replicas.claim + (bits >> 6);
    if (bits & 16) msg.resume.secret.word[0]++;
    if (bits & 32) msg.epoch += (bits >> 6) - 1u;
    msg.resume.sync_over = bits >> 7;
    return msg;
}

/* A part of a record: of any name, of its own or other bytes, some of them
 * changed, of any size, at any place. */
static struct wire_msg some_part(struct fuzz_input *in, const struct member *p,
                                 uint8_t *bytes)
{
    uint8_t bits = fuzz_u8(in);
    uint32_t record = bits % RECORDS;
    uint32_t size = u.records[record].size;
    struct wire_msg msg = {.type = WIRE_KEEP};
    msg.keep.name = bits & 4 ? some_name(in, p) : u.records[record].name;
    if (bits & 8) msg.keep.name = u.m->replicas.found;
    memcpy(bytes, u.records[record].bytes, size);
    if (size == 0) bytes[size++] = bits;
    for (uint32_t i = bits & 16 ? 1 + fuzz_below(in, 4) : 0; i > 0; i--) {
        uint32_t at = fuzz_u16(in) % size;
        bytes[at] ^= fuzz_u8(in);
    }
    if (bits & 32) size -= fuzz_u8(in) % size;
    uint32_t from = bits & 64 ? fuzz_u16(in) % size : 0;
    (void)wire_record_part(&msg, msg.keep.name, bytes, size, from);
    uint32_t end = msg.keep.offset + msg.keep.size;
    if (bits & 128)
        msg.keep.total = end + fuzz_u32(in) % (WIRE_RECORD_MAX + 1u - end);
    return msg;
}

static void lie(struct fuzz_input *in, struct member *p)
{
    static uint8_t bytes[sizeof u.records[0].bytes + 1];
    static const uint8_t types[] = {WIRE_RESUME, WIRE_RESUME, WIRE_KEEP,
                                    WIRE_KEEP,   WIRE_KEPT,   WIRE_CLAIM,
                                    WIRE_READY,  WIRE_VOTE,   WIRE_LEAVE,
                                    WIRE_HELLO,  WIRE_SYNC,   WIRE_FLUSHED};
    struct wire_msg msg = {.type = types[fuzz_below(in, ARRAY_COUNT(types))],
                           .epoch = p->epoch,
                           .round = p->proposed};
    if (msg.type == WIRE_RESUME)
        msg = some_resume(in, p);
    else if (msg.type == WIRE_KEEP)
        msg = some_part(in, p, bytes);
    else if (msg.type == WIRE_KEPT || msg.type == WIRE_CLAIM)
        msg.keep.name = some_name(in, p);
    else if (msg.type == WIRE_VOTE || msg.type == WIRE_SYNC)
        msg.round = ++p->calls;
    if (!p->open && (msg.type == WIRE_RESUME || msg.type == WIRE_HELLO)) {
        uint32_t link = master_free_link(u.m);
        if (link >= LINKS) return;
        p->open = true;
        p->link = link;
        p->owed_count = 0;
        feed(MASTER_CONNECTED, link, NULL);
    }
    tell(p, &msg);
}

/* Of a coordinator to a member, whose record is whole afterwards. */
static void trick(struct fuzz_input *in, struct member *p)
{
    static uint8_t bytes[sizeof u.records[0].bytes + 1];
    static const uint8_t types[] = {WIRE_KEEP, WIRE_KEEP, WIRE_KEPT, WIRE_CLAIM,
                                    WIRE_KEEP_GET};
    struct wire_msg msg = {.type = types[fuzz_below(in, ARRAY_COUNT(types))]};
    uint64_t before = p->keeps->claimed;
    if (msg.type == WIRE_KEEP)
        msg = some_part(in, p, bytes);
    else
        msg.keep.name = some_name(in, p);
    session_on_record(p->keeps, &msg);
    assert(p->keeps->claimed >= before);
    assert(p->keeps->kept.size == p->keeps->kept.total);
    assert(p->keeps->keeping.size <= p->keeps->keeping.total);
}

static void edits(struct fuzz_input *in, struct member *p)
{
    struct session_record *r = &p->keeps->kept;
    while (in->left > 2 && r->size > 0) {
        uint32_t at = fuzz_u16(in) % r->size;
        r->bytes[at] ^= fuzz_u8(in);
    }
}

/* --------------------------------------------------------------- the tape */

static void play(const struct tape_record *r)
{
    struct fuzz_input in = {r->bytes, r->size};
    struct member *p = &u.members[r->arg % MEMBERS];
    switch (r->kind % REPLICAS_KIND_COUNT) {
    case REPLICAS_CALLS:
        calls(p);
        return;
    case REPLICAS_OBEYS:
        if (r->arg == 7)
            all_obey();
        else
            obeys(p);
        return;
    case REPLICAS_LEAVES:
        if (!p->open) return;
        if (r->size > 0) tell(p, &(struct wire_msg){.type = WIRE_LEAVE});
        if (!p->open) return;
        p->open = false;
        feed(MASTER_CLOSED, p->link, NULL);
        return;
    case REPLICAS_TICK:
        u.now += fuzz_u16(&in) * PCCL_MS;
        feed(MASTER_TICK, 0, NULL);
        if (!u.m->replicas.over) return;
        end_master();
        begin_master(r->arg);
        return;
    case REPLICAS_DIES:
        end_master();
        begin_master(r->arg);
        return;
    case REPLICAS_VOTES: {
        struct wire_msg vote = {.type = WIRE_VOTE, .epoch = p->epoch};
        vote.vote.kind = VOTE_UPDATE;
        vote.round = ++p->calls;
        tell(p, &vote);
        return;
    }
    case REPLICAS_LIES:
        lie(&in, p);
        return;
    case REPLICAS_TRICKS:
        trick(&in, p);
        return;
    case REPLICAS_EDITS:
        edits(&in, p);
        return;
    default:
        return;
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    static struct session sessions[MEMBERS];
    struct fuzz_input in = {bytes, size};
    struct tape_record r = {.arg = 8};
    memset(&u, 0, sizeof u);
    u.now = 1;
    u.deadline = 100;
    for (uint32_t i = 0; i < MEMBERS; i++) {
        struct member *p = &u.members[i];
        p->keeps = &sessions[i];
        p->keeps->claimed = 0;
        p->keeps->out.to_master = to_master;
        p->keeps->out.user = p;
    }
    if (in.left >= TAPE_HEAD && in.at[0] == REPLICAS_CONFIG) tape_next(&in, &r);
    begin_master(r.arg);
    while (tape_next(&in, &r)) play(&r);
    end_master();
    for (uint32_t i = 0; i < MEMBERS; i++)
        session_keep_free(u.members[i].keeps);
    return 0;
}

/* ----------------------------------------------------------- for mutate.c */

const uint8_t tape_kinds = REPLICAS_KIND_COUNT;

size_t tape_make(uint8_t kind, uint64_t *random, uint8_t *to)
{
    static const uint8_t often[] = {REPLICAS_CALLS, REPLICAS_OBEYS,
                                    REPLICAS_OBEYS, REPLICAS_LIES,
                                    REPLICAS_LIES,  REPLICAS_TICK};
    uint8_t body[16];
    uint8_t arg = (uint8_t)tape_pick(random, 8);
    size_t size = sizeof body;
    if (tape_pick(random, 4)) kind = often[tape_pick(random, sizeof often)];
    for (size_t i = 0; i < size; i++) body[i] = (uint8_t)tape_random(random);
    if (kind == REPLICAS_CONFIG || kind == REPLICAS_DIES)
        arg = (uint8_t)tape_pick(random, 32);
    if (kind == REPLICAS_OBEYS && tape_pick(random, 2)) arg = 7;
    if (kind == REPLICAS_TICK) {
        size = 2;
        body[1] = tape_pick(random, 4) ? 0 : body[1] % 4;
    }
    if (kind == REPLICAS_LEAVES) size = tape_pick(random, 2);
    if (kind == REPLICAS_EDITS) size = 3 + 3 * (size_t)tape_pick(random, 4);
    return tape_put(to, kind, arg, body, (uint16_t)size);
}

void tape_vary(uint8_t kind, uint64_t *random, uint8_t *bytes, size_t size)
{
    size_t at = tape_pick(random, (uint32_t)size);
    (void)kind;
    tape_vary_number(random, bytes + at, 1);
}
