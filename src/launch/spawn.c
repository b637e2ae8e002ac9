/* spawn.c - fork and exec of a child process. */
#include "spawn.h"

#include "launch_base.h"
#include "descriptor.h"
#include "guard.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

enum stage { STAGE_FORK, STAGE_FILES, STAGE_DIRECTORY, STAGE_EXEC };

static const char *const stage_text[] = {
    "cannot start a process for", "cannot connect the files of",
    "cannot enter the directory", "cannot execute"};

struct report {
    enum stage stage;
    int error;
};

/* Async-signal-safe until exec: no allocation, no stdio. */
static enum stage child_run(const struct spawn_request *r, pid_t parent,
                            char *const *shell_argv)
{
    setpgid(0, 0);
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent)
        _exit(EXIT_FAILURE); /* the parent died before the prctl */
    guard_add(r->guard_fd, getpid());
    if (dup2(r->in, 0) < 0 || dup2(r->out, 1) < 0 || dup2(r->err, 2) < 0)
        return STAGE_FILES;
    setrlimit(RLIMIT_NOFILE, &r->files);
    if (r->cpus) sched_setaffinity(0, sizeof *r->cpus, r->cpus);
    if (r->directory && chdir(r->directory) != 0) return STAGE_DIRECTORY;
    struct sigaction action = {.sa_handler = SIG_DFL};
    for (int number = 1; number < NSIG; number++)
        if (number != SIGHUP || !r->ignore_hangup)
            sigaction(number, &action,
                      NULL); /* fails for KILL and STOP, which is fine */
    sigset_t none;
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    execve(r->file, r->argv, r->env);
    if (errno ==
        ENOEXEC) { /* a script without #!: run it by a shell, like execvp */
        execve(shell_argv[0], shell_argv, r->env);
    }
    return STAGE_EXEC;
}

/* Waits until the child has executed its program or reported a failure. */
static bool report_read(int fd, struct report *report)
{
    ssize_t size;
    do {
        size = read(fd, report, sizeof *report);
    } while (size == -1 && errno == EINTR);
    return size == (ssize_t)sizeof *report;
}

static pid_t child_fork(const struct spawn_request *r, int report_fd,
                        char *const *shell_argv)
{
    sigset_t all, old;
    pid_t parent = getpid();
    sigfillset(&all);
    sigprocmask(SIG_SETMASK, &all,
                &old); /* none of our handlers may run in the child */
    pid_t pid = fork();
    if (pid == 0) {
        struct report report = {.stage = child_run(r, parent, shell_argv)};
        report.error = errno;
        ssize_t ignored = write(report_fd, &report, sizeof report);
        (void)ignored;
        _exit(EXIT_NOT_FOUND);
    }
    int error = errno;
    sigprocmask(SIG_SETMASK, &old, NULL);
    errno = error;
    return pid;
}

pid_t spawn_process(const struct spawn_request *request,
                    struct spawn_failure *failure)
{
    int ends[2];
    struct report report = {.stage = STAGE_FORK};
    char **shell_argv = memory_get((size_t)request->argc + 2, sizeof(char *));
    shell_argv[0] = memory_text("/bin/sh");
    shell_argv[1] = memory_text(request->file);
    for (int i = 1; i < request->argc; i++)
        shell_argv[i + 1] = request->argv[i];
    pid_t pid = -1;
    if (descriptor_pipe(ends) == 0) {
        pid = child_fork(request, ends[1], shell_argv);
        report.error = errno;
        close(ends[1]);
        if (pid > 0) {
            setpgid(
                pid,
                pid); /* the child does the same; the order does not matter */
            if (report_read(ends[0], &report)) {
                while (waitpid(pid, NULL, 0) == -1 && errno == EINTR) continue;
                guard_remove(request->guard_fd, pid);
                pid = -1;
            }
        }
        close(ends[0]);
    } else {
        report.error = errno;
    }
    free(shell_argv[0]);
    free(shell_argv[1]);
    free(shell_argv);
    failure->what = stage_text[report.stage];
    failure->is_directory = report.stage == STAGE_DIRECTORY;
    failure->error = report.error;
    return pid;
}
