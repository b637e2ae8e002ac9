/* master_open.h - an open run: whose tokens are believed, and who is revoked
 * (rules K10 to K12, K15). */
#ifndef PCCL_MASTER_OPEN_H
#define PCCL_MASTER_OPEN_H

#include "../../base/secure_token.h"

#include <stddef.h>

struct master_open {
    bool on;
    uint8_t key[SECURE_KEY_SIZE]; /* of the run */
    uint8_t issuer[TOKEN_PUBLIC_SIZE];
    struct secure_psk own;   /* the run's key, which opens nothing (K10) */
    struct secure_psk links; /* of links between members (K14) */
    char (*revoked)[GRANT_NAME_MAX + 1];
    size_t revoked_count;
};

enum { REVOKED_MAX = 100000 }; /* names in a list */

void open_free(struct master_open *o);

/* Reads the list of revoked names: one a line, '#' begins a remark. False:
 * `error` says why, and the list is as before. */
bool open_read_revoked(struct master_open *o, const char *path, char *error,
                       size_t error_size);

/* The acceptor's look-up (secure_keys.find). */
enum secure_fault open_find(void *open, const char *identity,
                            uint8_t key[SECURE_KEY_SIZE]);

/* Rule K12, of a dialer that has proved the identity. False: `text` is the
 * sentence for it. */
bool open_judge(const struct master_open *o, const char *identity, uint64_t now,
                struct token *token, char *text, size_t size);
/* Rule K15: whether it still holds. */
bool open_holds(const struct master_open *o, const struct token *token,
                uint64_t now, char *text, size_t size);

#endif
