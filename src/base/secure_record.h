/* secure_record.h - records of TLS 1.3 (RFC 8446, section 5) in one direction:
 * AES-128-GCM, of at most 16 KiB, without padding. They are made and opened by
 * the cipher itself: bytes go from the caller's memory to the record in one
 * pass, and back likewise. */
#ifndef PCCL_SECURE_RECORD_H
#define PCCL_SECURE_RECORD_H

#include "base.h"
#include "secure.h"

enum {
    RECORD_HEAD = 5,
    RECORD_MOST = 16384, /* plain bytes */
    RECORD_TAIL = 1 + 16 /* the inner type and the tag */,
    RECORD_WHOLE = RECORD_HEAD + RECORD_MOST + RECORD_TAIL,
    RECORD_ALERT = 21,
    RECORD_HANDSHAKE = 22,
    RECORD_DATA = 23,
    RECORD_SECRET = 32,
    RECORD_LIMIT = 1 << 22, /* records by one key (rule K6) */
};

struct secure_cipher {
    struct evp_cipher_ctx_st *context; /* NULL: not open */
    uint8_t secret[RECORD_SECRET];
    uint8_t iv[12];
    uint64_t number; /* of the next record */
    bool seals;
};

/* False: out of memory. */
bool secure_cipher_open(struct secure_cipher *c,
                        const uint8_t secret[RECORD_SECRET], bool seals);
/* Derives the next key from the one in use. */
bool secure_cipher_next(struct secure_cipher *c);
void secure_cipher_close(struct secure_cipher *c);

/* The bytes that are sealed next: of parts[0], from `skip` on. */
struct secure_source {
    const struct secure_part *parts;
    size_t skip;
};

/* Writes a record of size plain bytes; returns its size, 0: failed. */
size_t secure_seal(struct secure_cipher *c, uint8_t type,
                   struct secure_source *from, size_t size, uint8_t *record);

/* The bytes after a record's head, by its head; 0: it is no record of data. */
size_t secure_record_size(const uint8_t head[RECORD_HEAD]);
/* Opens a whole record into `to`, which may be record + RECORD_HEAD; returns
 * its inner type, 0: it does not authenticate. */
uint8_t secure_unseal(struct secure_cipher *c, const uint8_t *record,
                      size_t size, uint8_t *to);

#endif
