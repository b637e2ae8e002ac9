/* state_file.c - see state_file.h. */
#include "state_file.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

enum { STATE_SIZE_MAX = 1 << 20 };

bool state_fault(char *line, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    vsnprintf(line, MESSAGE_SIZE, format, args);
    va_end(args);
    return false;
}

/* Lines that are not whole do not count: they are being written. */
static bool state_parse(struct state *s, char *text)
{
    *s = (struct state){.ended = false};
    char *end = strrchr(text, '\n');
    if (!end || strncmp(text, STATE_HEAD "\n", sizeof STATE_HEAD) != 0)
        return false;
    *end = '\0';
    for (char *at = text; at; at = strchr(at, '\n')) {
        at += *at == '\n';
        (void)sscanf(at, "process %d", &s->launcher);
        if (sscanf(at, "ended %d", &s->status) == 1) s->ended = true;
    }
    return s->launcher > 0 && s->status >= 0 && s->status < 256;
}

/* Ours, and nobody else can have written it. */
static bool is_trusted(int fd)
{
    struct stat info;
    return fstat(fd, &info) == 0 && S_ISREG(info.st_mode) &&
           info.st_uid == geteuid() && (info.st_mode & 022) == 0;
}

bool state_read(const char *file, struct state *s, char *line)
{
    int fd = open(file, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    if (fd < 0) return state_fault(line, "%s: %s", file, strerror(errno));
    bool trusted = is_trusted(fd);
    char *text = memory_get(STATE_SIZE_MAX, 1);
    bool good = trusted && pread(fd, text, STATE_SIZE_MAX - 1, 0) > 0 &&
                state_parse(s, text);
    s->runs = good && flock(fd, LOCK_SH | LOCK_NB) != 0;
    free(text);
    close(fd);
    if (good) return true;
    return state_fault(line,
                       trusted
                           ? "%s is not the state of a job"
                           : "%s is not a file that only this user can write",
                       file);
}

bool state_find(char *path, char *line)
{
    const char *folder = getenv("XDG_RUNTIME_DIR");
    DIR *dir = folder ? opendir(folder) : NULL;
    int count = 0;
    if (!dir)
        return state_fault(
            line, "--attach: --state FILE names the job, as there is no "
                  "XDG_RUNTIME_DIR to look for it");
    for (const struct dirent *e; (e = readdir(dir));) {
        size_t length = strlen(e->d_name);
        if (strncmp(e->d_name, STATE_PREFIX, sizeof STATE_PREFIX - 1) != 0 ||
            length < sizeof STATE_SUFFIX ||
            strcmp(e->d_name + length - (sizeof STATE_SUFFIX - 1),
                   STATE_SUFFIX) != 0)
            continue;
        if (count++ == 0)
            snprintf(path, PATH_MAX - 8, "%s/%s", folder, e->d_name);
    }
    closedir(dir);
    if (count == 1) return true;
    return state_fault(
        line,
        count ? "%d jobs have a state in %s: --state FILE names one"
              : "%d jobs have a state in %s",
        count, folder);
}
