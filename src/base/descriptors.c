/* descriptors.c - see descriptors.h. */
#include "descriptors.h"

#include <dirent.h>
#include <errno.h>
#include <sys/resource.h>

uint64_t descriptors_used(uint64_t *left)
{
    uint64_t used = 0;
    struct rlimit limit = {RLIM_INFINITY, RLIM_INFINITY};
    (void)getrlimit(RLIMIT_NOFILE, &limit);
    DIR *dir = opendir("/proc/self/fd");
    while (dir && readdir(dir)) used++;
    /* ".", "..", and the directory itself, which is closed again. */
    used = used > 3 ? used - 3 : 0;
    if (dir) (void)closedir(dir);
    if (!dir && errno == EMFILE) used = limit.rlim_cur;
    *left = limit.rlim_cur > used ? limit.rlim_cur - used : 0;
    return used;
}

uint64_t descriptors_afford(uint64_t need)
{
    uint64_t left, used = descriptors_used(&left);
    struct rlimit limit;
    if (left >= need || getrlimit(RLIMIT_NOFILE, &limit) != 0) return left;
    limit.rlim_cur = used + need;
    if (limit.rlim_cur > limit.rlim_max) limit.rlim_cur = limit.rlim_max;
    if (setrlimit(RLIMIT_NOFILE, &limit) == 0) (void)descriptors_used(&left);
    return left;
}
