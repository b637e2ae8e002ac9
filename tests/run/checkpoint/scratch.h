/* scratch.h - a directory for the files of a test. */
#ifndef PCCL_TEST_SCRATCH_H
#define PCCL_TEST_SCRATCH_H

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static char scratch[256];

/* Setup and teardown of a group of tests. */
static inline int scratch_make(void **state)
{
    const char *base = getenv("TMPDIR");
    (void)state;
    (void)snprintf(scratch, sizeof scratch, "%.200s/pccl-save-XXXXXX",
                   base ? base : "/tmp");
    return mkdtemp(scratch) ? 0 : -1;
}

static inline void scratch_empty(void)
{
    DIR *dir = opendir(scratch);
    struct dirent *e;
    while (dir && (e = readdir(dir)) != NULL)
        if (e->d_name[0] != '.') (void)unlinkat(dirfd(dir), e->d_name, 0);
    if (dir) (void)closedir(dir);
}

static inline int scratch_remove(void **state)
{
    (void)state;
    scratch_empty();
    return rmdir(scratch);
}

/* Files whose names have this part; the path of one of them (512 bytes). */
static inline int scratch_count(const char *part, char *found)
{
    DIR *dir = opendir(scratch);
    int count = 0;
    struct dirent *e;
    while (dir && (e = readdir(dir)) != NULL) {
        if (e->d_name[0] == '.' || !strstr(e->d_name, part)) continue;
        count++;
        if (found) (void)snprintf(found, 512, "%s/%s", scratch, e->d_name);
    }
    if (dir) (void)closedir(dir);
    return count;
}

#endif
