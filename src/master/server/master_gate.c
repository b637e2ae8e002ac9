/* master_gate.c - see master_gate.h. */
#include "master_gate.h"

#include "../../base/fork_guard.h"
#include "../../base/log.h"
#include "../../base/same_user.h"
#include "../../base/wire.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* A crowd is told of once for each power of two. */
void master_gate_tell(struct master_gate *g, const struct wire_addr *from,
                      const char *why)
{
    char text[IO_ADDR_TEXT_SIZE];
    uint64_t before = g->refused++;
    if ((before & g->refused) != 0) return;
    LOG(LOG_WARN,
        "master: refused the connection from %s: %s (%" PRIu64 " so far)",
        io_addr_print(from, text), why, g->refused);
}

/* So little always fits a new socket. */
static void evict(int fd, const char *why)
{
    enum { EVICT_SIZE = WIRE_HEADER_SIZE + 512 };
    struct wire_msg msg = {.type = WIRE_EVICT};
    uint8_t frame[EVICT_SIZE];
    uint8_t unread[256];
    (void)snprintf(msg.abort.text, sizeof msg.abort.text, "%.*s",
                   (int)sizeof msg.abort.text - 1, why);
    (void)send(fd, frame, wire_encode(&msg, frame),
               MSG_DONTWAIT | MSG_NOSIGNAL);
    /* What is not read when it closes would take the words with it. */
    while (recv(fd, unread, sizeof unread, MSG_DONTWAIT) > 0) continue;
}

bool master_gate_admits(struct master_gate *g, int fd,
                        const struct io_addr *from)
{
    char why[256];
    struct wire_addr addr = io_addr_to_wire(from);
    if (g->keyed || same_user_admits(fd, false, why, sizeof why)) return true;
    if (why[0] != '\0') {
        evict(fd, why);
        master_gate_tell(g, &addr, why);
    }
    fork_guard_close(fd);
    return false;
}

static const char *why_ended(struct master_gate *g, int fd,
                             const struct secure *secure,
                             const struct master_conn *c)
{
    if (!secure || secure_state(secure) != SECURE_BROKEN)
        return "closed by the peer";
    enum secure_fault fault = secure_fault(secure);
    if (fault == SECURE_IS_PLAIN)
        evict(fd, "this run has a key: give this process its token file "
                  "(PCCL_TOKEN_FILE, or --token-file of pccl-master)");
    if (fault != SECURE_CUT)
        master_gate_tell(g, &c->addr, secure_fault_text(fault));
    return secure_fault_text(fault);
}

/* The size bytes to be added to the input are the first ones, of a dialer with
 * a key. */
static bool sees_key(struct master_gate *g, int fd, const struct master_conn *c,
                     size_t size)
{
    uint8_t alert[SECURE_REFUSAL_SIZE];
    if (c->in_size > 0 || !secure_is_greeting(c->in, size)) return false;
    secure_refuse(alert);
    (void)send(fd, alert, sizeof alert, MSG_DONTWAIT | MSG_NOSIGNAL);
    master_gate_tell(g, &c->addr, "it has a key, and this run has none");
    return true;
}

enum conn_result master_gate_receive(struct master_gate *g, int fd,
                                     struct secure *secure,
                                     struct master_conn *c, size_t *got,
                                     const char **why)
{
    enum conn_result result = master_socket_receive(fd, secure, c, got);
    *why = NULL;
    if (result == CONN_END) *why = why_ended(g, fd, secure, c);
    if (result != CONN_DONE || secure || !sees_key(g, fd, c, *got))
        return result;
    *why = "has a key, and this run has none";
    return CONN_END;
}

void master_gate_open(struct master_gate *g, const uint8_t *key,
                      const uint8_t *issuer, const struct wire_key *proof)
{
    struct master_open *o = &g->open;
    g->keyed = key != NULL;
    if (key) secure_psk_of_key(&g->keys.own, key);
    o->on = key && issuer;
    if (!o->on) return;
    memcpy(o->key, key, sizeof o->key);
    memcpy(o->issuer, issuer, sizeof o->issuer);
    o->own = g->keys.own;
    token_link_key(&o->links, proof->word);
    g->keys.find = open_find;
    g->keys.user = o;
}

void master_gate_close(struct master_gate *g)
{
    open_free(&g->open);
    explicit_bzero(&g->open, sizeof g->open);
    explicit_bzero(&g->keys, sizeof g->keys);
}

void master_gate_log_end(const struct master_conn *c, const char *reason)
{
    char text[IO_ADDR_TEXT_SIZE];
    LOG(LOG_INFO, "master: closing the connection of %s: %s",
        io_addr_print(&c->addr, text), reason);
}
