/* elect_right.h - until when an elected coordinator may act: memory that it
 * shares with its elector (rule H15). */
#ifndef PCCL_LAUNCH_ELECT_RIGHT_H
#define PCCL_LAUNCH_ELECT_RIGHT_H

#include "launch_base.h"

struct ev_loop;
struct elect_right;

/* --- the elector's half --- */

/* NULL: no memory. *fd is inherited by the child, and the elector's to close.
 */
struct elect_right *right_make(int *fd);
/* A coordinator may begin, and act until that host_time(). It shows each `pace`
 * that it runs. */
void right_grant(struct elect_right *right, pccl_ns until, pccl_ns pace);
/* Later than before; 0: not any more. */
void right_extend(struct elect_right *right, pccl_ns until);
/* The coordinator has opened its journal and its port. */
bool right_has_begun(const struct elect_right *right);
/* When it ran last, or was to begin. */
pccl_ns right_seen(const struct elect_right *right);

/* --- the coordinator's half, one in a process --- */

/* False: that descriptor has no right of an elector. */
bool right_take(int fd);
/* Ends the process, with EXIT_UNELECTED, if its right is over. Nothing happens
 * in one that was not elected. */
void right_check(void *unused);
/* Tells the elector, and from here on looks at each turn of that loop, and when
 * the right ends. */
void right_begin(struct ev_loop *loop);

#endif
