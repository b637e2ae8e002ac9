/* comm_secure.c - the key of a communicator's run: where it comes from, its
 * channels, and who is let in without one. See comm.h; rules K. */
#include "comm.h"

#include "../base/log.h"
#include "../base/run_key.h"
#include "../base/same_user.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

bool comm_key_take(pcclComm_t *c)
{
    const char *path =
        c->token_file ? c->token_file : getenv("PCCL_TOKEN_FILE");
    char error[200];
    const char *missing;
    struct run_key key;
    same_user_read_environment();
    c->keyed = path && *path != '\0';
    if (!c->keyed) return true;
    if (!secure_is_available(&missing)) {
        comm_set_error(c, "this run has a key, and there is no TLS: %s",
                       missing);
        return false;
    }
    if (!run_key_read(&key, path, error, sizeof error)) {
        comm_set_error(c, "the key of the run (PCCL_TOKEN_FILE): %s", error);
        return false;
    }
    if (!c->keys) c->keys = calloc(1, sizeof *c->keys);
    if (c->keys) secure_psk_of_key(&c->keys->own, key.bytes);
    run_key_forget(&key, sizeof key);
    if (!c->keys) comm_set_error(c, "out of memory");
    return c->keys != NULL;
}

void comm_key_drop(pcclComm_t *c)
{
    if (c->keys) run_key_forget(c->keys, sizeof *c->keys);
    free(c->keys);
    c->keys = NULL;
}

bool comm_admits(const pcclComm_t *c, int fd, bool called, char *why,
                 size_t size)
{
    why[0] = '\0';
    return c->keyed || same_user_admits(fd, called, why, size);
}

bool comm_secure_open(const pcclComm_t *c, enum secure_side side,
                      struct secure **secure)
{
    *secure = c->keyed ? secure_open(c->keys, side) : NULL;
    return *secure || !c->keyed;
}

ssize_t comm_socket_recv(int fd, struct secure *s, void *to, size_t size)
{
    return s ? secure_recv(fd, s, to, size) : recv(fd, to, size, MSG_DONTWAIT);
}

ssize_t comm_socket_send(int fd, struct secure *s, const struct iovec *parts,
                         size_t count)
{
    if (s) return secure_send(fd, s, parts, count);
    struct msghdr msg = {.msg_iov = (struct iovec *)(uintptr_t)parts,
                         .msg_iovlen = count};
    return sendmsg(fd, &msg, MSG_DONTWAIT | MSG_NOSIGNAL);
}

void comm_secure_tell(const struct secure *s)
{
    enum secure_fault fault = secure_fault(s);
    LOG(fault == SECURE_CUT ? LOG_DEBUG : LOG_WARN, "closed a connection: %s",
        secure_fault_text(fault));
}

void comm_secure_end(struct comm_socket *s)
{
    if (secure_wants_room(s->secure)) return;
    secure_close(s->secure);
    s->secure = NULL;
    s->event_pending = true; /* doorbells may have come behind the records */
}
