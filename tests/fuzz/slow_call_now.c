/* slow_call_now.c - calls of a disk that is never slow, at once and without a
 * thread: for fuzzers that run all threads themselves. */
#include "../../src/base/slow_call.h"

bool slow_call_ask(struct slow_call *s, int patience)
{
    (void)patience;
    s->call(s->user);
    return true;
}

bool slow_call_is_done(struct slow_call *s)
{
    (void)s;
    return true;
}

bool slow_call_end(struct slow_call *s, int patience)
{
    (void)s;
    (void)patience;
    return true;
}

void slow_call_forked(struct slow_call *s)
{
    (void)s;
}
