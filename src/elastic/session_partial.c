/* session_partial.c - partial all-reduces as the program sees them. Rules A. */
#include "session.h"

#include "../../include/pccl.h"

static void to_master(void *user, const struct wire_msg *msg)
{
    struct session *s = user;
    /* Rule H8: until it is asked for again, with what was called before. */
    if (s->partial_again && msg->partial.word == PARTIAL_CALL) return;
    session_send(s, msg);
}

static void on_changed(void *user)
{
    struct session *s = user;
    s->out.changed(s->out.user);
}

void session_partial_init(struct session *s)
{
    partial_init(&s->partial, s->links, to_master, on_changed, s);
}

int session_partial(struct session *s, const struct partial_request *r,
                    struct partial_call **out)
{
    if (s->state == SESSION_NEW || s->state == SESSION_JOINING)
        return pcclInvalidUsage;
    if (s->master_lost && !session_waits_for_master(s))
        session_gone(s, s->reason); /* rule M9 */
    if (s->state == SESSION_GONE) return pcclMasterConnectionFailed;
    if (partial_find(&s->partial, r->tag)) return pcclInvalidArgument;
    *out = partial_call(&s->partial, r);
    return *out ? pcclSuccess : pcclInternalError;
}

int session_partial_result(const struct session *s,
                           const struct partial_call *c, const char **text)
{
    *text = c->text;
    switch (c->why) {
    case PARTIAL_WELL:
        return pcclSuccess;
    case PARTIAL_GONE:
        *text = s->reason;
        return pcclMasterConnectionFailed;
    case PARTIAL_LOST:
        *text = "the coordinator was lost during the round, which others may "
                "have ended well: this member has missed it";
        return pcclInvalidUsage;
    case PARTIAL_DIFFERS:
        return pcclInvalidArgument;
    case PARTIAL_LATE:
    case PARTIAL_LIMIT:
        return pcclInvalidUsage;
    default:
        return pcclInternalError;
    }
}

void session_partial_take(struct session *s, struct partial_call *c)
{
    partial_take(&s->partial, c);
}
