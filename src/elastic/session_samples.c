/* session_samples.c - counting the samples of a step (rules G): what a member
 * reports, and when; what the coordinator has told. */
#include "session.h"

/* Reports of all members together that the coordinator takes in a second. */
enum { REPORTS_PER_SECOND = 10000 };

/* Whether the step of the own report has its samples, by what was told. Once it
 * has, it has (G3). */
static void judge(struct sample_count *c)
{
    bool over = c->own.step < c->told.step;
    bool there = c->told.reached && c->own.step == c->told.step;
    if (c->own.used && c->told.known && (over || there)) c->reached = true;
}

void sample_report(struct sample_count *c, const struct sample_report *report)
{
    if (!c->own.used || c->own.step != report->step)
        c->reached = c->hurried = false;
    c->own = *report;
    c->own.used = true;
    judge(c);
}

void sample_told(struct sample_count *c, const struct sample_sum *sum)
{
    c->told = *sum;
    c->told.known = true;
    judge(c);
}

/* The number of own samples of this step that may complete it. */
static uint64_t enough(const struct sample_count *c)
{
    uint64_t others = 0;
    if (c->told.known && c->told.step == c->own.step) others = c->told.count;
    if (c->sent.used && c->sent.step == c->own.step)
        others -= c->sent.count < others ? c->sent.count : others;
    return others < c->own.target ? c->own.target - others : 1;
}

static bool hurries(const struct sample_count *c)
{
    return c->own.target > 0 && !c->reached && !c->hurried &&
           c->own.count >= enough(c);
}

bool sample_due(const struct sample_count *c, pccl_ns now)
{
    const struct sample_report *a = &c->own, *b = &c->sent;
    bool news = !b->used || a->step != b->step || a->count != b->count ||
                a->target != b->target;
    if (!a->used || !news) return false;
    return !b->used || now - c->sent_at >= c->interval || hurries(c);
}

void sample_sent(struct sample_count *c, pccl_ns now)
{
    c->hurried |= c->sent.used && now - c->sent_at < c->interval;
    c->sent = c->own;
    c->sent_at = now;
}

struct sample_sum sample_look(const struct sample_count *c)
{
    struct sample_sum sum = c->told;
    if (!c->own.used) return sum;
    if (!sum.known || c->own.step > sum.step) /* others may be there, too */
        sum = (struct sample_sum){true,          c->own.step, c->own.count,
                                  c->own.target, 1,           false};
    sum.reached = c->reached;
    return sum;
}

/* ------------------------------------------------------------- the session */

/* Rule G5. */
static pccl_ns interval(const struct session *s)
{
    pccl_ns beat = PCCL_TIME_TO_PING(links_deadline(s->links));
    pccl_ns fair = s->view->size * (PCCL_S / REPORTS_PER_SECOND);
    if (fair < beat / 10) fair = beat / 10;
    return fair < beat ? fair : beat;
}

void session_samples_send(struct session *s)
{
    struct sample_count *c = &s->samples;
    struct wire_msg msg = {.type = WIRE_SAMPLES, .epoch = s->view->epoch};
    c->interval = interval(s);
    if (s->state != SESSION_MEMBER || s->leaving || s->master_lost ||
        !sample_due(c, s->now))
        return;
    msg.samples.step = c->own.step;
    msg.samples.count = c->own.count;
    msg.samples.target = c->own.target;
    sample_sent(c, s->now);
    session_send(s, &msg);
}

void session_report_samples(struct session *s,
                            const struct sample_report *report)
{
    sample_report(&s->samples, report);
    session_samples_send(s);
}

void session_on_samples(struct session *s, const struct wire_msg *msg)
{
    struct sample_sum sum = {.step = msg->samples.step,
                             .count = msg->samples.count,
                             .target = msg->samples.target,
                             .members = msg->samples.members,
                             .reached = msg->samples.reached};
    sample_told(&s->samples, &sum);
    s->out.changed(s->out.user);
}
