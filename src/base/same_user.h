/* same_user.h - whose process the other end of a TCP connection is, if it is on
 * this host (rule L9).
 *
 * The kernel finds the socket of the other end by the addresses of both ends,
 * in its hash table, and says which user made it (sock_diag). So nobody needs
 * to prove anything, and no byte of the connection is read for it. Where the
 * kernel does not offer that, /proc/net has the same words, to be searched. */
#ifndef PCCL_SAME_USER_H
#define PCCL_SAME_USER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum same_user {
    SAME_USER_REMOTE,  /* no socket of this network namespace */
    SAME_USER_YES,     /* of this process's user, or of root */
    SAME_USER_NO,      /* of another user */
    SAME_USER_ENDED,   /* of this host, and closed */
    SAME_USER_UNKNOWN, /* of this host, and nobody says whose */
};

/* The end that has called a listener of this process; or (called) that this
 * process has called: as long as the other process has not accepted the
 * connection, its listener counts. *uid is set for YES and NO. Blocks no longer
 * than a system call does; any thread. */
enum same_user same_user_of(int fd, bool called, uint32_t *uid);

/* Reads PCCL_INSECURE: 1 admits all users, from now on. Where no other thread
 * changes the environment. */
void same_user_read_environment(void);

/* Rule L9. False: this connection is to be closed; `why` names the user, and is
 * empty where the other end has ended.
 * `called`: this process has dialed. */
bool same_user_admits(int fd, bool called, char *why, size_t size);

#endif
