/* session_resume.c - a member whose master has died, and that waits for the
 * next one (rules H2 to H8 of SUCCESSION.md). */
#include "session.h"

bool session_may_resume(const struct session *s)
{
    return s->state != SESSION_GONE && session_waits_for_master(s) &&
           !s->resuming;
}

/* Rule H2. True: it goes on, and a master may come. */
bool session_outlives_master(struct session *s)
{
    bool member = s->state == SESSION_MEMBER;
    bool ready = s->state == SESSION_JOINING && s->next && s->ready_sent;
    if (s->grace == 0 || !(member || ready)) return false;
    /* From the first loss on: a master that dies again gets no more time from
     * those who have waited, unless it had taken them. */
    if (s->resume_until == 0) s->resume_until = s->now + s->grace;
    s->resuming = false;
    partial_stop(&s->partial, PARTIAL_LOST); /* H8 */
    s->partial_again = true;
    return true;
}

static struct wire_msg what_is_known(const struct session *s)
{
    struct wire_msg msg = {.type = WIRE_RESUME, .epoch = s->view->epoch};
    if (s->next && s->ready_sent) msg.round = s->round;
    msg.resume.id = s->id;
    msg.resume.secret = s->secret;
    msg.resume.term = s->term;
    msg.resume.claimed = s->claimed;
    msg.resume.kept = s->kept.name;
    msg.resume.counts = s->kept.counts;
    msg.resume.sync_over = s->sync_over;
    msg.resume.sync_well = s->sync_well;
    for (int i = 0; i < VOTE_KIND_COUNT; i++) {
        msg.resume.answered[i] = s->answered[i];
        msg.resume.answer[i] = s->answered_flag[i];
    }
    return msg;
}

void session_resume(struct session *s)
{
    struct wire_msg msg = what_is_known(s);
    s->resuming = true;
    s->out.to_master(s->out.user, &msg);
}

/* Rule H6: the calls that wait, under their own numbers, the oldest first. */
static void speak(struct session *s)
{
    uint32_t last = 0;
    for (int n = 0; n < VOTE_KIND_COUNT; n++) {
        int next = -1;
        for (int i = 0; i < VOTE_KIND_COUNT; i++) {
            if (s->votes[i] != VOTE_WAITING || s->vote_calls[i] <= last)
                continue;
            if (next < 0 || s->vote_calls[i] < s->vote_calls[next]) next = i;
        }
        if (next < 0) break;
        last = s->vote_calls[next];
        struct wire_msg vote = {
            .type = WIRE_VOTE, .round = last, .epoch = s->view->epoch};
        vote.vote.kind = (uint8_t)next;
        session_send(s, &vote);
    }
    session_sync_speak(s);
    session_offer_again(s);
    s->samples.sent.used = false;  /* reported anew */
    s->samples.told.known = false; /* by a master that has no such report */
    if (s->leaving) session_send_leave(s);
    struct wire_msg all = what_is_known(s);
    session_send(s, &all);
}

void session_on_resumed(struct session *s, const struct wire_msg *msg)
{
    if (!s->resuming) return;
    s->resuming = false;
    uint64_t term = msg->resume.term;
    /* Rules H1, H13. */
    if (term <= s->term || term < s->claimed || msg->resume.id != s->id) {
        session_gone(s, "a coordinator of an earlier term has answered");
        return;
    }
    s->term = term;
    s->grace = msg->resume.grace_ms * PCCL_MS;
    s->master_lost = false;
    s->resume_until = 0;
    s->resume_install = msg->resume.installs;
    s->verdicts_again = s->verdicts;
    if (!s->resume_install) speak(s);
}

/* A partial all-reduce is for the members that live (A1), so its calls wait for
 * the view that has all who have resumed (H7). */
void session_resume_view(struct session *s)
{
    if (s->resume_install) {
        s->resume_install = false;
        speak(s);
    } else if (s->partial_again) {
        s->partial_again = false;
        partial_call_again(&s->partial);
    }
}
