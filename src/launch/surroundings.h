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

/* The coordinator takes only numeric addresses, but users write "localhost". It
 * is resolved here without a lookup: some machines lack it in their tables, and
 * some list ::1 first, where a connection to 127.0.0.1 fails. `option` is for
 * the message. */
bool host_resolve(char host[HOST_SIZE], const char *option);

#endif
