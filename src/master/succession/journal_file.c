/* journal_file.c - a journal at a path, for one coordinator at a time. */
#include "journal_form.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/random.h>
#include <unistd.h>

/* The journal gives its name to new files, so another file is locked. The lock
 * ends with the process; that file stays. Returns it, or -1. */
static int lock_open(const char *path, char *error)
{
    char name[PATH_MAX + 8];
    (void)snprintf(name, sizeof name, "%s.lock", path);
    int fd = open(name, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (fd >= 0 && flock(fd, LOCK_EX | LOCK_NB) == 0) return fd;
    if (fd >= 0 && errno == EWOULDBLOCK)
        (void)snprintf(error, JOURNAL_ERROR_SIZE,
                       "%.200s is in use by another coordinator", path);
    else
        (void)snprintf(error, JOURNAL_ERROR_SIZE, "%.200s cannot be locked: %s",
                       name, strerror(errno));
    if (fd >= 0) (void)close(fd);
    return -1;
}

static struct journal *open_in(const char *folder, const char *name,
                               struct journal_found *found, char *error)
{
    struct file_layer files;
    uint64_t salt;
    if (getrandom(&salt, sizeof salt, 0) != (ssize_t)sizeof salt) {
        (void)snprintf(error, JOURNAL_ERROR_SIZE, "getrandom: %s",
                       strerror(errno));
        return NULL;
    }
    int code = file_layer_open_private(&files, folder);
    if (code == 0) return journal_open(&files, name, salt, found, error);
    (void)snprintf(error, JOURNAL_ERROR_SIZE, "%.200s cannot be opened: %s",
                   folder, strerror(code));
    return NULL;
}

struct journal *journal_open_path(const char *path, struct journal_found *found,
                                  char error[static JOURNAL_ERROR_SIZE])
{
    char folder[PATH_MAX];
    const char *slash = strrchr(path, '/');
    const char *name = slash ? slash + 1 : path;
    size_t length = slash ? (size_t)(slash - path) : 0;
    if (*name == '\0' || length >= sizeof folder || strlen(path) >= PATH_MAX) {
        (void)snprintf(error, JOURNAL_ERROR_SIZE,
                       "'%.200s' is no name of a file", path);
        return NULL;
    }
    memcpy(folder, path, length);
    folder[length] = '\0';
    if (length == 0) (void)snprintf(folder, 2, slash ? "/" : ".");
    int lock = lock_open(path, error);
    if (lock < 0) return NULL;
    struct journal *j = open_in(folder, name, found, error);
    if (j)
        journal_keep_lock(j, lock);
    else
        (void)close(lock);
    return j;
}
