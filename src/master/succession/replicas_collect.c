/* replicas_collect.c - a coordinator without a record, and the members of a run
 * that come to it. Rules H13 and H14. */
#include "../../base/wire_resume.h"
#include "../master.h"
#include "replicas_record.h"

#include <stdlib.h>
#include <string.h>

/* Founders and members of a run whose coordinator has died come at the same
 * time; the latter dial at each of their ticks. */
static pccl_ns time_to_come(const struct master *m)
{
    return m->deadline / 2;
}

/* Their own time is over a little later, and this tells more. */
static bool have_had_time(const struct master *m)
{
    pccl_ns grace = m->succession.grace;
    pccl_ns less = grace > 2 * m->deadline ? m->deadline : grace / 2;
    return m->now - m->replicas.came >= grace - less;
}

static bool is_key(const struct wire_key *a, const struct wire_key *b)
{
    return a->word[0] == b->word[0] && a->word[1] == b->word[1];
}

/* A member counts once: its connection before is gone. */
static void drop_former(struct master *m, uint32_t link)
{
    const struct wire_msg *msg = m->peers[link].held;
    for (uint32_t i = 0; i < m->link_end; i++) {
        const struct master_peer *p = &m->peers[i];
        if (i != link && p->held_resume &&
            p->held->resume.id == msg->resume.id &&
            is_key(&p->held->resume.secret, &msg->resume.secret))
            master_hang_up(m, i, "it has come again");
    }
}

/* To the first of m->links. */
static void send_claim(struct master *m, uint32_t count)
{
    struct wire_msg msg = {.type = WIRE_CLAIM};
    msg.keep.name.term = m->replicas.claim;
    if (count > 0) m->out.send(m->out.user, m->links, count, &msg);
}

/* It names a term that no coordinator can be above. */
static bool is_last_term(const struct wire_msg *msg)
{
    return msg->type == WIRE_RESUME && (msg->resume.term >= MEMORY_TERM_MAX ||
                                        msg->resume.claimed >= MEMORY_TERM_MAX);
}

static bool hold(struct master *m, uint32_t link, const struct wire_msg *msg)
{
    struct replicas *k = &m->replicas;
    struct master_peer *p = &m->peers[link];
    if (is_last_term(msg)) {
        master_hang_up(m, link, "names a term that cannot be");
        return true;
    }
    if (!p->held) p->held = malloc(sizeof *p->held);
    if (!p->held) {
        master_hang_up(m, link, "no memory");
        return true;
    }
    *p->held = *msg;
    p->held_resume = msg->type == WIRE_RESUME;
    if (!p->held_resume) return true;
    drop_former(m, link);
    if (k->came == 0) k->came = m->now;
    uint64_t claimed = msg->resume.claimed;
    if (msg->resume.term > k->term) k->term = msg->resume.term;
    if (claimed > k->term) k->term = claimed;
    if (k->phase == REPLICAS_COLLECTS) return true;
    /* It has been claimed by another one; or most have not confirmed yet that
     * they are claimed, and it cannot, or has a later record. */
    bool over = k->term > k->claim;
    if (k->phase == REPLICAS_CLAIMS)
        over |= claimed == k->claim || msg->resume.term == k->claim ||
                wire_record_above(msg->resume.kept, k->found);
    m->links[0] = link;
    if (over) {
        k->phase = REPLICAS_COLLECTS;
        k->source = MASTER_NO_LINK;
    } else if (k->phase == REPLICAS_CLAIMS) {
        send_claim(m, 1);
    } else {
        replicas_send(m, 1);
    }
    return true;
}

/* A part of the record that was asked for. */
static void take_part(struct master *m, uint32_t link,
                      const struct wire_msg *msg)
{
    struct replicas *k = &m->replicas;
    bool fits = k->phase == REPLICAS_COLLECTS && link == k->source &&
                wire_record_same(msg->keep.name, k->found) &&
                msg->keep.offset == k->in_size &&
                (k->in_size == 0 || msg->keep.total == k->in_total);
    if (!fits) {
        master_hang_up(m, link, "sent a record that nobody has asked for");
        return;
    }
    if (k->in_size == 0) {
        free(k->in);
        k->in = malloc(msg->keep.total);
        k->in_total = msg->keep.total;
    }
    if (!k->in) {
        master_hang_up(m, link, "no memory");
        return;
    }
    memcpy(k->in + k->in_size, msg->keep.bytes, msg->keep.size);
    k->in_size += msg->keep.size;
}

/* Members of a run are here, or may come yet, or another coordinator has them.
 */
static bool may_have_members(const struct master *m)
{
    const struct replicas *k = &m->replicas;
    return k->standby || k->came > 0 || m->now - k->began < time_to_come(m);
}

/* Whose HELLO or RESUME waits says nothing else that counts, but that it goes.
 */
bool replicas_pass(struct master *m, uint32_t link, const struct wire_msg *msg)
{
    bool known = msg->type == WIRE_RESUME || msg->type == WIRE_KEEP ||
                 msg->type == WIRE_KEPT || msg->type == WIRE_CLAIM ||
                 msg->type == WIRE_HELLO;
    if (!m->peers[link].held || known) return false;
    if (msg->type == WIRE_LEAVE || msg->type == WIRE_ABORT)
        master_hang_up(m, link, "left before it was accepted");
    return true;
}

bool replicas_take(struct master *m, uint32_t link, const struct wire_msg *msg)
{
    struct replicas *k = &m->replicas;
    struct master_peer *p = &m->peers[link];
    bool waits = k->phase != REPLICAS_OFF && k->phase != REPLICAS_SERVES;
    switch (msg->type) {
    case WIRE_HELLO:
        if (waits && k->standby) {
            master_evict(m, link, "stands by for another coordinator",
                         WIRE_EVICT_ELSEWHERE);
            return true;
        }
        return waits && hold(m, link, msg);
    case WIRE_RESUME:
        return waits && hold(m, link, msg);
    case WIRE_OFFERS_GET: /* who is there is not known */
        if (!waits || !may_have_members(m)) return false;
        master_evict(m, link,
                     k->standby ? "stands by for another coordinator"
                                : "waits for its members",
                     WIRE_EVICT_ELSEWHERE);
        return true;
    case WIRE_KEEP:
        take_part(m, link, msg);
        return true;
    case WIRE_KEPT:
        if (k->phase != REPLICAS_OFF &&
            wire_record_same(msg->keep.name, k->name))
            p->kept = k->name;
        return true;
    case WIRE_CLAIM:
        p->claimed = msg->keep.name.term;
        return true;
    default:
        return false;
    }
}

/* The held one with the latest record, or MASTER_NO_LINK. */
static uint32_t latest(const struct master *m)
{
    uint32_t best = MASTER_NO_LINK;
    for (uint32_t i = 0; i < m->link_end; i++) {
        const struct master_peer *p = &m->peers[i];
        if (!p->held_resume || p->held->resume.kept.seq == 0) continue;
        if (best == MASTER_NO_LINK ||
            wire_record_above(p->held->resume.kept,
                              m->peers[best].held->resume.kept))
            best = i;
    }
    return best;
}

/* The latest record is here, whole; or is asked for. */
static bool has_latest(struct master *m)
{
    struct replicas *k = &m->replicas;
    uint32_t best = latest(m);
    if (best == MASTER_NO_LINK) return false;
    struct wire_record_name name = m->peers[best].held->resume.kept;
    bool current = !wire_record_above(name, k->found);
    if (current && k->in_total > 0 && k->in_size == k->in_total) return true;
    if (current && k->source != MASTER_NO_LINK) return false;
    struct wire_msg ask = {.type = WIRE_KEEP_GET};
    ask.keep.name = name;
    k->found = name;
    k->source = best;
    k->in_size = k->in_total = 0;
    master_send(m, best, &ask);
    return false;
}

/* Of a member that has sent RESUME. */
typedef bool fact(const struct master *m, const struct master_peer *p);

static bool is_here(const struct master *m, const struct master_peer *p)
{
    (void)m, (void)p;
    return true;
}

static bool is_claimed(const struct master *m, const struct master_peer *p)
{
    return p->claimed == m->replicas.claim;
}

static bool keeps_it(const struct master *m, const struct master_peer *p)
{
    return wire_record_same(p->kept, m->replicas.name);
}

/* It is so with more than half of the voters of the record, if they are asked,
 * and of its members. */
static bool most(const struct master *m, fact *is_so)
{
    const struct replicas *k = &m->replicas;
    uint32_t voters = 0, members = 0;
    for (uint32_t i = 0; i < m->link_end; i++) {
        const struct master_peer *p = &m->peers[i];
        if (!p->held_resume || !is_so(m, p)) continue;
        voters += replicas_has(&k->voters, p->held->resume.id);
        members += replicas_has(&k->next, p->held->resume.id);
    }
    return (k->voters.count == 0 || voters > k->voters.count / 2) &&
           members > k->next.count / 2;
}

/* One that has the record which was found knows that it counts. */
static bool found_counts(const struct master *m)
{
    for (uint32_t i = 0; i < m->link_end; i++) {
        const struct master_peer *p = &m->peers[i];
        if (p->held_resume && p->held->resume.counts &&
            wire_record_same(p->held->resume.kept, m->replicas.found))
            return true;
    }
    return false;
}

static void drop_found(struct master *m)
{
    struct replicas *k = &m->replicas;
    uint32_t source = k->source;
    k->in_size = k->in_total = 0;
    k->source = MASTER_NO_LINK;
    if (source != MASTER_NO_LINK)
        master_drop(m, source, "sent a record that cannot be");
}

/* Rule H4. */
static void drop_strangers(struct master *m, const struct wire_key *key)
{
    for (uint32_t i = 0; i < m->link_end; i++) {
        const struct master_peer *p = &m->peers[i];
        if (!p->held_resume) continue;
        struct wire_key right = succession_secret(key, p->held->resume.id);
        if (!is_key(&right, &p->held->resume.secret))
            master_drop(m, i, "it has not the secret of that member");
    }
}

/* Rule H13: most of its members shall obey nobody else. */
static void claim(struct master *m)
{
    struct replicas *k = &m->replicas;
    struct master_memory memory;
    uint32_t count = 0;
    free(k->voters.ids);
    bool good = replicas_read(k, &k->voters, &memory) && memory_skip(&memory);
    if (good)
        drop_strangers(m, &memory.secret);
    else
        drop_found(m);
    good = good && replicas_ids_of(&memory, &k->next);
    if (good && found_counts(m)) k->voters.count = 0;
    if (!good || !most(m, is_here)) return;
    k->claim = ++k->term;
    k->phase = REPLICAS_CLAIMS;
    for (uint32_t i = 0; i < m->link_end; i++)
        if (m->peers[i].held_resume) m->links[count++] = i;
    send_claim(m, count);
}

/* The record, with this master's term. */
static void renew(struct master *m)
{
    struct replicas *k = &m->replicas;
    struct master_memory memory;
    struct replicas_ids voters;
    bool good = replicas_read(k, &voters, &memory);
    free(voters.ids);
    PCCL_ASSERT(good);
    (void)memory_skip(&memory); /* J4: the next one names other rounds, too */
    memory.term = k->claim;
    k->name.seq = k->found.seq;
    if (replicas_begin_record(m, &memory)) k->phase = REPLICAS_RENEWS;
}

static void release(struct master *m)
{
    m->replicas.phase = REPLICAS_SERVES;
    for (uint32_t i = 0; i < m->link_end; i++) {
        struct wire_msg *msg = m->peers[i].held;
        if (!msg) continue;
        m->peers[i].held = NULL;
        m->peers[i].held_resume = false;
        master_received(m, i, msg);
        free(msg);
    }
}

/* Most of them keep the record with this term. */
static void take_over(struct master *m)
{
    struct replicas *k = &m->replicas;
    struct master_memory memory;
    bool good = memory_decode(&memory, k->bytes + k->head, k->size - k->head);
    PCCL_ASSERT(good);
    memory_take(m, &memory);
    replicas_commit(m);
    if (!succession_begin(m, &memory)) {
        replicas_tell(
            m, "the record that the members keep has views that cannot be");
        succession_give_up(m);
        k->voters.count = 0; /* they are of no run (H11) */
    }
    release(m);
}

/* Until a run can begin, members of another one may come. */
static bool lacks_founders(const struct master *m)
{
    uint32_t held = 0;
    for (uint32_t i = 0; i < m->link_end; i++)
        held += m->peers[i].held && !m->peers[i].held_resume;
    return held < m->quorum;
}

static void give_up(struct master *m, const char *why)
{
    replicas_tell(m, why);
    for (uint32_t i = 0; i < m->link_end; i++)
        if (m->peers[i].held_resume) master_drop(m, i, why);
    replicas_void(m);
}

bool replicas_collect(struct master *m)
{
    struct replicas *k = &m->replicas;
    if (k->phase == REPLICAS_OFF || k->phase == REPLICAS_SERVES) return false;
    if (k->began == 0) k->began = m->now;
    if (k->phase == REPLICAS_COLLECTS && has_latest(m)) claim(m);
    if (k->phase == REPLICAS_CLAIMS && most(m, is_claimed)) renew(m);
    if (k->phase == REPLICAS_RENEWS && most(m, keeps_it)) {
        take_over(m);
        return false;
    }
    if (k->came > 0 && have_had_time(m))
        give_up(m, "no more than half of the members have come to the next "
                   "coordinator");
    if (may_have_members(m) || lacks_founders(m)) return true;
    release(m);
    return false;
}
