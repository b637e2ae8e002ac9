/* secure_channel.h - the struct behind secure.h, for secure.c and
 * secure_greeting.c. */
#ifndef PCCL_SECURE_CHANNEL_H
#define PCCL_SECURE_CHANNEL_H

#include "secure.h"
#include "secure_record.h"

struct ssl_st;

struct secure {
    const struct secure_keys *keys;
    enum secure_side side;
    enum secure_state state;
    enum secure_fault fault;
    char identity[SECURE_NAME_SIZE];
    struct ssl_st *ssl; /* while GREETING; its BIOs are its own: */
    struct bio_st *from, *to;
    struct secure_traffic { /* what the handshake made; then in the ciphers */
        bool known;
        uint8_t secret[RECORD_SECRET];
    } traffic[2];       /* indexed by the side that sends */
    unsigned greetings; /* records received while GREETING */
    struct secure_cipher rx, tx;
    /* in[in_begin, in_end) is received, and not opened yet; in[plain,
     * plain_end) is opened, and not read yet. */
    uint8_t *in;
    size_t in_begin, in_end, in_size, plain, plain_end;
    bool filled; /* the last bytes filled their room */
    bool moved;
    bool rekeys; /* before the next record */
    uint8_t *out;
    size_t out_begin, out_end, out_size;
    size_t writing; /* plain bytes that `out` holds */
};

/* The channel is broken. */
void secure_break(struct secure *s, enum secure_fault fault);
/* Room for so many bytes more to send; NULL: out of memory, broken. */
uint8_t *secure_more(struct secure *s, size_t size);

/* --- secure_text.c --- */

void secure_put_alert(uint8_t record[SECURE_REFUSAL_SIZE], uint8_t alert);

/* --- secure_greeting.c --- */

/* The dialer's first bytes. */
void secure_greeting_begin(struct secure *s);
/* Handles the records that are there until the channel is open or broken. */
void secure_greeting_go_on(struct secure *s);
void secure_greeting_end(struct secure *s); /* frees what is left of it */

#endif
