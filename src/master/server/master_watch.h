/* master_watch.h - the events of a connection's socket that the coordinator's
 * loop waits for. */
#ifndef PCCL_MASTER_WATCH_H
#define PCCL_MASTER_WATCH_H

#include "../../base/secure.h"
#include "master_conn.h"

#include <ev.h>

/* After a flush; `io` is the connection's. */
void master_watch_flushed(struct ev_loop *loop, ev_io *io,
                          const struct master_conn *c, enum conn_result result);
/* What is relayed is read only while there is room. `secure` (or NULL) may hold
 * what is decrypted already: no event of the socket comes for that. */
void master_watch_input(struct ev_loop *loop, ev_io *io,
                        const struct master_conn *c,
                        const struct secure *secure);

#endif
