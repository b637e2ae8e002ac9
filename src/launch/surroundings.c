/* surroundings.c - see surroundings.h. */
#include "surroundings.h"

#include "launch_base.h"
#include "program_path.h"

#include <errno.h>
#include <limits.h>
#include <netdb.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

char *library_path_find(void)
{
    static const char *const places[] = {"lib/mpich-abi", "lib/pccl/mpich-abi"};
    char self[PATH_MAX];
    ssize_t length = readlink("/proc/self/exe", self, sizeof self - 1);
    if (length <= 0) return NULL;
    self[length] = '\0';
    char *slash = strrchr(self, '/');
    if (slash) *slash = '\0';
    for (size_t i = 0; i < ARRAY_COUNT(places); i++) {
        char *path = memory_print("%s/../%s", self, places[i]);
        char *real = realpath(path, NULL);
        free(path);
        if (real) return real;
    }
    return NULL;
}

void environment_read(struct options_environment *environment)
{
    static const char *const tasks[] = {"SLURM_TASKS_PER_NODE",
                                        "SLURM_JOB_CPUS_PER_NODE"};
    *environment =
        (struct options_environment){.deadline = getenv("PCCL_DEADLINE"),
                                     .timeout = getenv("MPIEXEC_TIMEOUT")};
    environment->batch = true;
    if (!getenv("SLURM_JOB_ID") && !getenv("SLURM_JOBID")) return;
    environment->nodes = getenv("SLURM_JOB_NODELIST");
    if (!environment->nodes) environment->nodes = getenv("SLURM_NODELIST");
    for (size_t i = 0; i < ARRAY_COUNT(tasks) && !environment->tasks; i++)
        environment->tasks = getenv(tasks[i]);
    char *srun = program_find("srun", NULL, getenv("PATH"));
    environment->srun = srun != NULL;
    free(srun);
}

static void set(const char *name, const char *value)
{
    if (setenv(name, value, 1) != 0) complain("%s: %s", name, strerror(errno));
}

void log_setup(const struct options *options)
{
    char folder[PATH_MAX] = "";
    const char *file = options->log_file;
    if (options->log_json) set("PCCL_LOG_FORMAT", "json");
    if (!file) return;
    char *path = NULL;
    if (*file != '/' && getcwd(folder, sizeof folder))
        path = memory_print("%s/%s", folder, file);
    set("PCCL_LOG_FILE", path ? path : file);
    free(path);
    const char *level = getenv("PCCL_LOG_LEVEL");
    if (!level || *level == '\0') set("PCCL_LOG_LEVEL", "INFO");
}

bool host_resolve(char host[HOST_SIZE], const char *option)
{
    struct addrinfo hints = {.ai_socktype = SOCK_STREAM}, *found = NULL;
    if (*host == '\0') return true;
    if (strcmp(host, "localhost") == 0) {
        snprintf(host, HOST_SIZE, "127.0.0.1");
        return true;
    }
    int code = getaddrinfo(host, NULL, &hints, &found);
    if (code == 0) {
        code = getnameinfo(found->ai_addr, found->ai_addrlen, host, HOST_SIZE,
                           NULL, 0, NI_NUMERICHOST);
        freeaddrinfo(found);
    }
    if (code != 0) complain("%s: %s: %s", option, host, gai_strerror(code));
    return code == 0;
}
