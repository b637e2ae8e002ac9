/* secure_token.h - tokens of participants (rules K10 to K12): what an issuer
 * has signed by Ed25519, and sealed with the key of the run. All of it is pure;
 * times are seconds since 1970. Without OpenSSL each call fails. */
#ifndef PCCL_SECURE_TOKEN_H
#define PCCL_SECURE_TOKEN_H

#include "grant.h"
#include "secure.h"

enum {
    TOKEN_SEED_SIZE = 32,   /* of the issuer: private */
    TOKEN_PUBLIC_SIZE = 32, /* of the issuer: known to coordinators */
    TOKEN_CLOCK_SKEW = 60,  /* s by which clocks may differ */
};

struct token {
    struct grant grant;
    uint64_t issued, expires; /* expires 0: never */
};

enum token_fault {
    TOKEN_FINE,
    TOKEN_FOREIGN,      /* not sealed with the key of this run */
    TOKEN_BROKEN,       /* sealed, and of no form of this version */
    TOKEN_OTHER_ISSUER, /* of another issuer */
    TOKEN_FORGED,       /* the signature is not the issuer's */
    TOKEN_EARLY,        /* issued in the future */
    TOKEN_EXPIRED,
    TOKEN_REVOKED, /* by name */
    TOKEN_FAULTS
};

/* 1 to GRANT_NAME_MAX of A-Z a-z 0-9 . _ @ -; the first one no dot or dash. */
bool token_name_is_valid(const char *name);

/* False: no OpenSSL, or it has no Ed25519. */
bool token_public(const uint8_t seed[TOKEN_SEED_SIZE],
                  uint8_t public_key[TOKEN_PUBLIC_SIZE]);

/* Makes the key of a participant: its identity is the token, sealed. False: no
 * OpenSSL, no random bytes, or the token has no valid name or no right. */
bool token_issue(const struct token *token, const uint8_t seed[TOKEN_SEED_SIZE],
                 const uint8_t key[SECURE_KEY_SIZE], struct secure_psk *psk);

/* The secret of a sealed token. FINE, FOREIGN. */
enum token_fault token_secret(const char *identity,
                              const uint8_t key[SECURE_KEY_SIZE],
                              uint8_t secret[SECURE_KEY_SIZE]);
/* Opens it and checks the signature. FINE, FOREIGN, BROKEN, OTHER_ISSUER,
 * FORGED; *token is valid with FINE alone. */
enum token_fault token_open(const char *identity,
                            const uint8_t key[SECURE_KEY_SIZE],
                            const uint8_t public_key[TOKEN_PUBLIC_SIZE],
                            struct token *token);
/* FINE, EARLY, EXPIRED. */
enum token_fault token_at(const struct token *token, uint64_t now);

/* The sentence for the participant; `token` may be NULL where the fault is none
 * of time or name. */
void token_fault_text(enum token_fault fault, const struct token *token,
                      char *text, size_t size);

/* The key of links between members, from the proof of membership that the
 * coordinator hands out (rule K14). */
void token_link_key(struct secure_psk *psk, const uint64_t proof[2]);

#endif
