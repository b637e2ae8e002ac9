/* slurm.h - processes that another launcher than pccl-master has started. Of
 * tasks of srun the first one starts the coordinator on its node; the others
 * find it there, at a port computed from the numbers of job and step. */
#ifndef PCCL_MPI_SLURM_H
#define PCCL_MPI_SLURM_H

#include <stdbool.h>
#include <stddef.h>

/* Whether another launcher has started this process as one of several, of whose
 * variables this library knows no more than that. Rank and size; the name of
 * the launcher. */
bool foreign_task_read(int *rank, int *size, const char **launcher);

/* The value of a variable that a launcher sets to a number. False: it is none,
 * and *value is as it was. */
bool launcher_number(const char *name, int *value);

/* Description of this task, from the environment. */
struct slurm_task {
    int rank, size;
    bool alone;       /* all tasks are on this node */
    char master[320]; /* HOST:PORT of the coordinator */
};

/* False: not a task of a step with several tasks. */
bool slurm_task_read(struct slurm_task *task);

/* In task 0: starts pccl-master, which outlives this process and ends with the
 * run. False: see message. */
bool slurm_master_start(const struct slurm_task *task, char *message,
                        size_t size);

#endif
