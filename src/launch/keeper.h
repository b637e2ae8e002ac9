/* keeper.h - a process that has the ranks of a detached job while launchers
 * come and go (--detach with --master-grace).
 *
 * In the field: a shim between a container and its manager.
 *
 * The keeper is the parent of the ranks: it starts them, forwards their output,
 * holds their exit statuses and does no more. Everything that is decided, and
 * the coordinator, is in the launcher, its other child. If that is killed, the
 * ranks go on, and a signal (DETACH_ATTACH) has the keeper fork another one. It
 * is a copy of the keeper: options, environment, folder and the key of the run
 * need no file and no command line. Where nobody attaches for the grace, the
 * keeper forks one that ends the job. */
#ifndef PCCL_LAUNCH_KEEPER_H
#define PCCL_LAUNCH_KEEPER_H

#include "detach.h"
#include "keep.h"
#include "options.h"

struct keeper_setup {
    struct options *options; /* a free port of the listener is chosen */
    struct detached *detached;
    const char *library_path; /* or NULL */
};

/* True: this process is a launcher, with its end in `keep`. False: it was the
 * keeper, and the job is over with that status. `options` has a numeric address
 * to listen on. No loop, thread or child may be there before. */
bool keeper_run(const struct keeper_setup *setup, struct keep *keep,
                int *status);

#endif
