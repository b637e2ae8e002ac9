/* master_gate.h - whom the coordinator lets in: with a key those that prove it,
 * without one this host and user (rules K, L9). */
#ifndef PCCL_MASTER_GATE_H
#define PCCL_MASTER_GATE_H

#include "../../base/io_addr.h"
#include "../../base/secure.h"
#include "master_open.h"
#include "master_socket.h"

struct master_gate {
    bool keyed;
    struct secure_keys keys; /* where the run has one */
    struct master_open open; /* where it takes tokens */
    uint64_t refused;        /* connections so far */
};

/* With the key of the run, SECURE_KEY_SIZE bytes, or NULL; and the public key
 * of the issuer, TOKEN_PUBLIC_SIZE bytes, if it takes tokens, or NULL. `proof`
 * is what WELCOME tells members. The gate stays where it is. */
void master_gate_open(struct master_gate *g, const uint8_t *key,
                      const uint8_t *issuer, const struct wire_key *proof);
void master_gate_close(struct master_gate *g);

/* Who has called the listener; without a key. False: fd is closed. Who is
 * refused gets the reason, and costs no link. The log has a line of a crowd for
 * each power of two. */
bool master_gate_admits(struct master_gate *g, int fd,
                        const struct io_addr *from);

/* As master_socket_receive(). END: *why is the reason, a literal; where one end
 * has a key and the other one has none, the other one has the reason (rule K5).
 */
enum conn_result master_gate_receive(struct master_gate *g, int fd,
                                     struct secure *secure,
                                     struct master_conn *c, size_t *got,
                                     const char **why);

/* A line of the log about a refused one. */
void master_gate_tell(struct master_gate *g, const struct wire_addr *from,
                      const char *why);
void master_gate_log_end(const struct master_conn *c, const char *reason);

#endif
