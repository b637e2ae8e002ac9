/* server_wrap.h - a coordinator's process without threads and without waiting,
 * for fuzz_server.c: its clocks, and the worker of its ring searches. */
#ifndef PCCL_FUZZ_SERVER_WRAP_H
#define PCCL_FUZZ_SERVER_WRAP_H

#include "../../src/base/base.h"

enum { SERVER_BEGAN = 1800000000 /* s since 1970 */ };

extern pccl_ns server_now;

/* While it is true, threads that are made do not run. */
extern bool server_inside;

/* Does what the worker has to do. */
void server_search(void);

#endif
