/* model_close.c - the reasons for which the master may close a connection. */
#include "model_state.h"

/* It waits for the view without it, if there is to be one. */
static bool stays(const struct model *m, const struct process *p,
                  const struct group *g)
{
    for (uint32_t i = 0; i < m->process_end; i++)
        if (is_live(m->processes[i], g) && !m->processes[i]->leaving)
            return find_id(&g->view, p->id) < g->view.count;
    return false;
}

void master_closes(struct model *m, struct process *p, uint32_t reason)
{
    const struct group *g = group_of(m, p->group);
    int64_t quiet = m->now - p->heard;
    bool wrong = true; /* OTHER_REASON */
    if (p->asks) {
        heirs_refused(m, p);
        return;
    }
    switch ((enum trace_reason)reason) {
    case SILENT: /* M8; M1 for a stranger, whom nobody has heard */
        wrong = p->standing != NOBODY && quiet < m->deadline * 3 / 4;
        break;
    case NO_ANSWER: /* R8 */
        wrong = g->phase == OPEN || m->now - p->asked_at < m->deadline;
        break;
    case LEFT: /* M7 */
        wrong = !p->leaving || (p->standing == MEMBER && stays(m, p, g));
        break;
    case PAIRS: /* R4 */
        wrong = !g->pairs;
        break;
    case TOO_OLD: /* S10f */
        wrong = p->standing != REGISTERED || p->proposed;
        break;
    case NO_PART: /* A10 */
        wrong = p->standing != MEMBER || !average_evicts(m, p);
        p->absent = false;
        break;
    case OTHER_REASON:
        break;
    }
    if (wrong)
        REFUSE(m, "process %llu is evicted for reason %u",
               (unsigned long long)p->id, reason);
    master_loses(m, p);
}
