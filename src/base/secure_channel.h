/* secure_channel.h - the struct behind secure.h, for secure.c and
 * secure_greeting.c. */
#ifndef PCCL_SECURE_CHANNEL_H
#define PCCL_SECURE_CHANNEL_H

#include "secure.h"

struct ssl_st;

enum {
    RECORD_HEAD = 5,
    RECORD_MOST = 16384, /* plain bytes (RFC 8446, section 5.1) */
    RECORD_WHOLE = RECORD_HEAD + RECORD_MOST + 256,
    RECORD_ALERT = 21,
    RECORD_HANDSHAKE = 22,
    RECORD_DATA = 23,
    RECORD_LIMIT = 1 << 22, /* records by one key (rule K6) */
};

struct secure {
    const struct secure_keys *keys;
    enum secure_side side;
    enum secure_state state;
    enum secure_fault fault;
    char identity[SECURE_NAME_SIZE];
    struct ssl_st *ssl; /* reads whole records from `in`, and writes to `out` */
    unsigned greetings; /* records received while GREETING */
    /* in[in_begin, in_end) is received, and not read by `ssl` yet, which may
     * read up to in_given. */
    uint8_t *in;
    size_t in_begin, in_given, in_end, in_size;
    bool filled; /* the last bytes filled their room */
    bool moved;
    unsigned records; /* sent by the key in use */
    uint8_t *out;
    size_t out_begin, out_end, out_size;
    size_t writing; /* plain bytes that `out` holds */
};

/* The channel is broken. */
void secure_break(struct secure *s, enum secure_fault fault);
/* Room for so many bytes more to send; NULL: out of memory, broken. */
uint8_t *secure_more(struct secure *s, size_t size);
/* `ssl` may read the first record, if it is there as a whole. */
void secure_give_record(struct secure *s);

/* Bytes sent from here on are sealed by the next key (K6). */
void secure_rekey(struct secure *s);

/* --- secure_text.c --- */

void secure_put_alert(uint8_t record[SECURE_REFUSAL_SIZE], uint8_t alert);

/* --- secure_greeting.c: what needs OpenSSL; secure_none.c is without it --- */

/* Of an open channel: bytes of a record have been decrypted, and not read. */
bool secure_is_pending(const struct secure *s);
/* Decrypts what is left of a record, or the first one that waits; returns how
 * many bytes were put into `to`. */
size_t secure_read_record(struct secure *s, uint8_t *to, size_t size);
/* Encrypts from[0, size). */
bool secure_write_records(struct secure *s, const uint8_t *from, size_t size);

/* The dialer's first bytes. */
void secure_greeting_begin(struct secure *s);
/* Handles the records that are there until the channel is open or broken. */
void secure_greeting_go_on(struct secure *s);
void secure_greeting_end(struct secure *s); /* frees OpenSSL's part */

#endif
