/* comm_secure.c - the key of a communicator's run: where it comes from, its
 * channels, and who is let in without one. See comm.h; rules K. */
#include "comm.h"

#include "../base/log.h"
#include "../base/run_key.h"
#include "../base/same_user.h"
#include "../base/secure_token.h"

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
    if (!c->link_keys) c->link_keys = calloc(1, sizeof *c->link_keys);
    bool done = c->keys && c->link_keys;
    c->token = run_key_is_token(&key);
    if (done) run_key_psk(&key, &c->keys->own);
    if (done) c->link_keys->own = c->keys->own;
    if (done && c->token) c->link_keys->own.identity[0] = '\0'; /* unknown */
    run_key_forget(&key, sizeof key);
    if (!done) comm_set_error(c, "out of memory");
    return done;
}

void comm_secure_prove(const pcclComm_t *c, const struct wire_key *proof)
{
    if (c->keyed && c->token) token_link_key(&c->link_keys->own, proof->word);
}

void comm_key_drop(pcclComm_t *c)
{
    struct secure_keys **all[] = {&c->keys, &c->link_keys};
    for (size_t i = 0; i < ARRAY_COUNT(all); i++) {
        if (*all[i]) run_key_forget(*all[i], sizeof **all[i]);
        free(*all[i]);
        *all[i] = NULL;
    }
}

bool comm_admits(const pcclComm_t *c, int fd, bool called, char *why,
                 size_t size)
{
    why[0] = '\0';
    return c->keyed || same_user_admits(fd, called, why, size);
}

bool comm_secure_master(const pcclComm_t *c, struct secure **secure)
{
    *secure = c->keyed ? secure_open(c->keys, SECURE_DIALER) : NULL;
    return *secure || !c->keyed;
}

bool comm_secure_link(const pcclComm_t *c, enum secure_side side,
                      struct secure **secure)
{
    bool known = c->keyed && c->link_keys->own.identity[0] != '\0';
    *secure = known ? secure_open(c->link_keys, side) : NULL;
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
