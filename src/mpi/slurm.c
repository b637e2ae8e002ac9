/* slurm.c - reads Slurm's environment and starts the coordinator. */
#include "slurm.h"

#include <dlfcn.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { PORT_FIRST = 20000, PORT_COUNT = 12000, STEPS = 64 };

/* The integer value of a variable, or -1. */
static long number_of(const char *name)
{
    const char *text = getenv(name);
    char *end;
    if (!text || *text < '0' || *text > '9') return -1;
    long number = strtol(text, &end, 10);
    return *end == '\0' ? number : -1;
}

bool foreign_task_read(int *rank, int *size, const char **launcher)
{
    static const struct {
        const char *rank, *size, *launcher;
    } known[] = {
        {"SLURM_PROCID", "SLURM_STEP_NUM_TASKS", "srun"},
        {"OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "Open MPI's mpirun"},
        {"PMI_RANK", "PMI_SIZE", "another mpiexec"},
        {"FLUX_TASK_RANK", "FLUX_JOB_SIZE", "flux run"},
        {"PALS_RANKID", "PALS_NRANKS", "PALS"}};
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        long at = number_of(known[i].rank), of = number_of(known[i].size);
        if (at < 0 || of < 2 || of > INT_MAX || at >= of) continue;
        *rank = (int)at;
        *size = (int)of;
        *launcher = known[i].launcher;
        return true;
    }
    return false;
}

/* The first node of "n[01-03,7],m1" is n01. */
static void first_node(const char *list, char *name, size_t size)
{
    size_t prefix = strcspn(list, "[,");
    if (list[prefix] != '[') {
        snprintf(name, size, "%.*s", (int)prefix, list);
        return;
    }
    const char *number = list + prefix + 1;
    const char *close = strchr(number, ']');
    size_t suffix = close ? strcspn(close + 1, ",") : 0;
    snprintf(name, size, "%.*s%.*s%.*s", (int)prefix, list,
             (int)strcspn(number, "-,]"), number, (int)suffix,
             close ? close + 1 : "");
}

bool slurm_task_read(struct slurm_task *task)
{
    char node[256];
    const char *nodes = getenv("SLURM_STEP_NODELIST");
    long job = number_of("SLURM_JOB_ID"), step = number_of("SLURM_STEP_ID");
    long rank = number_of("SLURM_PROCID");
    long size = number_of("SLURM_STEP_NUM_TASKS");
    if (!nodes || job < 0 || step < 0 || rank < 0 || size < 2 || rank >= size ||
        size > INT_MAX)
        return false;
    first_node(nodes, node, sizeof node);
    long port = PORT_FIRST + (job % PORT_COUNT * STEPS + step) % PORT_COUNT;
    task->rank = (int)rank;
    task->size = (int)size;
    /* a single node needs no name resolution */
    bool alone = number_of("SLURM_STEP_NUM_NODES") == 1;
    snprintf(task->master, sizeof task->master, "%s:%ld",
             alone ? "127.0.0.1" : node, port);
    return true;
}

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
