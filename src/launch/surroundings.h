/* surroundings.h - what the launcher finds around it, and
 * leaves there for its ranks. */
#ifndef PCCL_LAUNCH_SURROUNDINGS_H
#define PCCL_LAUNCH_SURROUNDINGS_H

#include "options.h"

/* The folder of our libmpich.so.12, beside this executable in a build tree or
 * in an install prefix; for free(). NULL: not found. */
char *library_path_find(void);

/* Slurm's allocation, under the names of several Slurm versions. */
void environment_read(struct options_environment *environment);

/* --log-file and --log-json, for this process and its ranks, which may work in
 * another folder. A log that somebody asks for tells what happens. */
void log_setup(const struct options *options);

#endif
