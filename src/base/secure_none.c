/* secure_none.c - what needs OpenSSL, in a build without its headers: every
 * channel is broken from the start, and no token is one. */
#include "secure_channel.h"
#include "secure_token.h"

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

void secure_greeting_begin(struct secure *s)
{
    (void)s;
}

void secure_greeting_go_on(struct secure *s)
{
    (void)s;
}

void secure_greeting_end(struct secure *s)
{
    (void)s;
}

bool secure_is_pending(const struct secure *s)
{
    (void)s;
    return false;
}

size_t secure_read_record(struct secure *s, uint8_t *to, size_t size)
{
    (void)s, (void)to, (void)size;
    return 0;
}

bool secure_write_records(struct secure *s, const uint8_t *from, size_t size)
{
    (void)s, (void)from, (void)size;
    return false;
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
