/* session_partial.c - partial all-reduces as the program sees them. Rules A. */
#include "session.h"

#include "../../include/pccl.h"

static void to_master(void *user, const struct wire_msg *msg)
{
    session_send(user, msg);
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
    if (s->master_lost) session_gone(s, s->reason); /* rule M9 */
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
