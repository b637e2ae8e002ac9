/* grants.c - see grants.h. */
#include "grants.h"

#include "../base/append.h"

#include <inttypes.h>

/* The right that a message needs; 0: none, as its sender was admitted by an
 * earlier one. */
static uint8_t needed(enum wire_type type)
{
    switch (type) {
    case WIRE_HELLO:
    case WIRE_OFFERS_GET:
        return GRANT_JOIN;
    case WIRE_STATUS_GET:
        return GRANT_OBSERVE;
    case WIRE_RELAY:
        return GRANT_RELAY;
    default:
        return 0;
    }
}

bool grants_allow(const struct master *m, uint32_t link,
                  const struct wire_msg *msg, char *text, size_t size)
{
    const struct grant *g = &m->peers[link].grant;
    uint8_t right = needed(msg->type);
    text[0] = '\0';
    if (!m->tokens || right == 0) return true;
    if (!(g->rights & right)) {
        append(text, size, "the token of %s gives no right to %s",
               g->name[0] ? g->name : "nobody",
               right == GRANT_JOIN      ? "join: --issue --rights join"
               : right == GRANT_OBSERVE ? "observe: --issue --rights observe"
                                        : "be relayed");
        return false;
    }
    if (right != GRANT_JOIN || g->any_group) return true;
    uint32_t group =
        msg->type == WIRE_HELLO ? msg->hello.group : msg->offer.group;
    if (group == g->group) return true;
    append(text, size,
           "the token of %s is for peer group %" PRIu32
           ", and it asks for group %" PRIu32,
           g->name, g->group, group);
    return false;
}
