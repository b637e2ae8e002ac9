/* slurm.h - the coordinator of ranks that srun started without pccl-master.
 * Task 0 of the step starts it on its node; the others find it there, at a port
 * computed from the numbers of job and step. */
#ifndef PCCL_MPI_SLURM_H
#define PCCL_MPI_SLURM_H

#include <stdbool.h>
#include <stddef.h>

/* Description of this task, from the environment. */
struct slurm_task {
    int rank, size;
    char master[320]; /* HOST:PORT of the coordinator */
};

/* False: not a task of a step with several tasks. */
bool slurm_task_read(struct slurm_task *task);

/* In task 0: starts pccl-master, which outlives this process and ends with the
 * run. False: see message. */
bool slurm_master_start(const struct slurm_task *task, char *message,
                        size_t size);

#endif
