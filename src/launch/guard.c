/* guard.c - the guard process: kills process groups after the launcher's
 * death. */
#include "guard.h"

#include "../base/lacking.h"
#include "launch_base.h"
#include "descriptor.h"

#include <errno.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

static void record_apply(pid_t *groups, size_t *count, pid_t record)
{
    pid_t group = record < 0 ? -record : record;
    size_t i = 0;
    while (i < *count && groups[i] != group) i++;
    if (record < 0 && i < *count) groups[i] = groups[--*count];
    if (record > 0 && i == *count && i < RANKS_MAX) groups[(*count)++] = group;
}

static void guard_run(int fd)
{
    static pid_t groups[RANKS_MAX];
    size_t count = 0;
    pid_t record;
    for (;;) {
        /* a record is smaller than PIPE_BUF, so it is never split */
        ssize_t size = read(fd, &record, sizeof record);
        if (size == -1 && errno == EINTR) continue;
        if (size != (ssize_t)sizeof record) break;
        record_apply(groups, &count, record);
    }
    for (size_t i = 0; i < count; i++) kill(-groups[i], SIGKILL);
}

/* Ignores signals meant for the launcher (they are already blocked) and closes
 * its files. */
static void guard_detach(int *fd)
{
    setpgid(0, 0);
    prctl(PR_SET_NAME, "pccl-guard");
    dup2(*fd, 3);
    *fd = 3;
    close_range(4, ~0u, 0);
    int null = descriptor_null();
    for (int i = 0; i < 3 && null >= 0; i++) dup2(null, i);
}

bool guard_start(struct guard *guard)
{
    int ends[2] = {-1, -1};
    sigset_t all, old;
    sigfillset(&all);
    sigprocmask(SIG_SETMASK, &all, &old);
    guard->pid = descriptor_pipe(ends) == 0 ? fork() : -1;
    if (guard->pid == 0) {
        close(ends[1]);
        guard_detach(&ends[0]);
        guard_run(ends[0]);
        _exit(0);
    }
    sigprocmask(SIG_SETMASK, &old, NULL);
    if (ends[0] >= 0) close(ends[0]);
    guard->fd = ends[1];
    if (guard->pid > 0) return true;
    if (ends[1] >= 0) close(ends[1]);
    char text[MESSAGE_SIZE];
    lacking_text(text, sizeof text, "the guard of its ranks", LACKING_PROCESS);
    complain("%s", text);
    return false;
}

static void record_write(int fd, pid_t record)
{
    ssize_t ignored; /* losing the guard is not an error */
    do {
        ignored = write(fd, &record, sizeof record);
    } while (ignored == -1 && errno == EINTR);
}

void guard_add(int fd, pid_t group)
{
    record_write(fd, group);
}

void guard_remove(int fd, pid_t group)
{
    record_write(fd, -group);
}

void guard_stop(struct guard *guard)
{
    close(guard->fd);
    kill(guard->pid, SIGCONT); /* whoever stopped it, it has to end */
    while (waitpid(guard->pid, NULL, 0) == -1 && errno == EINTR) continue;
}
