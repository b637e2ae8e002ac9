/* session_offer.c - a member offers its shared state to newcomers, and the
 * master knows it. Rule S10. */
#include "session.h"

#include "../../include/pccl.h"

static void tell(struct session *s)
{
    struct wire_msg msg = {.type = WIRE_OFFER, .epoch = s->view->epoch};
    if (s->state != SESSION_MEMBER) return;
    msg.offer.on = s->offer.list != NULL;
    msg.offer.revision = s->offer.terms.revision;
    msg.offer.guests = s->offer.guest_count;
    session_send(s, &msg);
}

/* Rule S10d: guests wait for everything that members do with each other. */
static bool is_busy(void *user)
{
    const struct session *s = user;
    return s->state != SESSION_MEMBER || s->sync != SYNC_IDLE ||
           links_is_frozen(s->links) || session_votes_topology(s) ||
           engine_has_work(s->engine);
}

static void on_changed(void *user)
{
    session_offer_again(user);
}

void session_offer_open(struct session *s)
{
    const struct offer_config config = {
        .links = s->links, .busy = is_busy, .changed = on_changed, .user = s};
    offer_init(&s->offer, &config);
}

int session_offer(struct session *s, const struct state_list *list,
                  const struct offer_terms *terms)
{
    if (s->state == SESSION_NEW || s->state == SESSION_JOINING)
        return pcclInvalidUsage;
    if (s->state == SESSION_GONE) return pcclMasterConnectionFailed;
    offer_begin(&s->offer, list, terms);
    tell(s);
    return pcclSuccess;
}

void session_offer_again(struct session *s)
{
    if (s->offer.list) tell(s);
}

void session_offer_end(struct session *s)
{
    if (!s->offer.list) return;
    offer_end(&s->offer);
    tell(s);
}
