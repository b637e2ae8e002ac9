/* step_samples.c - see step_samples.h. Rule numbers: see src/README.md. */
#include "step_samples.h"

#include "../master.h"

/* A rate is that of so long a time, at least; and it is forgotten when nothing
 * has come for so long. */
#define LOOK_AFTER PCCL_S
#define LOOK_VALID (10 * PCCL_S)

/* Its samples count: those of a member that leaves go with it. */
static bool counts(const struct master_peer *p, uint32_t group)
{
    return p->state == PEER_MEMBER && !p->leaving && p->group == group &&
           p->samples.used;
}

/* Rule G3: the step of each member but for those in the highest one is over, as
 * they have been told; and this one, if it is so for anybody in it. */
static void mark(struct master *m, uint32_t group)
{
    struct samples_of_group *g = &m->groups[group].samples;
    for (uint32_t i = 0; i < m->link_end; i++) {
        struct master_peer *p = &m->peers[i];
        if (counts(p, group) && (g->reached || p->samples.step < g->step))
            p->samples.over = true;
    }
}

/* Rule G3. */
static void judge(struct master *m, uint32_t group)
{
    struct samples_of_group *g = &m->groups[group].samples;
    if (g->reached || g->target == 0 || g->sum < g->target) return;
    g->reached = g->urgent = true;
    mark(m, group);
}

/* Rule G2: from the reports of all members. */
static void add_all(struct master *m, uint32_t group)
{
    struct samples_of_group *g = &m->groups[group].samples;
    bool there = g->reached || g->members == 0;
    uint64_t before = g->step;
    g->step = g->sum = g->target = 0;
    g->members = 0;
    g->reached = false;
    for (uint32_t i = 0; i < m->link_end; i++) {
        const struct master_peer *p = &m->peers[i];
        if (!counts(p, group) || p->samples.step < g->step) continue;
        if (p->samples.step > g->step) {
            g->sum = g->target = g->members = 0;
            g->reached = false;
        }
        g->step = p->samples.step;
        g->sum += p->samples.count;
        g->members++;
        g->reached |= p->samples.over;
        if (p->samples.target > g->target) g->target = p->samples.target;
    }
    /* Rule G3: who is still in that step learns at once that it is over. */
    if (g->step > before && !there) g->urgent = true;
    mark(m, group);
    judge(m, group);
}

/* One more report for the step of the group. */
static void add_one(struct master *m, uint32_t group,
                    const struct samples_of_peer *old,
                    struct samples_of_peer *p)
{
    struct samples_of_group *g = &m->groups[group].samples;
    bool again = old->used && old->step == p->step;
    g->sum += p->count;
    if (again) g->sum -= old->count;
    g->members += !again;
    if (p->target > g->target) g->target = p->target;
    p->over |= g->reached;
    judge(m, group);
}

/* How fast the member is: what it has added since its last report. */
static void account(struct samples_of_peer *p,
                    const struct samples_of_peer *old, pccl_ns now)
{
    bool again = old->used && old->step == p->step;
    uint64_t more = p->count;
    if (again) more = p->count > old->count ? p->count - old->count : 0;
    p->total += more > UINT64_MAX - p->total ? UINT64_MAX - p->total : more;
    if (!old->used) {
        p->looked_at = now;
        p->looked = p->total;
    }
    pccl_ns took = now - p->looked_at;
    if (took < LOOK_AFTER) return;
    p->rate =
        (uint64_t)((double)(p->total - p->looked) * PCCL_S / (double)took);
    p->looked = p->total;
    p->looked_at = now;
}

uint64_t samples_rate(const struct master *m, uint32_t link)
{
    const struct samples_of_peer *p = &m->peers[link].samples;
    return m->now - p->looked_at < LOOK_VALID ? p->rate : 0;
}

/* Rule G2: the members have gone back, and make their steps again. */
static void forget(struct master *m, uint32_t group)
{
    for (uint32_t i = 0; i < m->link_end; i++)
        if (m->peers[i].group == group) m->peers[i].samples.over = false;
}

void samples_take(struct master *m, uint32_t link, const struct wire_msg *msg)
{
    uint32_t group = m->peers[link].group;
    struct samples_of_group *g = &m->groups[group].samples;
    struct samples_of_peer *p = &m->peers[link].samples;
    const struct samples_of_peer old = *p;
    if (msg->samples.count > WIRE_SAMPLES_MAX) {
        master_drop(m, link, "reported more samples than can be counted");
        return;
    }
    p->used = true;
    p->step = msg->samples.step;
    p->count = msg->samples.count;
    p->target = msg->samples.target;
    account(p, &old, m->now);
    if (!old.used || old.step != p->step) p->over = false;
    if (m->peers[link].leaving) return;
    bool counted = old.used && g->members > 0 && old.step == g->step;
    if (!counted && g->members > 0 && p->step < g->step) {
        p->over = true;
        return;
    }
    if (counted && g->members == 1 && p->step < g->step) forget(m, group);
    bool lowered = counted && p->target < old.target;
    if (g->members > 0 && p->step == g->step && !lowered)
        add_one(m, group, &old, p);
    else
        add_all(m, group);
    g->used = g->changed = true;
    samples_settle(m, group);
}

/* Rule G4. */
static void tell(struct master *m, uint32_t group)
{
    struct samples_of_group *g = &m->groups[group].samples;
    struct wire_msg msg = {.type = WIRE_SAMPLES};
    msg.samples.step = g->step;
    msg.samples.count = g->sum;
    msg.samples.target = g->target;
    msg.samples.members = g->members;
    msg.samples.reached = g->reached;
    g->changed = g->urgent = false;
    uint32_t count = master_live_links(m, group);
    if (count > 0) m->out.send(m->out.user, m->links, count, &msg);
}

void samples_settle(struct master *m, uint32_t group)
{
    struct samples_of_group *g = &m->groups[group].samples;
    bool stale = g->stale;
    g->stale = false;
    if (!g->used) return;
    if (stale) {
        add_all(m, group);
        g->changed = g->urgent = true;
    }
    if (g->urgent) tell(m, group);
}

void samples_tick(struct master *m)
{
    for (uint32_t i = 0; i < m->group_count; i++) {
        struct samples_of_group *g = &m->groups[m->group_list[i]].samples;
        g->urgent |= g->changed;
        samples_settle(m, m->group_list[i]);
    }
}
