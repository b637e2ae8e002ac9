/* single_copy.c - see single_copy.h. */
#include "op.h"

#include <string.h>

/* With two members on a host, their own queue is as fast. */
static bool is_worth_it(const struct engine *e)
{
    const struct links *n = &e->links;
    uint32_t here = 0;
    for (uint32_t i = 0; i < n->world; i++)
        here += n->members[i].host == n->host;
    return e->mesh && n->host % 2 == 0 && here > 2 &&
           here <= e->single_copy_world;
}

void single_copy_install(struct engine *e)
{
    e->single_copy_on = is_worth_it(e);
    for (uint32_t i = 0; i < SINGLE_COPY_SLOTS; i++)
        e->single_copy.users[i] = NULL;
    if (e->single_copy_on) region_offer(&e->links);
}
