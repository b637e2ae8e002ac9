/* open_run.h - what --issuer, --revoked and --hook give a coordinator (rules
 * K10 to K16). */
#ifndef PCCL_LAUNCH_OPEN_RUN_H
#define PCCL_LAUNCH_OPEN_RUN_H

#include "options.h"

#include "../master/server/master_server.h"

struct open_run;

/* Fills in the setup of the coordinator; `deadline` is its own. NULL: it has
 * printed why. */
struct open_run *open_run_begin(const struct options *options,
                                struct ev_loop *loop,
                                struct master_server_options *setup);
/* The coordinator is there, or, NULL, is not any more. SIGHUP reads the revoked
 * names again. */
void open_run_serve(struct open_run *run, struct master_server *server);
void open_run_end(struct open_run *run); /* NULL: nothing to do */

#endif
