/* link.c - the links to other members: the dialer, the number of connections,
 * and the state. See link.h; rules R3 and R6. */
#include "link.h"

#include "../base/buggify.h"

void link_join(struct link *l, struct conn *c)
{
    struct conn **at = &l->conns;
    while (*at && (*at)->number < c->number) at = &(*at)->next;
    c->link = l;
    c->next = *at;
    *at = c;
}

void link_leave(struct conn *c)
{
    if (!c->link) return;
    struct conn **at = &c->link->conns;
    while (*at != c) at = &(*at)->next;
    *at = c->next;
    c->link = NULL;
    c->next = NULL;
}

struct conn *link_conn_from(const struct link *l, uint32_t number)
{
    struct conn *c = l->conns;
    while (c && c->number < number) c = c->next;
    return c;
}

void link_close(struct links *n, const struct link *l)
{
    struct conn *c = l->conns;
    for (; c; c = link_conn_from(l, c->number + 1)) conn_close(n, c->number);
}

void links_close_unwanted(struct links *n)
{
    for (uint32_t i = 0; i < n->conn_end; i++) {
        const struct conn *c = n->conns[i];
        if (!c || c->state == CONN_FREE || !c->link || c->link->wanted)
            continue;
        conn_close(n, i);
    }
}

void links_close_all(struct links *n)
{
    links_unwant(n); /* nothing is dialed again */
    for (uint32_t i = 0; i < n->conn_end; i++) {
        if (!n->conns[i] || n->conns[i]->state == CONN_FREE) continue;
        conn_close(n, i);
    }
}

void link_dirty(struct links *n, const struct link *l)
{
    for (const struct conn *c = l->conns; c; c = c->next)
        conn_dirty(n, c->number);
}

static bool make_room_for_control(struct links *n, struct link *l)
{
    if (l->control_count < l->control_room) return true;
    uint32_t room = l->control_room > 0 ? 2 * l->control_room : CONTROL_FIRST;
    if (room > CONTROL_MAX) return false;
    struct frame *ring = pool_take(&n->pool, room * sizeof *ring);
    if (!ring) return false;
    for (uint32_t i = 0; i < l->control_count; i++)
        ring[i] = l->control[(l->control_first + i) % l->control_room];
    pool_give(&n->pool, l->control);
    l->control = ring;
    l->control_first = 0;
    l->control_room = room;
    return true;
}

bool link_control(struct links *n, struct link *l, const struct frame *f)
{
    if (!make_room_for_control(n, l)) return false;
    uint32_t at = (l->control_first + l->control_count++) % l->control_room;
    l->control[at] = *f;
    link_dirty(n, l);
    return true;
}

/* ------------------------------------------------------------------ dialing
 */

pccl_ns link_time(const struct links *n, const struct link *l, pccl_ns share)
{
    pccl_ns least = l ? 8 * l->rtt : 0;
    pccl_ns time = share > least ? share : least;
    pccl_ns most = n->deadline / 4 * 3;
    return time < most ? time : most;
}

static bool is_near(const struct links *n, const struct link *l)
{
    return n->driver.share && l->host == n->host;
}

/* Rules R3d, R3k: how long a link may take. Its dialer knows the round trip as
 * soon as a dial was answered. */
static pccl_ns time_to_link(const struct links *n, const struct link *l)
{
    bool more = is_near(n, l) && !l->wanted;
    return link_time(n, l,
                     more ? PCCL_TIME_TO_DETECT(n->deadline)
                          : PCCL_TIME_TO_LINK(n->deadline));
}

/* Rule R3k: the time since when the link is overdue. */
static pccl_ns made_since(const struct links *n, const struct link *l,
                          pccl_ns time)
{
    return !l->wanted && n->made_at > time ? n->made_at : time;
}

void link_made(struct links *n, struct link *l)
{
    if (!l->sought || l->wanted || l->counted == n->view->epoch) return;
    l->counted = n->view->epoch;
    n->made_at = n->now;
}

/* Rule R3b: of two ends one dials first. */
static void begin_dialing(struct links *n, struct link *l)
{
    bool first = (n->self < l->id || l->outward) && !PCCL_BUGGIFY(dial_late);
    l->redials = 0;
    l->dial_at = n->now + (first ? 0 : time_to_link(n, l) / 4);
    l->again = !first;
    /* The time of a link that could not be made is over (R3h). */
    if (l->failed) l->dial_at = PCCL_NEVER;
}

static uint32_t width(const struct links *n, const struct link *l)
{
    /* More than one would only cost memory within a host. */
    return is_near(n, l) || l->relayed ? 1 : l->want;
}

static bool may_dial(const struct links *n, const struct link *l)
{
    if (!l->known || l->dropped) return false;
    if (l->open > 0) return l->outward && l->open + l->dialing < width(n, l);
    if (!l->sought || n->now < l->dial_at) return false;
    pccl_ns pause = l->again ? time_to_link(n, l) / 4 : 0;
    return pause == 0 || n->now >= made_since(n, l, l->dial_at - pause) + pause;
}

/* Rule R3l: so many links within the host are in the making here already. */
static bool stands_in_line(const struct links *n, const struct link *l)
{
    uint32_t making = 0;
    if (l->wanted || l->open > 0 || l->dialing > 0 || !is_near(n, l))
        return false;
    for (uint32_t i = 0; i < n->conn_end; i++) {
        const struct conn *c = n->conns[i];
        bool dials = c && c->state == CONN_DIALED && c->link;
        making += dials && is_near(n, c->link);
    }
    return making >= NEAR_DIALS_MAX;
}

static void dial_once(struct links *n, struct link *l)
{
    uint32_t number =
        link_dial(n, l->id, l->host, wire_dial_addr(&l->member, l->turn));
    if (number == NO_CONN) return;
    n->conns[number]->turn = l->turn;
    link_join(l, n->conns[number]);
    l->dialing++;
}

/* One dial at a time opens a link; later ones try once more beside the dials
 * under way: a lost packet delays a dial by a second. */
static void dial(struct links *n, struct link *l)
{
    if (!may_dial(n, l)) return;
    if (stands_in_line(n, l)) {
        n->line = true;
        l->wanted_at = n->now; /* its time has not begun */
        return;
    }
    dial_once(n, l);
    if (l->open == 0) l->turn++;
    l->dial_at = n->now + time_to_link(n, l) / 4;
    l->again = true;
}

void link_need(struct links *n, struct link *l)
{
    if (l->open == 0 && !l->sought) {
        l->sought = true;
        if (!l->failed) l->wanted_at = n->now;
        begin_dialing(n, l);
    }
    for (uint32_t before = UINT32_MAX; before != l->dialing;) {
        before = l->dialing;
        dial(n, l);
        if (l->open == 0) return;
    }
}

void links_dial_next(struct links *n)
{
    if (!n->line) return;
    n->line = false;
    for (size_t i = 0; i < ARRAY_COUNT(n->table); i++)
        for (struct link *l = n->table[i]; l; l = l->next)
            if (l->sought && l->open == 0) dial(n, l);
}

void link_know(struct link *l, const struct wire_member *m)
{
    l->member = *m;
    l->host = m->host;
    l->known = true;
}

static uint32_t greeting(const struct link *l)
{
    uint32_t count = 0;
    for (const struct conn *c = l->conns; c; c = c->next)
        count += c->state == CONN_DIALED && c->tx_head_size > 0;
    return count;
}

bool link_greets(const struct link *l)
{
    return greeting(l) > 0;
}

bool link_has_room(const struct links *n, const struct link *l)
{
    bool inward = l->open > 0 && !l->outward;
    return !inward && l->open + greeting(l) < width(n, l);
}

void link_forget_dials(struct links *n, const struct link *l)
{
    struct conn *c = l->conns;
    for (; c; c = link_conn_from(l, c->number + 1))
        if (c->state == CONN_DIALED) conn_forget_dial(n, c);
}

static bool is_alive(const struct link *l)
{
    for (const struct conn *c = l->conns; c; c = c->next)
        if (c->state == CONN_OPEN && c->alive != l->attempt) return false;
    return l->open > 0;
}

void link_settle(struct link *l)
{
    if (l->sought && is_alive(l)) l->sought = l->failed = false;
}

/* A connection that was open at PROPOSE has not answered, or cannot even be
 * asked. One that was made since then has the time of a link that is being
 * made. */
static bool is_stale(const struct link *l)
{
    for (const struct conn *c = l->conns; c; c = c->next) {
        bool open = c->state == CONN_OPEN;
        if (open && c->made != l->attempt && c->alive != l->attempt)
            return true;
    }
    return false;
}

/* Rule R3d: each open connection is to show that it is alive. */
static void verify(struct links *n, struct link *l)
{
    for (struct conn *c = l->conns; c; c = c->next) {
        if (c->state != CONN_OPEN) continue;
        if (conn_has_no_path(c)) {
            c->alive = l->attempt; /* rule R7b */
            continue;
        }
        c->ping = true;
        conn_dirty(n, c->number);
    }
}

void link_tick(struct links *n, struct link *l)
{
    if (!l->sought) return;
    pccl_ns since = n->now - made_since(n, l, l->wanted_at);
    if (since < time_to_link(n, l)) {
        pccl_ns patience = PCCL_TIME_TO_LINK(n->deadline) / 3;
        way_try_other(n, l, time_to_link(n, l) / 3);
        if (l->open == 0)
            dial(n, l);
        else if (since >= link_time(n, l, patience) && is_stale(l))
            link_close(n, l); /* and it is dialed anew */
        return;
    }
    l->sought = false;
    l->failed = true;
    link_close(n, l);
    link_lost(n, l, true);
}

/* READY may have been sent already, and the other end waits (R3f). */
void link_again(struct links *n, struct link *l)
{
    if (l->sought) begin_dialing(n, l);
    link_need(n, l);
}

bool link_is_inward(const struct links *n, const struct link *l)
{
    return l->open > 0 && n->self < l->id && !l->outward;
}

void link_widen(struct links *n, struct link *l)
{
    uint32_t pool = n->pool_size;
    if (n->pool_auto && (n->high_rtt || l->rtt >= RTT_HIGH))
        pool = l->rtt < RTT_VERY_HIGH ? POOL_HIGH_RTT : POOL_VERY_HIGH_RTT;
    if (l->want >= pool || PCCL_BUGGIFY(link_narrow)) return;
    l->want = pool;
    link_dirty(n, l);
}

bool link_is_spare(const struct link *l, const struct conn *c)
{
    uint32_t before = 0;
    if (l->open <= l->want) return false;
    for (const struct conn *o = l->conns; o != c; o = o->next)
        before += o->state == CONN_OPEN;
    return before >= l->want;
}

void links_want(struct links *n, const struct wire_member *m,
                uint32_t connections)
{
    struct link *l = link_find(n, m->id, true);
    if (!l) return;
    link_know(l, m);
    l->wanted = true;
    if (connections > l->want) l->want = connections;
    l->sought = true; /* a new attempt */
    l->failed = false;
    l->wanted_at = n->now;
    l->attempt++;
    begin_dialing(n, l);
    verify(n, l);
    link_settle(l);
    link_need(n, l);
}

void links_retry(struct links *n)
{
    for (size_t i = 0; i < ARRAY_COUNT(n->table); i++)
        for (struct link *l = n->table[i]; l; l = l->next) l->failed = false;
}

void links_unwant(struct links *n)
{
    for (size_t i = 0; i < ARRAY_COUNT(n->table); i++) {
        for (struct link *l = n->table[i]; l; l = l->next) {
            l->wanted = l->sought = false;
            l->want = 1;
        }
    }
}

void links_resume(struct links *n)
{
    conn_resume(n);
}

enum link_status links_status(struct links *n, uint64_t id)
{
    struct link *l = link_find(n, id, false);
    if (!l) return LINK_FAILED;
    if (l->open > 0 && !l->sought) return LINK_OPEN;
    if (l->failed) return LINK_FAILED;
    return LINK_WAITS;
}

uint32_t conn_sisters(const struct links *n, uint32_t number)
{
    const struct conn *c = n->conns[number];
    const struct link *l = c ? c->link : NULL;
    return l ? l->want : 1;
}

bool conn_is_long(const struct links *n, uint32_t number)
{
    const struct conn *c = n->conns[number];
    const struct link *l = c ? c->link : NULL;
    return n->high_rtt && l && l->known && l->host != n->host;
}
