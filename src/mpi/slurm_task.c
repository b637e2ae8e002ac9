/* slurm_task.c - reads what other launchers say of a process in its
 * environment.
 */
#include "slurm.h"

#include <limits.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { PORT_FIRST = 20000, PORT_COUNT = 12000, STEPS = 64 };

/* The integer value of a variable, or -1. Slurm's numbers have 32 bits. */
static long number_of(const char *name)
{
    const char *text = getenv(name);
    char *end;
    if (!text || *text < '0' || *text > '9') return -1;
    long number = strtol(text, &end, 10);
    return *end == '\0' && number <= UINT32_MAX ? number : -1;
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

bool launcher_number(const char *name, int *value)
{
    long number = number_of(name);
    if (number < 0 || number > INT_MAX) return false;
    *value = (int)number;
    return true;
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
    task->alone = number_of("SLURM_STEP_NUM_NODES") == 1;
    snprintf(task->master, sizeof task->master, "%s:%ld",
             task->alone ? "127.0.0.1" : node, port);
    return true;
}
