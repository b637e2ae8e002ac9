/* test_fence.c - several coordinators of one run that lack a journal: whatever
 * is delivered when, whoever is cut off, dies or sleeps, no view is installed
 * beside those of a coordinator that took over later, and nothing that was
 * installed is unknown to it (rules H10 to H14, J5).
 *
 * The coordinators are the real machines, the members keep records by the real
 * code, and else do what the rules ask of a member without operations. Each
 * seed is one universe; PCCL_FENCE=SEED runs that one alone and prints it,
 * PCCL_FENCE=SEED,COUNT so many from there on. */
#include "fence.h"

#include "../../../src/base/wire_resume.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct universe {
    uint64_t seed, random;
    bool prints;
    pccl_ns now;
    struct side masters[MASTERS];
    struct member members[MEMBERS];
    struct conn conns[CONNS];
    bool cut[MEMBERS][MASTERS];
    /* Of each take-over: its term, and the view that it began with. */
    struct {
        uint64_t term;
        uint32_t base;
    } taken[1024];
    uint32_t taken_count;
    /* The latest view that a member installed, by the term of its sender. */
    struct {
        uint64_t term;
        uint32_t round;
    } seen[1024];
    uint32_t seen_count;
} u;

static struct {
    uint64_t takeovers, stood_down, cuts, deaths, sleeps, together;
} totals;

static uint32_t pick(uint32_t below)
{
    u.random ^= u.random << 13;
    u.random ^= u.random >> 7;
    u.random ^= u.random << 17;
    return (uint32_t)(u.random >> 33) % below;
}

#define TELL(...)                                                              \
    do {                                                                       \
        if (u.prints) printf("%6lld  ", (long long)(u.now / PCCL_MS));         \
        if (u.prints) printf(__VA_ARGS__);                                     \
        if (u.prints) putchar('\n');                                           \
    } while (0)

#define CHECK(condition, ...)                                                  \
    do {                                                                       \
        if (condition) break;                                                  \
        fprintf(stderr, "PCCL_FENCE=%llu: ", (unsigned long long)u.seed);      \
        fprintf(stderr, __VA_ARGS__);                                          \
        fputc('\n', stderr);                                                   \
        fail();                                                                \
    } while (0)

/* ------------------------------------------------------------- connections */

static struct conn *conn_of(uint32_t master, uint32_t link)
{
    for (uint32_t i = 0; i < CONNS; i++) {
        struct conn *c = &u.conns[i];
        if (c->used && !c->ends[1] && c->master == master && c->link == link)
            return c;
    }
    return NULL;
}

/* -------------------------------------------------------------- coordinators
 */

static void on_send(void *user, const uint32_t *links, uint32_t count,
                    const struct wire_msg *msg)
{
    uint32_t master = (uint32_t)((struct side *)user - u.masters);
    for (uint32_t i = 0; i < count; i++) {
        struct conn *c = conn_of(master, links[i]);
        CHECK(c, "%s to a closed link", wire_type_name(msg->type));
        if (!c->cut && !c->ends[0]) put(&c->to[1], msg);
    }
}

static void on_close(void *user, uint32_t link, const char *reason)
{
    uint32_t master = (uint32_t)((struct side *)user - u.masters);
    struct conn *c = conn_of(master, link);
    CHECK(c, "closes a closed link");
    TELL("master %u hangs up on member %u: %s", master, c->member, reason);
    c->ends[1] = true;
    if (c->ends[0]) forget(c);
}

static void on_note(void *user, const struct master_note *note)
{
    uint32_t master = (uint32_t)((struct side *)user - u.masters);
    if (note->kind == NOTE_SUCCESSION)
        TELL("master %u: %s", master, note->reason);
    if (note->kind == NOTE_SUCCESSION && strstr(note->reason, "cut off"))
        totals.stood_down++;
}

static void begin_master(uint32_t i, bool first)
{
    struct side *s = &u.masters[i];
    struct master_config config = {
        .out = {.user = s, .send = on_send, .close = on_close, .note = on_note},
        .deadline = DEADLINE * PCCL_MS,
        .grace = GRACE * PCCL_MS,
        .replicas = true,
        .fenced = true,
        .standby = !first,
        .secret = {{u.seed, i}},
        .key = {{7, 8}},
        .quorum = MEMBERS};
    *s = (struct side){.m = calloc(1, sizeof *s->m)};
    assert_non_null(s->m);
    assert_true(master_init(s->m, &config));
}

/* Whoever takes over knows all that was installed. */
static void note_take_over(uint32_t i)
{
    struct side *s = &u.masters[i];
    uint64_t term = s->m->succession.term;
    if (s->m->replicas.phase != REPLICAS_SERVES || term < 2 || s->led == term)
        return;
    s->led = term;
    uint32_t base = s->m->group_count > 0 ? s->m->groups[0].epoch : 0;
    TELL("master %u takes over with term %llu from view %u", i,
         (unsigned long long)term, base);
    totals.takeovers++;
    for (uint32_t k = 0; k < u.seen_count; k++)
        CHECK(u.seen[k].term > term || u.seen[k].round <= base,
              "a master of term %llu begins with view %u, and %u is installed",
              (unsigned long long)term, base, u.seen[k].round);
    for (uint32_t k = 0; k < u.taken_count; k++)
        CHECK(u.taken[k].term != term, "two masters have one term");
    assert_true(u.taken_count < 1024);
    u.taken[u.taken_count].term = term;
    u.taken[u.taken_count++].base = base;
}

/* It is gone, and another one takes its place. */
static void renew_master(uint32_t i)
{
    for (uint32_t k = 0; k < CONNS; k++) {
        struct conn *c = &u.conns[k];
        if (!c->used || c->master != i || c->ends[1]) continue;
        c->ends[1] = true;
        if (c->ends[0]) forget(c);
    }
    master_free(u.masters[i].m);
    free(u.masters[i].m);
    bool first = i == 0;
    for (uint32_t k = 1; k < MASTERS; k++)
        first = first && master_count(u.masters[k].m, PEER_MEMBER) == 0;
    begin_master(i, first);
}

static void step_master(uint32_t i, struct master_event *e)
{
    e->now = u.now;
    master_step(u.masters[i].m, e);
    note_take_over(i);
    if (u.masters[i].m->replicas.over) renew_master(i);
}

static void kill_master(uint32_t i)
{
    TELL("master %u dies", i);
    totals.deaths++;
    renew_master(i);
}

/* ------------------------------------------------------------------- members
 */

static void to_master(void *user, const struct wire_msg *msg)
{
    struct conn *c = ((struct member *)user)->conn;
    if (c && !c->cut && !c->ends[1]) put(&c->to[0], msg);
}

static void hang_up(struct member *p)
{
    struct conn *c = p->conn;
    if (!c) return;
    p->conn = NULL;
    p->resuming = false;
    if (p->epoch > 0 && p->lost_at == 0) p->lost_at = u.now;
    c->ends[0] = true;
    if (c->ends[1]) forget(c);
}

static void resume(struct member *p)
{
    struct wire_msg msg = {
        .type = WIRE_RESUME, .epoch = p->epoch, .round = p->proposed};
    msg.resume.id = p->id;
    msg.resume.secret = p->secret;
    msg.resume.term = p->term;
    msg.resume.claimed = p->keeps->claimed;
    msg.resume.kept = p->keeps->kept.name;
    msg.resume.counts = p->keeps->kept.counts;
    to_master(p, &msg);
}

static void send_vote(struct member *p)
{
    struct wire_msg msg = {
        .type = WIRE_VOTE, .round = p->vote, .epoch = p->epoch};
    msg.vote.kind = VOTE_UPDATE;
    if (p->vote > 0) to_master(p, &msg);
}

/* After RESUMED, and INSTALL if one follows (H6). */
static void speak(struct member *p)
{
    send_vote(p);
    resume(p);
}

static void dial(uint32_t i)
{
    struct member *p = &u.members[i];
    uint32_t master = p->turn++ % MASTERS;
    struct side *s = &u.masters[master];
    uint32_t at = 0;
    while (at < CONNS && u.conns[at].used) at++;
    if (u.cut[i][master] || at == CONNS) return;
    struct conn *c = &u.conns[at];
    *c = (struct conn){.used = true, .member = i, .master = master};
    c->link = master_free_link(s->m);
    assert_true(c->link != MASTER_NO_LINK);
    p->conn = c;
    p->asked = u.now;
    TELL("member %u, which keeps record %llu of term %llu, calls master %u", i,
         (unsigned long long)p->keeps->kept.name.seq,
         (unsigned long long)p->keeps->kept.name.term, master);
    struct master_event e = {.type = MASTER_CONNECTED, .link = c->link};
    step_master(master, &e);
    if (p->epoch > 0) {
        p->resuming = true;
        resume(p);
    } else {
        struct wire_msg hello = {.type = WIRE_HELLO};
        hello.hello.self.hint = (int32_t)i;
        p->proposed = 0;
        to_master(p, &hello);
    }
}

static void note_install(const struct member *p, uint32_t round)
{
    uint64_t term = p->term;
    TELL("member %d installs view %u of term %llu", (int)(p - u.members), round,
         (unsigned long long)term);
    for (uint32_t k = 0; k < u.taken_count; k++)
        CHECK(u.taken[k].term <= term || round <= u.taken[k].base,
              "view %u of a master of term %llu, beside one of term %llu that "
              "began with %u",
              round, (unsigned long long)term,
              (unsigned long long)u.taken[k].term, u.taken[k].base);
    assert_true(u.seen_count < 1024);
    u.seen[u.seen_count].term = term;
    u.seen[u.seen_count++].round = round;
}

static void on_welcome(struct member *p, const struct wire_msg *msg)
{
    p->id = msg->welcome.id;
    p->secret = msg->welcome.secret;
    p->term = msg->welcome.term;
}

static void on_resumed(struct member *p, const struct wire_msg *msg)
{
    uint64_t term = msg->resume.term;
    if (term <= p->term || term < p->keeps->claimed) {
        p->gone = true;
        hang_up(p);
        return;
    }
    p->term = term;
    p->resuming = false;
    p->lost_at = 0;
    p->installs = msg->resume.installs;
    if (!p->installs) speak(p);
}

static void on_message(struct member *p, const struct wire_msg *msg)
{
    struct wire_msg back = {.type = WIRE_READY, .round = msg->round};
    bool heard = !p->resuming || msg->type == WIRE_RESUMED ||
                 msg->type == WIRE_EVICT || msg->type == WIRE_KEEP ||
                 msg->type == WIRE_KEPT || msg->type == WIRE_KEEP_GET ||
                 msg->type == WIRE_CLAIM;
    if (!heard) return;
    switch (msg->type) {
    case WIRE_WELCOME:
        on_welcome(p, msg);
        break;
    case WIRE_KEEP:
    case WIRE_KEPT:
    case WIRE_KEEP_GET:
    case WIRE_CLAIM:
        session_on_record(p->keeps, msg);
        break;
    case WIRE_FLUSH:
        p->proposed = 0;
        back.type = WIRE_FLUSHED;
        to_master(p, &back);
        break;
    case WIRE_PROPOSE:
        p->proposed = msg->round;
        to_master(p, &back);
        break;
    case WIRE_INSTALL:
        if (p->proposed != msg->round) break;
        note_install(p, msg->round);
        p->epoch = msg->round;
        p->proposed = 0;
        if (msg->view.update) p->vote = 0;
        if (p->installs) speak(p);
        p->installs = false;
        break;
    case WIRE_ANSWER:
        p->vote = 0;
        break;
    case WIRE_RESUMED:
        on_resumed(p, msg);
        break;
    case WIRE_EVICT:
        /* A newcomer calls the next one. */
        p->gone = p->epoch > 0;
        hang_up(p);
        break;
    default:
        break;
    }
}

/* -------------------------------------------------------------------- events
 */

static struct wire_store *store;

static void to_some_member(void)
{
    struct member *p = &u.members[pick(MEMBERS)];
    struct wire_msg msg;
    uint8_t *bytes = NULL;
    struct conn *c = p->conn;
    if (!c) return;
    if (take(&c->to[1], store, &msg, &bytes))
        on_message(p, &msg);
    else if (c->ends[1])
        hang_up(p); /* all that it sent has been read */
    free(bytes);
}

static void to_some_master(void)
{
    uint32_t at = pick(CONNS), left = CONNS;
    while (left > 0 && (!u.conns[at].used || u.conns[at].ends[1])) {
        at = (at + 1) % CONNS;
        left--;
    }
    if (left == 0) return;
    struct conn *c = &u.conns[at];
    struct wire_msg msg;
    uint8_t *bytes = NULL;
    uint32_t i = c->master;
    if (u.masters[i].sleeps_until > u.now) return;
    if (take(&c->to[0], store, &msg, &bytes)) {
        struct master_event e = {
            .type = MASTER_RECEIVED, .link = c->link, .msg = &msg};
        step_master(i, &e);
    } else if (c->ends[0]) {
        struct master_event e = {.type = MASTER_CLOSED, .link = c->link};
        c->ends[1] = true;
        forget(c);
        step_master(i, &e);
    }
    free(bytes);
}

static void pass_time(void)
{
    u.now += DEADLINE * PCCL_MS / 10;
    for (uint32_t i = 0; i < MASTERS; i++) {
        struct master_event e = {.type = MASTER_TICK};
        bool ticks = master_next_tick(u.masters[i].m) != PCCL_NEVER;
        if (ticks && u.masters[i].sleeps_until <= u.now) step_master(i, &e);
    }
    for (uint32_t i = 0; i < MEMBERS; i++) {
        struct member *p = &u.members[i];
        struct wire_msg beat = {.type = WIRE_HEARTBEAT};
        bool beats = p->conn && !p->resuming && p->id > 0;
        if (beats && p->conn->to[0].count < FRAMES / 4) to_master(p, &beat);
        if (p->lost_at > 0 && u.now - p->lost_at > GRACE * PCCL_MS) {
            TELL("member %u gives up", i);
            p->gone = true;
            hang_up(p);
        }
        /* Of one that is cut off it hears nothing; another one may lead. */
        bool late = u.now - p->asked > DEADLINE * PCCL_MS;
        struct conn *c = p->conn;
        bool deaf = c && (c->cut || u.masters[c->master].sleeps_until > u.now);
        if (c && late && (p->resuming || (deaf && pick(8) == 0))) hang_up(p);
    }
}

static void fault(void)
{
    uint32_t i = pick(MEMBERS), k = pick(MASTERS);
    switch (pick(8)) {
    case 0:
    case 1:
    case 2:
        u.cut[i][k] = pick(2) == 0;
        for (uint32_t n = 0; n < CONNS; n++) {
            struct conn *c = &u.conns[n];
            if (!u.cut[i][k] || !c->used || c->member != i || c->master != k)
                continue;
            TELL("member %u is cut off from master %u", i, k);
            totals.cuts++;
            c->cut = true;
            clear(&c->to[0]);
            clear(&c->to[1]);
        }
        break;
    case 3:
        kill_master(k);
        break;
    case 4:
        TELL("master %u sleeps", k);
        totals.sleeps++;
        u.masters[k].sleeps_until = u.now + pick(GRACE) * PCCL_MS;
        break;
    default:
        if (u.members[i].conn && pick(4) == 0) hang_up(&u.members[i]);
        break;
    }
}

/* Now and then all ask for an update, which needs nothing but an answer. */
static void vote(void)
{
    for (uint32_t i = 0; i < MEMBERS; i++) {
        struct member *p = &u.members[i];
        bool may = p->conn && p->epoch > 0 && !p->resuming && !p->installs;
        if (!may || p->vote > 0) continue;
        p->vote = ++p->calls;
        send_vote(p);
    }
}

static void one_step(bool faults)
{
    uint32_t what = pick(1000);
    if (what < 440) {
        to_some_member();
    } else if (what < 950) {
        to_some_master();
    } else if (what < 956) {
        pass_time();
    } else if (what < 985) {
        uint32_t i = pick(MEMBERS);
        if (!u.members[i].conn && !u.members[i].gone) dial(i);
    } else if (faults && pick(24) == 0) {
        fault();
    } else if (faults && pick(8) == 0) {
        vote();
    }
}

/* All that are left are in one view of one master. */
static bool is_settled(void)
{
    const struct member *first = NULL;
    for (uint32_t i = 0; i < MEMBERS; i++) {
        const struct member *p = &u.members[i];
        if (p->gone || p->epoch == 0) continue; /* founders may be missing */
        if (!p->conn || p->resuming || p->installs) return false;
        if (!first) first = p;
        if (p->epoch != first->epoch || p->conn->master != first->conn->master)
            return false;
        const struct master *m = u.masters[p->conn->master].m;
        if (m->succession.waits || m->replicas.pending ||
            m->groups[0].phase != GROUP_OPEN || m->groups[0].epoch != p->epoch)
            return false;
    }
    totals.together += first != NULL;
    return true;
}

static void begin(uint64_t seed, bool prints)
{
    memset(&u, 0, sizeof u);
    u.seed = seed;
    u.random = seed * 0x9e3779b97f4a7c15u + 1;
    u.prints = prints;
    u.now = PCCL_S;
    for (uint32_t i = 0; i < MASTERS; i++) begin_master(i, i == 0);
    for (uint32_t i = 0; i < MEMBERS; i++) {
        struct member *p = &u.members[i];
        p->keeps = calloc(1, sizeof *p->keeps);
        assert_non_null(p->keeps);
        p->keeps->out.user = p;
        p->keeps->out.to_master = to_master;
    }
}

static void end(void)
{
    for (uint32_t i = 0; i < CONNS; i++)
        if (u.conns[i].used) forget(&u.conns[i]);
    for (uint32_t i = 0; i < MASTERS; i++) {
        master_free(u.masters[i].m);
        free(u.masters[i].m);
    }
    for (uint32_t i = 0; i < MEMBERS; i++) {
        session_keep_free(u.members[i].keeps);
        free(u.members[i].keeps);
    }
}

static void run(uint64_t seed, bool prints)
{
    begin(seed, prints);
    bool founded = false;
    for (int i = 0; i < FAULTY; i++) {
        one_step(founded);
        founded = founded || u.masters[0].m->founded;
    }
    memset(u.cut, 0, sizeof u.cut);
    for (uint32_t i = 0; i < MASTERS; i++) u.masters[i].sleeps_until = 0;
    TELL("all heals");
    int left = SETTLE;
    while (left > 0 && !is_settled()) {
        one_step(false);
        left--;
    }
    CHECK(left > 0, "it does not settle");
    end();
}

static void test_views_of_several_masters(void **state)
{
    (void)state;
    const char *from = getenv("PCCL_FENCE");
    uint64_t first = 1, count = UNIVERSES;
    if (from) {
        char *end;
        first = strtoull(from, &end, 10);
        count = *end == ',' ? strtoull(end + 1, NULL, 10) : 1;
    }
    store = calloc(1, sizeof *store);
    assert_non_null(store);
    for (uint64_t i = 0; i < count; i++) run(first + i, from && count == 1);
    free(store);
    printf("%llu take-overs, %llu stood down, %llu deaths, %llu cuts, %llu "
           "sleeps; %llu universes went on\n",
           (unsigned long long)totals.takeovers,
           (unsigned long long)totals.stood_down,
           (unsigned long long)totals.deaths, (unsigned long long)totals.cuts,
           (unsigned long long)totals.sleeps,
           (unsigned long long)totals.together);
    if (from) return;
    assert_true(totals.takeovers > UNIVERSES);
    assert_true(totals.stood_down > 0 && totals.cuts > 0);
    assert_true(totals.together > UNIVERSES / 4);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_views_of_several_masters),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
