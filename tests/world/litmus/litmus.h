/* litmus.h - the litmus tests; README.md has the table of the protocols. */
#ifndef LITMUS_LITMUS_H
#define LITMUS_LITMUS_H

#include "orders.h"

/* litmus_channel.c */
extern const struct litmus litmus_bytes, litmus_reuse, litmus_base;
extern const struct litmus litmus_data, litmus_room, litmus_twice,
    litmus_exchange, litmus_posts, litmus_posts_first, litmus_over,
    litmus_post_bell;
/* litmus_process.c */
extern const struct litmus litmus_slot, litmus_loop, litmus_wake,
    litmus_published, litmus_list, litmus_last;

#endif
