/* model_resume.c - a process: what its program is told of views, and what it
 * does without a master. Rules M9, H1, H2, H6, H7, T1, T2. */
#include "model_state.h"

#include <string.h>

/* Rules T1, T2. */
void member_notify(struct process *p, uint32_t loss)
{
    if (p->loss_count > 0 && p->losses[0].number <= loss)
        p->notified_traits = 0;
    while (p->loss_count > 0 && p->losses[0].number <= loss) {
        const struct pending *l = &p->losses[0];
        struct ids left = {0};
        for (uint32_t i = 0; i < p->notified.count; i++)
            if (find_id(&l->removed, p->notified.of[i]) == l->removed.count)
                left.of[left.count++] = p->notified.of[i];
        p->notified = left;
        p->notified_epoch = l->epoch;
        p->notified_traits |= l->traits;
        p->loss_count--;
        memmove(&p->losses[0], &p->losses[1],
                p->loss_count * sizeof p->losses[0]);
    }
    for (uint32_t i = p->abort_count; i-- > 0;) { /* F6b */
        const struct pending_verdict *a = &p->aborts[i];
        if (a->scope == 0 && a->loss <= loss && !a->fresh && !a->any_scope)
            member_drops(p, i);
    }
}

void member_notify_all(struct process *p)
{
    p->notified = p->view;
    p->notified_epoch = p->epoch;
    p->notified_traits = 0;
    p->loss_count = 0;
}

/* Of the same tag and scope, or of the tag in any (V4d). */
bool abort_fits(const struct pending_verdict *a, const struct running *o)
{
    return a->tag == o->name.tag && (a->any_scope || a->scope == o->name.scope);
}

void member_drops(struct process *p, uint32_t abort)
{
    p->abort_count--;
    memmove(&p->aborts[abort], &p->aborts[abort + 1],
            (p->abort_count - abort) * sizeof p->aborts[0]);
}

bool member_drops_crossed(struct process *p, uint64_t tag)
{
    uint32_t before = p->abort_count;
    for (uint32_t i = before; i-- > 0;) {
        const struct pending_verdict *a = &p->aborts[i];
        if (a->fresh && a->verdict == CROSSED && a->tag == tag)
            member_drops(p, i);
    }
    return p->abort_count < before;
}

/* Rule F6: a launch before INSTALL has the verdict then, as one that was queued
 * when it came. */
void member_queues(struct process *p, struct running *o)
{
    for (uint32_t i = 0; i < p->abort_count; i++) {
        const struct pending_verdict *a = &p->aborts[i];
        if (!a->fresh || a->verdict == CROSSED || !abort_fits(a, o)) continue;
        o->verdict = a->verdict;
        member_drops(p, i);
        return;
    }
}

/* Rule F6: verdicts are kept until the member has been in such a call. */
void member_called(struct process *p, uint32_t kind)
{
    if (kind == PENDING) return;
    p->abort_count = 0;
}

void member_synced(struct process *p)
{
    if (p->syncs) p->abort_count = 0;
    p->syncs = false;
}

/* Rule F6: USAGE on what was not launched here ends the call that waits. */
void member_refused(struct process *p)
{
    for (uint32_t k = 0; k < VOTES && p->refuses; k++) {
        if (k == PENDING || !p->waits[k] || p->answered[k]) continue;
        p->answered[k] = true;
        p->answer[k] = REFUSED;
        member_called(p, k);
    }
    if (p->refuses) member_synced(p);
    p->refuses = false;
}

/* Rule M9. */
void member_cut(struct process *p)
{
    bool waits = p->frozen || p->leaves || p->state != IN_VIEW;
    for (int i = 0; i < VOTES; i++) waits |= p->waits[i] && !p->answered[i];
    bool ready = p->state == JOINING && p->has_proposal && p->said_ready;
    p->master_lost = true;
    p->due = MESSAGE_OTHER;
    p->resuming = p->speaks = false;
    caller_cut(p);
    if (p->outlives && (p->state == IN_VIEW || ready)) return; /* H2 */
    if (waits) member_gone(p);
}

/* Rules H2, H6: the first one asks to be taken over, the second one follows the
 * votes that wait. */
void member_resumes(struct model *m, struct process *p, const struct trace *t)
{
    bool ready = p->has_proposal && p->said_ready;
    bool votes = false;
    for (uint32_t k = 0; k < VOTES; k++) {
        votes |= p->waits[k] && !p->answered[k] && !p->again[k];
        if (t->name_count != VOTES || t->names[k].seq < p->had[k])
            REFUSE(m, "H6: RESUME without the last answer");
    }
    bool first = p->master_lost && p->outlives && !p->resuming;
    bool second = !p->master_lost && p->speaks && !votes;
    if (p->state == GONE || !(first || second))
        REFUSE(m, "H2, H6: process %llu sends RESUME",
               (unsigned long long)p->id);
    if (t->number != p->id || t->epoch != p->epoch || t->digest != p->term ||
        t->round != (ready ? p->round : 0))
        REFUSE(m, "H6: RESUME says something else");
    sync_resumes(m, p, t);
    if (second) samples_anew(p); /* G4 */
    p->resuming |= first;
    if (first) /* another connection */
        p->up.first = p->up.count = p->down.first = p->down.count = 0;
    p->speaks = false;
}

/* Rules H1, H6, H7. */
void member_resumed(struct model *m, struct process *p, const struct trace *t)
{
    if (!p->master_lost || !p->resuming)
        REFUSE(m, "H1: RESUMED without RESUME");
    p->resuming = false;
    if (t->digest <= p->term) {
        member_gone(p);
        return;
    }
    p->term = t->digest;
    p->master_lost = false;
    p->speaks = true;
    p->installs_due = 1 + (t->flag != 0); /* H8: after that of H7 */
    p->call_last = 0;
    p->passing = p->verdicts;
    memset(p->again, 0, sizeof p->again);
}
