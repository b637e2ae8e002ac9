/* progress_home.c - see progress_home.h. */
#include "progress_home.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* ------------------------------------------------------------------- pure */

int home_choose(const cpu_set_t *allowed, uint32_t before, uint32_t members)
{
    uint32_t processors = (uint32_t)CPU_COUNT(allowed);
    if (processors < 2 || members < processors) return -1;
    uint32_t skip = before % processors;
    int processor = 0;
    while (!CPU_ISSET((size_t)processor, allowed) || skip-- > 0) processor++;
    return processor;
}

uint32_t home_share(const cpu_set_t *own, const cpu_set_t *others)
{
    cpu_set_t both;
    uint32_t all = (uint32_t)CPU_COUNT(others);
    CPU_AND(&both, own, others);
    return all == 0 ? 1000 : 1000 * (uint32_t)CPU_COUNT(&both) / all;
}

bool home_due(struct home *p, pccl_ns now, int processor)
{
    if (now < p->next) return false;
    bool away = processor != p->processor;
    if (away && p->pause < HOME_PAUSE_MAX) p->pause *= 4;
    if (!away && p->pause > HOME_PAUSE_MIN) p->pause /= 2;
    p->next = now + p->pause;
    return away;
}

/* ----------------------------------------------------------------- system */

/* Somebody who binds a process has a reason. */
static bool is_unbound(cpu_set_t *allowed)
{
    return sched_getaffinity(0, sizeof *allowed, allowed) == 0 &&
           CPU_COUNT(allowed) == sysconf(_SC_NPROCESSORS_ONLN);
}

void home_begin(struct home *p, uint32_t before, uint32_t members)
{
    const char *text = getenv("PCCL_PLACE");
    bool off = text && strcmp(text, "0") == 0;
    cpu_set_t allowed;
    *p = (struct home){.processor = -1, .pause = HOME_PAUSE_MIN};
    if (!off && is_unbound(&allowed))
        p->processor = home_choose(&allowed, before, members);
}

void home_keep(struct home *p, pccl_ns now)
{
    if (p->processor < 0 || now < p->next) return;
    if (p->has_thread && !pthread_equal(p->thread, pthread_self())) return;
    p->thread = pthread_self();
    p->has_thread = true;
    cpu_set_t allowed, one;
    if (!home_due(p, now, sched_getcpu())) return;
    if (!is_unbound(&allowed)) {
        p->processor = -1;
        return;
    }
    CPU_ZERO(&one);
    CPU_SET((size_t)p->processor, &one);
    if (sched_setaffinity(0, sizeof one, &one) == 0)
        (void)sched_setaffinity(0, sizeof allowed, &allowed);
}
