/* secure_none.c - secure.h and secure_token.h in a build without the headers of
 * OpenSSL: every channel is broken from the start, and no token is one. */
#include "secure.h"
#include "secure_token.h"

#include <stdlib.h>
#include <string.h>

bool secure_is_available(const char **why)
{
    if (why) *why = "this build is without TLS (PCCL_TLS)";
    return false;
}

void secure_psk_of_key(struct secure_psk *psk,
                       const uint8_t key[SECURE_KEY_SIZE])
{
    memset(psk, 0, sizeof *psk);
    memcpy(psk->key, key, SECURE_KEY_SIZE);
}

struct secure *secure_open(const struct secure_keys *keys,
                           enum secure_side side)
{
    (void)keys;
    (void)side;
    return calloc(1, 1); /* nobody looks into it */
}

void secure_close(struct secure *s)
{
    free(s);
}

enum secure_state secure_state(const struct secure *s)
{
    (void)s;
    return SECURE_BROKEN;
}

enum secure_fault secure_fault(const struct secure *s)
{
    (void)s;
    return SECURE_NO_LIBRARY;
}

const char *secure_identity(const struct secure *s)
{
    (void)s;
    return "";
}

uint8_t *secure_room(struct secure *s, size_t *size)
{
    (void)s;
    *size = 0;
    return NULL;
}

void secure_received(struct secure *s, size_t size)
{
    (void)s;
    (void)size;
}

void secure_ended(struct secure *s)
{
    (void)s;
}

size_t secure_read(struct secure *s, uint8_t *to, size_t size)
{
    (void)s;
    (void)to;
    (void)size;
    return 0;
}

bool secure_has_input(const struct secure *s)
{
    (void)s;
    return false;
}

size_t secure_write(struct secure *s, const struct secure_part *parts,
                    uint32_t count)
{
    (void)s;
    (void)parts;
    (void)count;
    return 0;
}

size_t secure_out(const struct secure *s, const uint8_t **from)
{
    (void)s;
    *from = NULL;
    return 0;
}

bool secure_moved(struct secure *s)
{
    (void)s;
    return false;
}

bool secure_writes(const struct secure *s)
{
    (void)s;
    return false;
}

size_t secure_sent(struct secure *s, size_t size)
{
    (void)s;
    (void)size;
    return 0;
}

bool token_public(const uint8_t seed[TOKEN_SEED_SIZE],
                  uint8_t public_key[TOKEN_PUBLIC_SIZE])
{
    (void)seed;
    (void)public_key;
    return false;
}

bool token_issue(const struct token *token, const uint8_t seed[TOKEN_SEED_SIZE],
                 const uint8_t key[SECURE_KEY_SIZE], struct secure_psk *psk)
{
    (void)token;
    (void)seed;
    (void)key;
    (void)psk;
    return false;
}

enum token_fault token_secret(const char *identity,
                              const uint8_t key[SECURE_KEY_SIZE],
                              uint8_t secret[SECURE_KEY_SIZE])
{
    (void)identity;
    (void)key;
    (void)secret;
    return TOKEN_FOREIGN;
}

enum token_fault token_open(const char *identity,
                            const uint8_t key[SECURE_KEY_SIZE],
                            const uint8_t public_key[TOKEN_PUBLIC_SIZE],
                            struct token *token)
{
    (void)identity;
    (void)key;
    (void)public_key;
    (void)token;
    return TOKEN_FOREIGN;
}

void token_link_key(struct secure_psk *psk, const uint64_t proof[2])
{
    (void)proof;
    memset(psk, 0, sizeof *psk);
}
