/* fail.c - members that have an operation fail for all (rule D10), while one
 * of them does not launch it before it is notified. */
#include "sim.h"

#include "../../../include/pccl.h"

static bool is_doomed(const struct sim *s, const struct sim_spec *spec)
{
    return s->options.fails && spec->ident != SIM_RESYNC &&
           spec->ident % 8 == 0 && !spec->absent && spec->size > 1 &&
           sim_mix(s->seed, 78, spec->ident, 0) % 3 == 0;
}

/* Members that lost a member launch the operation again, and have it fail
 * again: of two losses, they are notified of the older one first (rule P1). */
static bool insists(const struct sim *s, const struct sim_spec *spec)
{
    return !spec->scoped && !s->options.variant_skip &&
           !s->options.variant_resync;
}

/* The same in every launch of the operation as long as it is a member: two
 * members that launch it in different views must not both be the late one. */
static uint32_t late_one(const struct sim *s, const struct sim_spec *spec)
{
    uint32_t late = 0;
    uint64_t least = UINT64_MAX;
    for (uint32_t i = 0; i < spec->size; i++) {
        uint64_t lot = sim_mix(s->seed, 79, spec->ident, spec->ids[i]);
        if (lot < least) late = i, least = lot;
    }
    return late;
}

/* One member waits until it knows that the others wait no more: they lost a
 * member, cannot be reached, or had the operation fail. */
bool fail_withholds(const struct sim *s, const struct sim_proc *p,
                    const struct sim_op *o)
{
    const struct session *x = p->session;
    const struct sim_spec *spec = &o->spec;
    if (!is_doomed(s, spec) || spec->ids[late_one(s, spec)] != x->id)
        return false;
    if (x->master_lost || !x->view->ring || x->view->size == 1 ||
        sim_keeps_verdict(x, spec))
        return false;
    if (insists(s, spec)) return true;
    for (uint32_t i = 0; i < spec->size; i++) {
        if (view_find(x->view, spec->ids[i]) == x->view->size) return false;
    }
    return spec->scoped || x->notified.loss_count == 0;
}

/* The master has closed the epoch, and this peer does not know. */
static bool is_late(const struct sim *s, const struct sim_proc *p)
{
    const struct engine *e = p->session->engine;
    for (uint32_t i = 0; i < GROUPS_MAX && !e->links.frozen; i++) {
        const struct master_group *g = &s->master->groups[i];
        if (g->used && g->epoch == e->links.view->epoch)
            return g->phase != GROUP_OPEN;
    }
    return false;
}

/* Requested once, which must suffice; where no other member may help, by
 * one. */
bool fail_asks(struct sim *s, struct sim_proc *p)
{
    struct sim_program *g = &p->program;
    for (uint32_t i = 0; s->options.fails && i < g->count; i++) {
        struct sim_op *o = &g->ops[i];
        if (o->taken || o->asked || !is_doomed(s, &o->spec)) continue;
        uint32_t one = (late_one(s, &o->spec) + 1) % o->spec.size;
        if (!insists(s, &o->spec) && o->spec.ids[one] != p->session->id)
            continue;
        if (o->op->phase == PHASE_DONE) continue;
        /* At some moment while much happens, and before long when nothing else
         * does: the late one waits for it. */
        bool still = s->now - g->progress_at > SIM_DEADLINE / 2;
        if (!still && sim_pick(s, is_late(s, p) ? 2 : 16) > 0) continue;
        int result = session_fail(p->session, o->spec.tag);
        SIM_TRACE(s, "process %u (id %llu) has %llu fail: %d", p->uid,
                  (unsigned long long)p->session->id,
                  (unsigned long long)o->spec.ident, result);
        SIM_CHECK(s, result == pcclSuccess || result == pcclPendingAsyncOps,
                  "cannot fail: %d", result);
        o->asked = result == pcclSuccess;
        sim_coverage.fail_asked += o->asked;
        return true;
    }
    return false;
}

void fail_taken(const struct sim_op *o)
{
    if (o->result != pcclOperationFailed) return;
    sim_coverage.fail_met++;
    sim_coverage.fail_kept += o->cached;
}
