/* slurm.h - ranks that srun started without pccl-master: which coordinator do
 * they meet at. Task 0 of the step starts one on its node; the others find it
 * there, at a port that follows from the numbers of job and step. */
#ifndef PCCL_MPI_SLURM_H
#define PCCL_MPI_SLURM_H

#include <stdbool.h>
#include <stddef.h>

/* What the environment says of this task. */
struct slurm_task {
    int rank, size;
    char master[320]; /* HOST:PORT of the coordinator */
};

/* False when this is no task of a step with several ones. */
bool slurm_task_read(struct slurm_task *task);

/* Task 0: starts pccl-master, which outlives this process and ends with the
 * run. False with a message. */
bool slurm_master_start(const struct slurm_task *task, char *message,
                        size_t size);

#endif
