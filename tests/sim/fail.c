/* fail.c - members that have an operation fail for all (rule D10), while one
 * of them does not launch it before it is told so. */
#include "sim.h"

#include "../../include/pccl.h"

static bool is_doomed(const struct sim *s, const struct sim_spec *spec)
{
    return s->options.fails && spec->ident != SIM_RESYNC &&
           spec->ident % 8 == 0 && !spec->absent && spec->size > 1 &&
           sim_mix(s->seed, 78, spec->ident, 0) % 3 == 0;
}

/* One member waits until it knows that the others wait no more: they lost a
 * member, cannot be reached, or had the operation fail. */
bool fail_withholds(const struct sim *s, const struct sim_proc *p,
                    const struct sim_op *o)
{
    const struct session *x = p->session;
    if (!is_doomed(s, &o->spec)) return false;
    uint64_t h = sim_mix(s->seed, 79, o->spec.ident, 0);
    if (o->spec.ids[h % o->spec.size] != x->id) return false;
    for (uint32_t i = 0; i < o->spec.size; i++) {
        if (view_find(x->view, o->spec.ids[i]) == x->view->size) return false;
    }
    return x->view->ring && x->told.loss_count == 0 && !x->master_lost &&
           !session_keeps_verdict(x, o->spec.tag);
}

/* Asked for once, which must do. */
bool fail_asks(struct sim *s, struct sim_proc *p)
{
    struct sim_program *g = &p->program;
    for (uint32_t i = 0; s->options.fails && i < g->count; i++) {
        struct sim_op *o = &g->ops[i];
        if (o->taken || o->asked || !is_doomed(s, &o->spec)) continue;
        if (o->op->phase == PHASE_DONE || sim_pick(s, 16) > 0) continue;
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
    sim_coverage.fail_kept += o->kept;
}
