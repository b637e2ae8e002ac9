/* recorder.c - records what the simulator's members and coordinator meet, as
 * tapes for the fuzzers. See tape.h.
 *
 * It is linked with the simulator, whose calls of the cores the linker directs
 * here (--wrap). What the cores call themselves is not recorded: they will call
 * it again. FUZZ_TAPES in the environment is the folder; it gets conn/ and
 * master/, where each process and each coordinator has a file. A tape that
 * becomes long is cut. */
#include "recorder.h"

#include <stdio.h>
#include <sys/stat.h>

enum { TAPES_MAX = 64, ROOM = 24 * 1024, LEAST = 600 };

struct tape {
    const struct session *s;
    const struct engine *e;
    const struct master *m;
    uint8_t bytes[ROOM];
    size_t size;
    bool full;
    uint8_t last; /* kind */
    pccl_ns now;
    const uint8_t *window;        /* where the next bytes go */
    uint64_t seen[SIM_CONNS_MAX]; /* by the fast path, of a channel */
    uint64_t post[SIM_CONNS_MAX]; /* the last one that is on the tape */
};

static struct tape tapes[TAPES_MAX];
int recorder_depth;

struct tape *tape_of(const void *key)
{
    if (!key || recorder_depth > 0) return NULL;
    for (uint32_t i = 0; i < TAPES_MAX; i++) {
        struct tape *t = &tapes[i];
        if (t->s == key || t->e == key || t->m == key) return t;
        if (t->s && (&t->s->messages == key || t->s->engine == key)) return t;
    }
    return NULL;
}

static struct tape *begin(const struct session *s, const struct master *m)
{
    for (uint32_t i = 0; i < TAPES_MAX; i++) {
        struct tape *t = &tapes[i];
        if (t->s || t->m) continue;
        *t = (struct tape){.s = s, .m = m};
        return t;
    }
    return NULL;
}

static void put(struct tape *t, uint8_t kind, uint32_t arg, const void *bytes,
                size_t size)
{
    if (!t || t->full || arg > UINT8_MAX) return;
    const uint8_t *from = bytes;
    do {
        size_t part = size < TAPE_SIZE_MAX ? size : TAPE_SIZE_MAX;
        if (t->size + TAPE_HEAD + part > ROOM) {
            t->full = true;
            return;
        }
        t->size += tape_put(t->bytes + t->size, kind, (uint8_t)arg, from,
                            (uint16_t)part);
        from = from ? from + part : NULL;
        size -= part;
    } while (size > 0);
    t->last = kind;
}

void word(struct words *w, uint64_t value, size_t width)
{
    for (size_t i = 0; i < width && w->size < FOLDED; i++)
        w->bytes[w->size++] = (uint8_t)(value >> (8 * i));
}

void put_words(struct tape *t, uint8_t kind, uint32_t arg,
               const struct words *w)
{
    put(t, kind, arg, w->bytes, w->size);
}

static void put_word(struct tape *t, uint8_t kind, uint32_t arg, uint64_t value,
                     size_t width)
{
    struct words w = {.size = 0};
    word(&w, value, width);
    put_words(t, kind, arg, &w);
}

static void save(const struct tape *t, const char *kind)
{
    static unsigned number;
    char path[4096];
    const char *folder = getenv("FUZZ_TAPES");
    if (!folder || t->size < LEAST) return;
    (void)snprintf(path, sizeof path, "%s/%s", folder, kind);
    (void)mkdir(folder, 0777);
    (void)mkdir(path, 0777);
    (void)snprintf(path, sizeof path, "%s/%s/sim-%llu-%03u", folder, kind,
                   (unsigned long long)sim_seed, number++);
    FILE *file = fopen(path, "wb");
    if (!file || fwrite(t->bytes, 1, t->size, file) != t->size) {
        perror(path);
        exit(1);
    }
    (void)fclose(file);
}

/* -------------------------------------------------------------- the session */

WRAP(bool, session_init, struct session *s, const struct session_config *c)
{
    struct tape *t = begin(s, NULL);
    recorder_depth++;
    bool ok = __real_session_init(s, c);
    recorder_depth--;
    if (t) t->e = s->engine;
    return ok;
}

WRAP(void, session_free, struct session *s)
{
    struct tape *t = tape_of(s);
    INSIDE(__real_session_free(s));
    if (!t) return;
    save(t, "conn");
    t->s = NULL;
    t->e = NULL;
}

/* The simulator has set these facts before it says HELLO. */
static void put_config(struct tape *t, const struct session *s,
                       const struct wire_msg *hello)
{
    struct words w = {.size = 0};
    const struct engine *e = s->engine;
    const char *name = "";
    for (int i = 0; i < COLL_COUNT; i++)
        if (e->forced[i]) name = e->forced[i];
    word(&w,
         (s->links->driver.share ? 1u : 0u) | (e->cached == 0 ? 2u : 0u) |
             (e->single_copy_world == 0 ? 4u : 0u),
         1);
    word(&w, s->links->fill_size, 2);
    word(&w, e->many, 1);
    word(&w, e->piece, 4);
    word(&w, hello->hello.self.host, 8);
    word(&w, strlen(name), 1);
    for (size_t i = 0; name[i]; i++) word(&w, (uint8_t)name[i], 1);
    word(&w, s->partial.piece, 4);
    t->now = s->now;
    put_words(t, MEMBER_CONFIG, s->links->pool_auto ? 0 : s->links->pool_size,
              &w);
}

WRAP(void, session_hello, struct session *s, const struct wire_msg *hello)
{
    struct tape *t = tape_of(s);
    if (t) put_config(t, s, hello);
    INSIDE(__real_session_hello(s, hello));
}

WRAP(void, session_on_message, struct session *s, const struct wire_msg *msg)
{
    static uint8_t frame[WIRE_FRAME_MAX];
    struct tape *t = tape_of(s);
    if (t) put(t, MEMBER_MASTER, 0, frame, wire_encode(msg, frame));
    INSIDE(__real_session_on_message(s, msg));
}

WRAP(void, session_tick, struct session *s, pccl_ns now)
{
    struct tape *t = tape_of(s);
    if (t) {
        pccl_ns passed = now - t->now;
        put_word(t, MEMBER_TICK, 0,
                 (uint64_t)(passed < UINT32_MAX ? passed : UINT32_MAX), 4);
        t->now = now;
    }
    INSIDE(__real_session_tick(s, now));
}

WRAP(void, session_settle, struct session *s)
{
    struct tape *t = tape_of(s);
    /* It does something only while a proposal waits. */
    if (t && s->next && !s->ready_sent && t->last != MEMBER_SETTLE)
        put(t, MEMBER_SETTLE, 0, NULL, 0);
    INSIDE(__real_session_settle(s));
}

WRAP(int, session_fail, struct session *s, uint64_t tag)
{
    put_word(tape_of(s), MEMBER_FAIL, 0, tag, 8);
    RETURN(int, __real_session_fail(s, tag));
}

WRAP(int, session_vote, struct session *s, enum vote_kind kind)
{
    put(tape_of(s), MEMBER_VOTE, kind, NULL, 0);
    RETURN(int, __real_session_vote(s, kind));
}

WRAP(void, session_leave, struct session *s)
{
    put(tape_of(s), MEMBER_LEAVE, 0, NULL, 0);
    INSIDE(__real_session_leave(s));
}

WRAP(void, session_master_gone, struct session *s, const char *reason)
{
    put(tape_of(s), MEMBER_MASTER_GONE, 0, NULL, 0);
    INSIDE(__real_session_master_gone(s, reason));
}

/* --------------------------------------------------------------- operations */

static void put_launch(struct tape *t, uint8_t kind, const struct op_request *r)
{
    struct words w = {.size = 0};
    const struct session *s = t->s;
    word(&w, r->call.tag, 8);
    word(&w, r->plan.coll, 1);
    bool flows = r->plan.coll == COLL_ALLTOALLV;
    bool to_root = r->plan.coll == COLL_ALLREDUCE && r->plan.flow != FLOW_ALL;
    word(&w, flows ? (uint64_t)r->plan.flow : (uint64_t)r->call.dtype, 1);
    word(&w, r->call.redop, 1);
    word(&w, r->call.quant.algorithm + (to_root ? 3u : 0), 1);
    word(&w, r->call.quant.code, 1);
    word(&w, r->plan.root, 4);
    word(&w,
         r->call.quant.algorithm != QUANT_NONE ? r->call.count : r->plan.count,
         4);
    word(&w, r->call.digest, 8);
    word(&w, r->call.member_count, 1);
    for (uint32_t i = 0; i < r->call.member_count; i++)
        word(&w, r->call.members[i], 8);
    if (r->plan.coll == COLL_ALLTOALLV) {
        uint32_t world =
            r->call.members ? r->call.member_count : s->notified.view->size;
        word(&w, world, 1);
        for (uint32_t i = 0; i < world; i++) {
            word(&w, r->plan.send_bytes[i], 2);
            word(&w, r->plan.recv_bytes[i], 2);
        }
    }
    put_words(t, kind, r->call.sendbuf == r->call.recvbuf, &w);
}

WRAP(int, session_launch, struct session *s, const struct op_request *r,
     uint64_t view_epoch, struct op **out)
{
    struct tape *t = tape_of(s);
    if (t) put_launch(t, MEMBER_LAUNCH, r);
    RETURN(int, __real_session_launch(s, r, view_epoch, out));
}

WRAP(bool, session_fast, struct session *s, const struct op_request *r,
     uint64_t view_epoch)
{
    struct tape *t = tape_of(s);
    recorder_depth++;
    bool fast = __real_session_fast(s, r, view_epoch);
    recorder_depth--;
    if (t && fast) put_launch(t, MEMBER_FAST, r);
    return fast;
}

/* To its reader a post is a part of the channel (rule L11), and so it is on the
 * tape. */
static void put_post(struct tape *t, uint32_t conn, uint64_t number,
                     const uint8_t *bytes, size_t size)
{
    if (t->post[conn] == number) return;
    t->post[conn] = number;
    put(t, MEMBER_BYTES, conn, bytes, size);
}

/* The fast path reads shared memory by itself: what has come since the last
 * look is recorded before it is polled. */
static void put_channels(struct tape *t, const struct engine *e)
{
    uint32_t conn;
    for (uint32_t i = 0; (conn = fast_conn(e, i)) != NO_CONN; i++) {
        struct channel *c = conn_channel(&e->links, conn);
        const uint8_t *from = NULL;
        bool posted;
        if (!c || conn >= SIM_CONNS_MAX) continue;
        size_t size = channel_look(c, &from, &posted);
        if (posted) put_post(t, conn, c->taken + 1, from, size);
        if (posted || c->post_at < c->post_size) continue;
        uint64_t seen = t->seen[conn] > c->read ? t->seen[conn] - c->read : 0;
        if (size <= seen) continue;
        put(t, MEMBER_BYTES, conn, from + seen, size - (size_t)seen);
        t->seen[conn] = c->read + size;
    }
}

WRAP(enum look, fast_poll, struct engine *e)
{
    struct tape *t = tape_of(e);
    if (t) put_channels(t, e);
    if (t && t->last != MEMBER_POLL) put(t, MEMBER_POLL, 0, NULL, 0);
    RETURN(enum look, __real_fast_poll(e));
}

WRAP(struct op *, session_convert, struct session *s)
{
    put(tape_of(s), MEMBER_CONVERT, 0, NULL, 0);
    RETURN(struct op *, __real_session_convert(s));
}

WRAP(int, session_take, struct session *s, struct op *op, uint32_t *n,
     uint64_t *tx, uint64_t *rx)
{
    put_word(tape_of(s), MEMBER_TAKE, 0, op_name(op).tag, 8);
    RETURN(int, __real_session_take(s, op, n, tx, rx));
}

WRAP(void, engine_wait_begins, struct engine *e)
{
    struct tape *t = tape_of(e);
    if (t && e->in_a_row > 0) put(t, MEMBER_WAITS, 0, NULL, 0);
    INSIDE(__real_engine_wait_begins(e));
}

/* -------------------------------------------------------------- connections */

WRAP(bool, engine_accepted, struct engine *e, uint32_t conn)
{
    struct tape *t = tape_of(e);
    put(t, MEMBER_ACCEPTED, conn, NULL, 0);
    if (t) t->seen[conn % SIM_CONNS_MAX] = 0;
    RETURN(bool, __real_engine_accepted(e, conn));
}

WRAP(void, engine_dialed, struct engine *e, uint32_t conn, bool success)
{
    struct tape *t = tape_of(e);
    struct words w = {.size = 0};
    word(&w, success, 1);
    word(&w, t ? (uint64_t)e->links.conns[conn]->rtt : 0, 4);
    put_words(t, MEMBER_DIALED, conn, &w);
    if (t) t->seen[conn % SIM_CONNS_MAX] = 0;
    INSIDE(__real_engine_dialed(e, conn, success));
}

WRAP(void, engine_closed, struct engine *e, uint32_t conn)
{
    put(tape_of(e), MEMBER_CLOSED, conn, NULL, 0);
    INSIDE(__real_engine_closed(e, conn));
}

WRAP(size_t, engine_rx_window, struct engine *e, uint32_t conn, uint8_t **to)
{
    struct tape *t = tape_of(e);
    size_t size = __real_engine_rx_window(e, conn, to);
    if (t) t->window = size > 0 ? *to : NULL;
    return size;
}

WRAP(bool, engine_rx, struct engine *e, uint32_t conn, size_t size)
{
    struct tape *t = tape_of(e);
    if (t && t->window) put(t, MEMBER_BYTES, conn, t->window, size);
    RETURN(bool, __real_engine_rx(e, conn, size));
}

/* What it has taken; the rest comes again. */
WRAP(size_t, engine_rx_from, struct engine *e, uint32_t conn,
     const uint8_t *bytes, size_t size)
{
    struct tape *t = tape_of(e);
    const struct channel *c = conn_channel(&e->links, conn);
    uint64_t seen = 0;
    if (t && c && conn < SIM_CONNS_MAX && c->post_at < c->post_size) {
        put_post(t, conn, c->taken, c->post, c->post_size);
        RETURN(size_t, __real_engine_rx_from(e, conn, bytes, size));
    }
    if (t && c && conn < SIM_CONNS_MAX && t->seen[conn] > c->read)
        seen = t->seen[conn] - c->read;
    if (t && size > seen) put(t, MEMBER_BYTES, conn, bytes + seen, size - seen);
    if (t && c && conn < SIM_CONNS_MAX && size > seen)
        t->seen[conn] = c->read + size;
    RETURN(size_t, __real_engine_rx_from(e, conn, bytes, size));
}

WRAP(void, engine_rx_dry, struct engine *e, uint32_t conn)
{
    struct tape *t = tape_of(e);
    if (t && conn_is_p2p(&e->links, conn) && t->last != MEMBER_DRY)
        put(t, MEMBER_DRY, conn, NULL, 0);
    INSIDE(__real_engine_rx_dry(e, conn));
}

WRAP(void, engine_tx, struct engine *e, uint32_t conn, size_t size)
{
    put_word(tape_of(e), MEMBER_SENT, conn, size, 4);
    INSIDE(__real_engine_tx(e, conn, size));
}

/* ----------------------------------------------------------------- messages */

WRAP(int, message_post, struct messages *m, uint64_t to, const void *head,
     size_t head_size, const void *body, size_t size)
{
    struct tape *t = tape_of(m);
    struct words w = {.size = 0};
    word(&w, to, 8);
    for (size_t i = 0; i < head_size; i++)
        word(&w, ((const uint8_t *)head)[i], 1);
    for (size_t i = 0; i < size; i++) word(&w, ((const uint8_t *)body)[i], 1);
    put_words(t, MEMBER_POST, (uint32_t)head_size, &w);
    RETURN(int, __real_message_post(m, to, head, head_size, body, size));
}

WRAP(struct message_event *, message_take, struct messages *m)
{
    struct tape *t = tape_of(m);
    if (t && m->first) put(t, MEMBER_EVENT, 0, NULL, 0);
    RETURN(struct message_event *, __real_message_take(m));
}

WRAP(void, message_progress, struct messages *m)
{
    struct tape *t = tape_of(m);
    if (t && m->pending && t->last != MEMBER_PROGRESS)
        put(t, MEMBER_PROGRESS, 0, NULL, 0);
    INSIDE(__real_message_progress(m));
}

/* ---------------------------------------------------------- the coordinator */

WRAP(bool, master_init, struct master *m, const struct master_config *c)
{
    struct tape *t = begin(NULL, m);
    struct words w = {.size = 0};
    word(&w, c->small_world, 1);
    word(&w, c->key.word[0], 8);
    word(&w, c->key.word[1], 8);
    word(&w, (uint64_t)(c->deadline / PCCL_MS), 2);
    word(&w, (c->job ? 1u : 0u) | (c->relays ? 2u : 0u), 1);
    if (t) put_words(t, COORD_CONFIG, c->quorum, &w);
    bool good;
    INSIDE(good = __real_master_init(m, c));
    return good;
}

static void put_event(struct tape *t, const struct master_event *e)
{
    static uint8_t frame[WIRE_FRAME_MAX];
    static const uint8_t kinds[] = {[MASTER_CONNECTED] = COORD_CONNECTED,
                                    [MASTER_RECEIVED] = COORD_RECEIVED,
                                    [MASTER_CLOSED] = COORD_CLOSED,
                                    [MASTER_TICK] = COORD_TICK,
                                    [MASTER_QUORUM] = COORD_QUORUM,
                                    [MASTER_SEARCHED] = COORD_SEARCHED,
                                    [MASTER_EVIDENCE] = COORD_EVIDENCE};
    struct words w = {.size = 0};
    if (e->now - t->now >= PCCL_MS) { /* time passes in ticks */
        if (e->type != MASTER_TICK)
            put_word(t, COORD_TICK, 1, (uint64_t)(e->now - t->now), 4);
    }
    uint64_t passed = (uint64_t)(e->now - t->now);
    t->now = e->now;
    switch (e->type) {
    case MASTER_RECEIVED:
        put(t, COORD_RECEIVED, e->link, frame, wire_encode(e->msg, frame));
        return;
    case MASTER_TICK:
        put_word(t, COORD_TICK, 0, passed, 4);
        return;
    case MASTER_QUORUM:
        put(t, COORD_QUORUM, e->quorum, NULL, 0);
        return;
    case MASTER_SEARCHED:
        word(&w, e->group, 1);
        for (uint32_t i = 0; e->order && i < SIM_PROCS_MAX; i++)
            word(&w, e->order[i], 2);
        put_words(t, COORD_SEARCHED, e->order != NULL, &w);
        return;
    case MASTER_SLEPT:
        put_word(t, COORD_TICK, 2, (uint64_t)e->gap, 4);
        return;
    case MASTER_EVIDENCE:
        put_word(t, COORD_EVIDENCE, e->evidence, e->id, 8);
        return;
    default:
        put(t, kinds[e->type], e->link, NULL, 0);
    }
}

WRAP(void, master_step, struct master *m, const struct master_event *e)
{
    struct tape *t = tape_of(m);
    if (t) put_event(t, e);
    INSIDE(__real_master_step(m, e));
}

WRAP(void, master_free, struct master *m)
{
    struct tape *t = tape_of(m);
    if (t) save(t, "master");
    if (t) t->m = NULL;
    INSIDE(__real_master_free(m));
}
