/* secure.h - one end of a connection that is encrypted: TLS 1.3 between two
 * ends that have a key in common (rules K of KEYS.md).
 *
 * Sans-IO: received bytes go in and bytes to send come out; the driver moves
 * them (secure_socket.h does it for sockets). One thread at a time. OpenSSL is
 * loaded when the first channel is opened, so a process without a key never
 * touches it. */
#ifndef PCCL_SECURE_H
#define PCCL_SECURE_H

#include "base.h"

enum {
    SECURE_KEY_SIZE = 32,
    SECURE_NAME_SIZE = 400, /* of an identity, with its '\0' */
    /* Received bytes that are kept of an end that has not proved its key. */
    SECURE_GREETING_MAX = 4096,
};

enum secure_fault {
    SECURE_FINE,
    SECURE_NO_LIBRARY, /* OpenSSL is not there */
    SECURE_NO_MEMORY,
    SECURE_IS_PLAIN,  /* acceptor: the dialer speaks no TLS */
    SECURE_WANTS_KEY, /* dialer: the acceptor has no key */
    SECURE_WRONG_KEY, /* the other end has another key */
    SECURE_NO_TLS,    /* what came is no handshake of this kind */
    SECURE_CUT,       /* the other end closed before it proved its key */
    SECURE_TAMPERED,  /* a record does not authenticate */
    SECURE_REFUSED,   /* dialer: the acceptor takes no such dialer any more */
    SECURE_FAULTS
};

/* A key, and the identity under which an acceptor finds it. The identity
 * crosses the network in clear: it is random, a digest or sealed (K11), never a
 * name. */
struct secure_psk {
    char identity[SECURE_NAME_SIZE];
    uint8_t key[SECURE_KEY_SIZE];
};

/* The keys of a process. Channels borrow it. */
struct secure_keys {
    struct secure_psk own; /* by which this end dials */
    /* The acceptor's look-up: the key of an identity that a dialer names.
     * SECURE_FINE, SECURE_WRONG_KEY (unknown) or SECURE_REFUSED (known, and not
     * welcome any more). NULL: there is but `own`. */
    enum secure_fault (*find)(void *user, const char *identity,
                              uint8_t key[SECURE_KEY_SIZE]);
    void *user;
};

/* The key that all of a run share, as one identity: a digest of it. */
void secure_psk_of_key(struct secure_psk *psk,
                       const uint8_t key[SECURE_KEY_SIZE]);

enum secure_side { SECURE_DIALER, SECURE_ACCEPTOR };

enum secure_state {
    SECURE_GREETING, /* the other end has not proved that it has the key */
    SECURE_OPEN,
    SECURE_BROKEN, /* for ever; secure_fault() says why */
};

struct secure;

/* False: *why says what is missing. Loads OpenSSL. */
bool secure_is_available(const char **why);

/* NULL: out of memory. Nothing of OpenSSL is allocated for an acceptor before a
 * whole greeting of a plausible form has come. */
struct secure *secure_open(const struct secure_keys *keys,
                           enum secure_side side);
void secure_close(struct secure *s); /* NULL: nothing to do */

enum secure_state secure_state(const struct secure *s);
enum secure_fault secure_fault(const struct secure *s);
/* A sentence for the user; never has a key in it. */
const char *secure_fault_text(enum secure_fault fault);
/* Once OPEN: the identity that the dialer proved. */
const char *secure_identity(const struct secure *s);

/* --- bytes from the other end --- */

/* Room for received bytes, never none unless BROKEN or input waits to be read
 * (secure_read). NULL: none. */
uint8_t *secure_room(struct secure *s, size_t *size);
void secure_received(struct secure *s, size_t size);
/* The end of the connection. */
void secure_ended(struct secure *s);
/* Decrypts into to[0, size) what is there; 0: nothing, or no whole record.
 * Bytes of `to` beyond those may change. */
size_t secure_read(struct secure *s, uint8_t *to, size_t size);
/* secure_read() can return more than 0, though the other end sends nothing. */
bool secure_has_input(const struct secure *s);

/* --- bytes to the other end --- */

struct secure_part {
    const uint8_t *from;
    size_t size;
};

/* Encrypts the parts, or the first bytes of them, and returns how many; 0 while
 * not OPEN, or while secure_out() has bytes. They may change afterwards. */
size_t secure_write(struct secure *s, const struct secure_part *parts,
                    uint32_t count);
/* What is to be sent next; 0: nothing. Valid until secure_sent(). */
size_t secure_out(const struct secure *s, const uint8_t **from);
/* It has bytes of secure_write(). */
bool secure_writes(const struct secure *s);
/* Returns how many bytes of secure_write() have wholly left with these. */
size_t secure_sent(struct secure *s, size_t size);

/* Whether bytes have come in or gone out since it was asked last. */
bool secure_moved(struct secure *s);

/* --- an acceptor without a key --- */

/* The first bytes of a connection are those of a dialer that has a key. */
bool secure_is_greeting(const uint8_t *bytes, size_t size);
enum { SECURE_REFUSAL_SIZE = 7 };
/* The answer to it: the dialer finds SECURE_WANTS_KEY. */
void secure_refuse(uint8_t answer[SECURE_REFUSAL_SIZE]);

#endif
