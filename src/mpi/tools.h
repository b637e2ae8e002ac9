/* tools.h - the tools interface (MPI_T): what its files share, and what the
 * rest of the library tells them. */
#ifndef TOOLS_H
#define TOOLS_H

#include "../../include/pccl.h"
#include "facade.h"

/* Between MPI_T_init_thread and MPI_T_finalize: then alone mpi_T_X is called.
 */
bool tools_active(void);

/* Gives a text to the caller as MPI_T wants it: at most *size bytes with the
 * end, and its whole size in *size. NULL or a size of 0: only the size. */
void tools_give(const char *text, char *to, int *size);
/* Gives a number to the caller who wants it. */
void tools_give_number(int number, int *to);

enum { TOOLS_EVENTS = 3 };
int tools_pvar_count(void);

/* --- for world.c --- */
/* The communicator whose numbers the variables have, from here on; and until
 * here: they keep their last values. */
void tools_join(pcclComm_t *pccl);
void tools_leave(void);
/* The world has another view: calls what tools have registered. No lock is
 * held. */
struct group;
void tools_view(const struct group *before, const struct group *now);

#endif
