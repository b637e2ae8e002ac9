/* lacking.c - see lacking.h. */
#include "lacking.h"

#include "descriptors.h"

#include <stdint.h>
#include <stdio.h>
#include <sys/resource.h>

enum { FEW = 3 /* descriptors: what one step opens */ };

/* Of a process without that limit 0. */
static unsigned long long limit_of(int resource)
{
    struct rlimit limit;
    if (getrlimit((__rlimit_resource_t)resource, &limit) != 0) return 0;
    return limit.rlim_cur == RLIM_INFINITY ? 0 : limit.rlim_cur;
}

void lacking_text(char *text, size_t size, const char *what,
                  enum lacking lacking)
{
    static const struct {
        int resource;
        const char *option;
    } memory[] = {{RLIMIT_AS, "-v"}, {RLIMIT_DATA, "-d"}};
    uint64_t left;
    uint64_t used = descriptors_used(&left);
    if (left < FEW) {
        (void)snprintf(text, size,
                       "no descriptors for %s (ulimit -n, of which "
                       "%llu are open)",
                       what, (unsigned long long)used);
        return;
    }
    for (size_t i = 0; i < sizeof memory / sizeof *memory; i++) {
        unsigned long long limit = limit_of(memory[i].resource);
        if (limit == 0 || lacking == LACKING_PROCESS) continue;
        (void)snprintf(text, size,
                       "no memory for %s (ulimit %s, which is %llu KiB here)",
                       what, memory[i].option, limit / 1024);
        return;
    }
    unsigned long long processes = limit_of(RLIMIT_NPROC);
    if (lacking != LACKING_MEMORY && processes != 0)
        (void)snprintf(text, size,
                       "no %s for %s (ulimit -u, which is %llu here, or "
                       "the control group)",
                       lacking == LACKING_THREAD ? "thread" : "process", what,
                       processes);
    else if (lacking == LACKING_PROCESS)
        (void)snprintf(text, size, "no process for %s (the control group)",
                       what);
    else
        (void)snprintf(text, size, "out of memory or descriptors");
}
