/* slurm.c - starts the coordinator of the tasks of srun. */
#include "slurm.h"

#include <dlfcn.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

/* Path of pccl-master: beside this library, in a build tree or below an install
 * prefix. */
static void program_find(char *path, size_t size)
{
    static const char *const places[] = {"../bin", "../../bin", "../../../bin"};
    static const char here;
    char real[PATH_MAX];
    Dl_info info;
    if (dladdr(&here, &info) && realpath(info.dli_fname, real)) {
        char *slash = strrchr(real, '/');
        if (slash) *slash = '\0';
        for (size_t i = 0; i < sizeof places / sizeof *places; i++) {
            int used =
                snprintf(path, size, "%s/%s/pccl-master", real, places[i]);
            if (used > 0 && (size_t)used < size && access(path, X_OK) == 0)
                return;
        }
    }
    snprintf(path, size, "pccl-master"); /* found through PATH */
}

/* Only async-signal-safe calls between fork and exec. */
static _Noreturn void program_run(const char *path, const char *port,
                                  const char *quorum, int out)
{
    const char *argv[] = {"pccl-master", "--listen",     port, "--quorum",
                          quorum,        "--until-done", NULL};
    if (fork() != 0) _exit(0); /* detach: no process needs to wait for it */
    setsid();
    dup2(out, STDOUT_FILENO);
    close(STDIN_FILENO);
    close_range(STDERR_FILENO + 1, ~0u, 0);
    execvp(path, (char *const *)(void *)argv);
    _exit(127);
}

/* Waits until it prints its address, or fails. */
static bool word_await(int fd)
{
    char byte;
    ssize_t size;
    do {
        size = read(fd, &byte, 1);
    } while ((size == 1 && byte != '\n') || (size == -1 && errno == EINTR));
    return size == 1;
}

bool slurm_master_start(const struct slurm_task *task, char *message,
                        size_t size)
{
    char path[PATH_MAX], port[16], quorum[16];
    int ends[2];
    snprintf(port, sizeof port, "%s", strrchr(task->master, ':') + 1);
    snprintf(quorum, sizeof quorum, "%d", task->size);
    program_find(path, sizeof path);
    if (pipe(ends) != 0) {
        snprintf(message, size, "cannot open a pipe: %s", strerror(errno));
        return false;
    }
    pid_t pid = fork();
    if (pid == 0) program_run(path, port, quorum, ends[1]);
    close(ends[1]);
    bool good = pid > 0;
    if (good) {
        while (waitpid(pid, NULL, 0) == -1 && errno == EINTR) continue;
        good = word_await(ends[0]);
    }
    close(ends[0]);
    if (!good)
        snprintf(message, size,
                 "cannot start the coordinator %s on port %s for the tasks of "
                 "this step",
                 path, port);
    return good;
}
