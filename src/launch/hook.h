/* hook.h - a program of the operator that decides who joins, and is told who
 * has joined and left (rule K16). It is executed, not given to a shell, and
 * gets facts by its environment; no key is among them. The loop never waits for
 * it. */
#ifndef PCCL_LAUNCH_HOOK_H
#define PCCL_LAUNCH_HOOK_H

#include "launch_base.h"

#include "../master/server/master_server.h"

struct hook;

/* limit: s that a program may take. NULL: `error` says why. Belongs to the
 * default loop, as it waits for children. */
struct hook *hook_open(struct ev_loop *loop, const char *program, double limit,
                       char *error, size_t error_size);
/* Kills what runs. */
void hook_close(struct hook *hook);

/* Where answers go; NULL: nowhere any more. */
void hook_serve(struct hook *hook, struct master_server *server);

/* For struct master_server_options; `hook` is the struct. */
bool hook_ask(void *hook, const struct master_guest *guest, char *why,
              size_t size);
void hook_told(void *hook, const struct master_guest *guest, const char *event);

#endif
