/* probe.c - see probe.h; rules in LINKS.md. */
#include "link.h"

/* The resolution of the clock, which is read once per pass. */
#define RTT_LEAST ((pccl_ns)1000)

/* ------------------------------------------------------------------ probes */

static void report(struct links *n, enum edge_kind kind, uint64_t rate)
{
    struct probe *p = &n->probe;
    struct wire_edge edge = {.peer = p->order.peer,
                             .rate = rate,
                             .rtt = (uint64_t)p->taken_rtt,
                             .kind = (uint8_t)kind};
    p->taken = true;
    p->report(p->user, p->order.step, &edge);
}

static void over(struct links *n)
{
    struct probe *p = &n->probe;
    p->on = (p->order.gives && p->phase != GIVE_OVER) ||
            (p->order.takes && !p->taken);
}

void probe_begin(struct links *n, const struct probe_order *order)
{
    struct probe *p = &n->probe;
    const struct wire_member *m = links_member(n, order->peer);
    struct frame answer = {.type = FRAME_ECHO,
                           .flags = FLAG_ANSWER,
                           .seq = p->unexpected.step,
                           .index = p->unexpected.index};
    bool asked =
        p->unexpected.peer == order->peer && p->unexpected.step == order->step;
    *p = (struct probe){.report = p->report, .user = p->user};
    if (!m || order->peer == n->self || !p->report) return;
    p->on = true;
    p->order = *order;
    p->begun = n->now;
    p->sample_every = 1;
    links_want(n, m, n->pool_size);
    struct link *l = link_find(n, order->peer, false);
    if (!l) return;
    link_dirty(n, l);
    if (asked) (void)link_control(n, l, &answer);
}

void probe_cancel(struct links *n)
{
    n->probe.on = false;
}

static bool is_for(const struct links *n, const struct link *l, uint32_t step)
{
    return n->probe.on && n->probe.order.peer == l->id &&
           n->probe.order.step == step;
}

/* How long to send: short where the round trip is, so that the rate is found
 * without keeping the others waiting. */
static pccl_ns stream_time(const struct probe *p)
{
    pccl_ns least = p->order.time / 10;
    pccl_ns time = PROBE_TIME_RTTS * p->rtt;
    if (time < least) time = least;
    return time < p->order.time ? time : p->order.time;
}

bool probe_next_send(struct links *n, struct link *l, struct frame *f)
{
    struct probe *p = &n->probe;
    if (!p->on || !p->order.gives || p->order.peer != l->id) return false;
    if (p->phase == GIVE_LINK) p->phase = GIVE_ECHO;
    *f = (struct frame){.type = FRAME_ECHO, .seq = p->order.step};
    if (p->phase == GIVE_ECHO) {
        f->index = ++p->echoes;
        p->asked_at = n->now;
        p->phase = GIVE_WAITS;
        return true;
    }
    if (p->phase != GIVE_STREAM) return false;
    f->type = FRAME_PROBE;
    bool late = n->now - p->stream_at >= stream_time(p);
    if (p->sent < p->order.bytes && (!late || p->sent == 0)) {
        uint32_t left = p->order.bytes - (uint32_t)p->sent;
        f->size = left < PROBE_CHUNK ? left : PROBE_CHUNK;
        p->sent += f->size;
        return true;
    }
    f->flags = FLAG_LAST;
    f->tag = (uint64_t)p->rtt;
    f->digest = p->sent;
    f->index = (uint32_t)((n->now - p->stream_at) / 1000);
    p->phase = GIVE_OVER;
    over(n);
    return true;
}

static void echoed(struct links *n, struct link *l, const struct frame *f)
{
    struct probe *p = &n->probe;
    if (p->phase != GIVE_WAITS || f->index != p->echoes) return;
    pccl_ns rtt = n->now - p->asked_at;
    if (rtt < RTT_LEAST) rtt = RTT_LEAST;
    if (p->rtt == 0 || rtt < p->rtt) p->rtt = rtt;
    p->phase = p->echoes < PROBE_ECHOES ? GIVE_ECHO : GIVE_STREAM;
    p->stream_at = n->now;
    link_dirty(n, l);
}

/* Measures the second half of the time only: by then TCP has found its rate,
 * and the buffers on the path are full. */
static uint64_t stream_rate(const struct probe *p)
{
    uint32_t last = p->sample_count - 1;
    pccl_ns begin = p->samples[0].at;
    pccl_ns end = p->samples[last].at;
    uint32_t from = 0;
    while (from + 1 < last && p->samples[from].at < begin + (end - begin) / 2)
        from++;
    pccl_ns time = end - p->samples[from].at;
    uint64_t bytes = p->samples[last].bytes - p->samples[from].bytes;
    uint64_t taken = bytes * 1000000 / ((uint64_t)time / 1000 + 1) + 1;
    /* A receiver that was not scheduled finds all data in the socket's buffer.
     * Each end measures too much at times, but rarely both. */
    uint64_t micros = (uint64_t)p->given_time / 1000 + 1;
    uint64_t given = p->expected * 1000000 / micros + 1;
    return taken < given ? taken : given;
}

static void judge_stream(struct links *n)
{
    struct probe *p = &n->probe;
    if (p->taken || p->expected == 0 || p->received < p->expected) return;
    report(n, EDGE_SATURATED, stream_rate(p));
    over(n);
}

/* Stores at most PROBE_SAMPLES, every second one of them when they are full. */
static void sample(struct links *n)
{
    struct probe *p = &n->probe;
    uint32_t at = p->sample_count;
    if (++p->sample_skipped < p->sample_every && at > 0) {
        at--; /* the last one is always the latest */
    } else {
        p->sample_skipped = 0;
        p->sample_count++;
    }
    p->samples[at].at = n->now;
    p->samples[at].bytes = p->received;
    if (p->sample_count < PROBE_SAMPLES) return;
    for (uint32_t i = 0; i < PROBE_SAMPLES / 2; i++)
        p->samples[i] = p->samples[2 * i];
    p->sample_count = PROBE_SAMPLES / 2;
    p->sample_every *= 2;
}

bool probe_accept(struct links *n, struct link *l, const struct frame *f)
{
    struct probe *p = &n->probe;
    bool mine = is_for(n, l, f->seq);
    if (mine) { /* the probe measures the connection of a ring */
        link_widen(n, l);
        link_need(n, l);
    }
    if (f->type == FRAME_ECHO && !(f->flags & FLAG_ANSWER)) {
        struct frame answer = *f;
        answer.flags = FLAG_ANSWER;
        if (mine) return link_control(n, l, &answer);
        p->unexpected.peer = l->id;
        p->unexpected.step = f->seq;
        p->unexpected.index = f->index;
        return true;
    }
    if (!mine) return true; /* of a probe that was given up */
    if (f->type == FRAME_ECHO) {
        echoed(n, l, f);
    } else if ((f->flags & FLAG_LAST) && p->order.takes) {
        p->expected = f->digest;
        p->taken_rtt = (pccl_ns)(f->tag & INT64_MAX);
        p->given_time = (pccl_ns)f->index * 1000;
        judge_stream(n);
    }
    return true;
}

void probe_received(struct links *n, const struct link *l,
                    const struct frame *f)
{
    struct probe *p = &n->probe;
    if (!is_for(n, l, f->seq) || !p->order.takes || f->size == 0) return;
    p->received += f->size;
    sample(n);
    judge_stream(n);
}

static void fail(struct links *n, enum edge_kind kind)
{
    struct probe *p = &n->probe;
    if (kind == EDGE_FAILED || (p->order.takes && !p->taken))
        report(n, kind, 0);
    p->on = false;
}

void probe_closed(struct links *n, const struct link *l)
{
    struct probe *p = &n->probe;
    if (!p->on || p->order.peer != l->id) return;
    fail(n, l->failed ? EDGE_FAILED : EDGE_SILENT);
}

/* Time to make the link, and to send with a margin. */
void probe_tick(struct links *n)
{
    struct probe *p = &n->probe;
    if (!p->on) return;
    if (links_status(n, p->order.peer) == LINK_FAILED) {
        fail(n, EDGE_FAILED);
    } else if (n->now - p->begun >= n->deadline / 2 + 4 * p->order.time) {
        fail(n, EDGE_SILENT);
    }
}

/* ------------------------------------------------------------- measurements */

void measure_transfer(struct endpoint_speed *s, pccl_ns now,
                      const struct frame *f)
{
    if (s->first == 0) {
        s->first = now;
        return;
    }
    s->last = now;
    s->bytes += f->size;
    if (f->flags & FLAG_FULL) s->full += f->size;
}

void measure_link(struct link *link, const struct endpoint_speed *s)
{
    pccl_ns time = s->last - s->first;
    if (s->bytes < MEASURE_MIN || time < MEASURE_TIME_MIN) return;
    uint64_t rate = s->bytes * 1000000 / ((uint64_t)time / 1000);
    bool full = 2 * s->full > s->bytes;
    struct link_speed *l = &link->speed;
    if (!full && l->rate > 0 && (l->full || rate <= l->rate)) return;
    l->rate = rate;
    l->full = full;
}

/* An edge is news if it differs by more than an eighth, or once in a while. */
static bool is_news(const struct link_speed *s, pccl_ns now)
{
    if (s->rate == 0) return false;
    uint64_t more = s->notified + s->notified / 8;
    uint64_t less = s->notified - s->notified / 8;
    if (s->rate > more || (s->full && s->rate < less)) return true;
    return now - s->notified_at >= 10 * PCCL_S;
}

uint32_t measure_report(struct links *n, struct wire_edge *edges)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < n->view->size && count < WIRE_EDGES_MAX; i++) {
        struct link *l = link_find(n, n->view->members[i].id, false);
        if (!l || !is_news(&l->speed, n->now)) continue;
        struct link_speed *s = &l->speed;
        edges[count++] = (struct wire_edge){.peer = l->id,
                                            .rate = s->rate,
                                            .kind = s->full ? EDGE_SATURATED
                                                            : EDGE_AT_LEAST};
        s->notified = s->rate;
        s->notified_at = n->now;
        s->rate = 0;
    }
    return count;
}
