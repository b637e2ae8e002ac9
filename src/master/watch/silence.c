/* silence.c - whom the master does not hear, and what follows (rules M8, M10,
 * M11, M15).
 *
 * Silence alone does not tell a process without CPU time from a dead host. The
 * driver is asked for evidence when the first heartbeats are missing, so that
 * it is there when the peer is to be judged. */
#include "../master.h"

#include <stdio.h>

static bool is_known(const struct master_peer *p)
{
    return p->state == PEER_MEMBER || p->state == PEER_REGISTERED;
}

bool silence_is_suspect(const struct master *m, uint32_t link)
{
    const struct master_peer *p = &m->peers[link];
    return is_known(p) &&
           m->now - p->last_recv >= PCCL_TIME_TO_MISS(m->deadline);
}

/* Rule M11: it slept, it was starved, or its network is down. */
static bool is_deaf(const struct master *m)
{
    return m->now - m->heard_at >= PCCL_TIME_TO_MISS(m->deadline);
}

static bool is_fresh(const struct master *m, const struct master_peer *p)
{
    return p->silence.evidence != EVIDENCE_NONE &&
           m->now - p->silence.seen_at < m->deadline;
}

static bool has_excuse(const struct master *m, const struct master_peer *p)
{
    enum evidence e = p->silence.evidence;
    return is_fresh(m, p) && (e == EVIDENCE_RUNNABLE || e == EVIDENCE_TRACED);
}

bool silence_is_excused(const struct master *m, uint32_t link)
{
    return is_deaf(m) || has_excuse(m, &m->peers[link]);
}

static void note(struct master *m, uint32_t link, enum master_note_kind kind)
{
    const struct master_peer *p = &m->peers[link];
    struct master_note n = {.kind = kind,
                            .peer = p,
                            .took = m->now - p->last_recv,
                            .reason = p->silence.told == EVIDENCE_TRACED
                                          ? "a debugger holds it"
                                          : "it gets no CPU time"};
    master_note_send(m, &n);
}

/* After an outage of that length: TCP tries again within it. */
static void give_time(struct master *m, pccl_ns gap)
{
    pccl_ns grace = gap + m->deadline / 2 - PCCL_TIME_TO_LOSE(m->deadline);
    for (uint32_t i = 0; i < m->link_end; i++) {
        pccl_ns *since = &m->peers[i].silence.since;
        if (!is_known(&m->peers[i])) continue;
        if (*since < m->now + grace) *since = m->now + grace;
        limits_extend(m, i, *since);
    }
}

void silence_heard(struct master *m, uint32_t link)
{
    struct master_peer *p = &m->peers[link];
    pccl_ns gap = m->now - m->heard_at;
    bool deaf = is_deaf(m);
    m->heard_at = m->now;
    if (deaf) give_time(m, gap);
    if (p->silence.told != EVIDENCE_NONE) note(m, link, NOTE_HEARD);
    p->last_recv = m->now;
    p->silence = (struct master_silence){.since = m->now};
}

void silence_slept(struct master *m, pccl_ns gap)
{
    give_time(m, gap);
    for (uint32_t i = 0; i < m->link_end; i++)
        if (m->peers[i].state == PEER_CONNECTED) m->peers[i].last_recv = m->now;
}

void silence_evidence(struct master *m, const struct master_event *event)
{
    for (uint32_t i = 0; i < m->link_end; i++) {
        struct master_peer *p = &m->peers[i];
        if (!is_known(p) || p->info.id != event->id) continue;
        if (!silence_is_suspect(m, i)) return;
        bool let_go = event->evidence == EVIDENCE_NONE && has_excuse(m, p);
        if (let_go && !p->silence.let_go) {
            p->silence.let_go = true; /* its heartbeat is under way */
            return;
        }
        p->silence.let_go = false;
        p->silence.evidence = event->evidence;
        p->silence.seen_at = m->now;
    }
}

static void look(struct master *m, uint32_t link)
{
    struct master_silence *s = &m->peers[link].silence;
    /* At every second tick. */
    if (!m->out.look || m->now - s->asked_at < m->deadline / 20 * 3) return;
    s->asked_at = m->now;
    m->out.look(m->out.user, &m->peers[link].info);
}

static void drop(struct master *m, uint32_t link)
{
    const struct master_peer *p = &m->peers[link];
    bool stopped = is_fresh(m, p) && p->silence.evidence == EVIDENCE_STOPPED;
    char text[WIRE_TEXT_MAX];
    (void)snprintf(text, sizeof text, "was %s for %.1f s (deadline %.1f s)",
                   stopped ? "stopped by a signal" : "silent",
                   (double)(m->now - p->last_recv) / PCCL_S,
                   (double)m->deadline / PCCL_S);
    master_drop(m, link, text);
}

/* True: it was dropped. */
static bool judge(struct master *m, uint32_t link)
{
    struct master_peer *p = &m->peers[link];
    struct master_silence *s = &p->silence;
    if (p->held) return false;
    if (p->state == PEER_CONNECTED) {
        if (m->now - p->last_recv < m->deadline) return false;
        master_drop(m, link, "did not say HELLO within the deadline");
        return true;
    }
    bool asked = s->asked_at > 0 || !m->out.look;
    if (silence_is_suspect(m, link) && !is_deaf(m)) look(m, link);
    /* The answer may be under way, if the master slept for a while. */
    bool late = m->now - s->since >= PCCL_TIME_TO_LOSE(m->deadline);
    if (!asked || !late || is_deaf(m)) return false;
    if (silence_is_excused(m, link)) {
        if (s->told == s->evidence) return false;
        s->told = s->evidence;
        note(m, link, NOTE_SILENT);
        return false;
    }
    drop(m, link);
    return true;
}

void silence_tick(struct master *m)
{
    uint32_t count = 0;
    struct wire_msg beat = {.type = WIRE_HEARTBEAT};
    struct wire_msg silent = {.type = WIRE_SILENT, .ids = m->ids};
    for (uint32_t i = 0; i < m->link_end; i++) {
        const struct master_peer *p = &m->peers[i];
        if (p->state == PEER_FREE || p->state == PEER_DEAD) continue;
        if (judge(m, i) || (p->state == PEER_CONNECTED && !p->held)) continue;
        m->links[count++] = i;
        if (silence_is_suspect(m, i)) m->ids[silent.id_count++] = p->info.id;
    }
    if (count > 0) m->out.send(m->out.user, m->links, count, &beat);
    if (silent.id_count > 0) m->out.send(m->out.user, m->links, count, &silent);
}
