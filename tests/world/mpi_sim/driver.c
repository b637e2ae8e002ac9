/* driver.c - between pccl's entry points (src/peer/api*.c) and the simulated
 * network: what comm.c, comm_io.c and progress.c are for sockets. */
#include "threads.h"

#include "world.h"

#include "../../../src/peer/api.h"
#include "../../../src/peer/comm_device.h"

#include <stdarg.h>
#include <stdio.h>

pccl_ns comm_now(void)
{
    return universe.now;
}

void comm_set_error(pcclComm_t *c, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    vsnprintf(c->error, sizeof c->error, format, args);
    va_end(args);
    c->explained = true;
}

void comm_lock(pcclComm_t *c)
{
    (void)sim_lock(&c->lock);
}

void comm_yield_lock(pcclComm_t *c)
{
    (void)c;
}

/* Others run, and have the lock. */
static void wait(pcclComm_t *c)
{
    (void)sim_unlock(&c->lock);
    fiber_yield();
    (void)sim_lock(&c->lock);
}

int comm_open(pcclComm_t *c)
{
    c->session = fiber_rank()->proc->session;
    while (c->session->state == SESSION_JOINING) wait(c);
    if (c->session->state == SESSION_MEMBER) return pcclSuccess;
    c->session = NULL;
    return pcclMasterConnectionFailed;
}

void comm_close(pcclComm_t *c)
{
    struct session *s = c->session;
    if (!s) return;
    pccl_ns until = universe.now + SIM_DEADLINE;
    while (s->state == SESSION_MEMBER && universe.now < until &&
           message_flush(&s->messages))
        wait(c);
    if (s->state == SESSION_MEMBER) session_leave(s);
    until = universe.now + SIM_DEADLINE + PCCL_S;
    while (s->state != SESSION_GONE && universe.now < until) wait(c);
    c->session = NULL; /* the simulator's */
}

void progress_tested(pcclComm_t *c)
{
    wait(c);
}

void progress_wait(pcclComm_t *c, const struct op *op, pccl_ns until)
{
    while (!op_is_done(op) && universe.now < until) wait(c);
}

void progress_wait_until(pcclComm_t *c, const struct op *op, pccl_ns until)
{
    do wait(c);
    while (!op_is_done(op) && universe.now < until);
}

void progress_wait_vote(pcclComm_t *c, enum vote_kind kind, pccl_ns until)
{
    const struct session *s = c->session;
    while (s->votes[kind] != VOTE_ANSWERED && s->state == SESSION_MEMBER &&
           comm_interrupted(c, until) == 0)
        wait(c);
}

struct message_event *progress_take_event(pcclComm_t *c, pccl_ns until)
{
    struct messages *m = &c->session->messages;
    message_use(m);
    struct message_event *event = message_take(m);
    while (!event && universe.now < until &&
           c->session->state != SESSION_GONE) {
        wait(c);
        event = message_take(m);
    }
    return event;
}

/* ------------------------------------------------ in the place of program.c
 */

static void check_status(const struct rank *r)
{
    SIM_CHECK(&universe, r->status == 0, "rank %d ends with status %d",
              r->number, r->status);
}

static bool dies(struct sim *s)
{
    uint32_t alive = 0, dead = 0;
    for (int i = 0; i < world_options.ranks; i++) {
        alive += ranks[i].proc != NULL;
        dead += ranks[i].dead;
    }
    return world_options.death > 0 && alive > 1 &&
           dead < world_options.deaths_max &&
           sim_pick(s, world_options.death) == 0;
}

static void end(struct sim *s, struct rank *r, bool crash)
{
    struct sim_proc *p = r->proc;
    r->proc = NULL;
    r->dead = crash;
    r->over = !crash;
    fibers_forget(r);
    if (crash) sim_lower_quorum(s);
    sim_proc_end(s, p, crash);
}

bool program_turn(struct sim *s, struct sim_proc *p)
{
    struct rank *r = ranks;
    while (r < ranks + world_options.ranks && r->proc != p) r++;
    SIM_CHECK(s, r < ranks + world_options.ranks, "a process is no rank");
    if (!r->fibers[0]) (void)fiber_new(r, ulfm_program, r);
    if (dies(s)) {
        events->deaths++;
        SIM_TRACE(s, "rank %d dies", r->number);
        end(s, r, true);
        return true;
    }
    bool ran = fiber_turn(r);
    if (!fiber_is_over(r->fibers[0])) return ran;
    check_status(r);
    events->survivors++;
    end(s, r, false);
    return true;
}
