/* secure_token.c - see secure_token.h. */
#include "secure_token.h"

#include "secure_hex.h"
#include "secure_library.h"

#include <string.h>
#include <sys/random.h>

/* A token, before it is sealed: version, the first bytes of the issuer's public
 * key, flags, group, rights, issued, expires, size of the name, name,
 * signature. Numbers are big-endian. Sealed: a nonce before it and a tag behind
 * it. */
enum {
    VERSION = 1,
    ISSUER = 8,
    FIXED = 1 + ISSUER + 1 + 4 + 1 + 8 + 8 + 1,
    SIGNATURE = 64,
    PLAIN_MOST = FIXED + GRANT_NAME_MAX + SIGNATURE,
    NONCE = 12,
    TAG = 16,
    SEALED_LEAST = NONCE + FIXED + 1 + SIGNATURE + TAG,
    SEALED_MOST = NONCE + PLAIN_MOST + TAG,
    DIGEST = 32,
};

static const char prefix[] = "token-"; /* of the identity */

_Static_assert(sizeof prefix + 2 * SEALED_MOST <= SECURE_NAME_SIZE,
               "the longest token is an identity");

/* --------------------------------------------------------------- derived keys
 */

static bool derive(const uint8_t *key, size_t key_size, const char *label,
                   const uint8_t *more, size_t more_size, uint8_t out[DIGEST])
{
    const struct secure_library *l = secure_library(NULL);
    uint8_t text[64 + SEALED_MOST];
    size_t size = strlen(label) + 1;
    if (!l) return false;
    PCCL_ASSERT(size + more_size <= sizeof text);
    memcpy(text, label, size);
    if (more_size > 0) memcpy(text + size, more, more_size);
    return l->HMAC(l->EVP_sha256(), key, (int)key_size, text, size + more_size,
                   out, NULL) != NULL;
}

static bool secret_of(const uint8_t *sealed, size_t size,
                      const uint8_t key[SECURE_KEY_SIZE],
                      uint8_t secret[SECURE_KEY_SIZE])
{
    return derive(key, SECURE_KEY_SIZE, "the secret of a token", sealed, size,
                  secret);
}

/* ------------------------------------------------------------------- the seal
 */

static bool seal(const uint8_t key[SECURE_KEY_SIZE], const uint8_t *plain,
                 size_t size, uint8_t *sealed)
{
    const struct secure_library *l = secure_library(NULL);
    uint8_t derived[DIGEST];
    int n = 0;
    if (getrandom(sealed, NONCE, 0) != NONCE ||
        !derive(key, SECURE_KEY_SIZE, "the seal of tokens", NULL, 0, derived))
        return false;
    EVP_CIPHER_CTX *c = l->EVP_CIPHER_CTX_new();
    bool ok = c &&
              l->EVP_EncryptInit_ex(c, l->cipher, NULL, derived, sealed) == 1 &&
              l->EVP_EncryptUpdate(c, sealed + NONCE, &n, plain, (int)size) &&
              l->EVP_EncryptFinal_ex(c, sealed + NONCE + size, &n) == 1 &&
              l->EVP_CIPHER_CTX_ctrl(c, EVP_CTRL_GCM_GET_TAG, TAG,
                                     sealed + NONCE + size) == 1;
    l->EVP_CIPHER_CTX_free(c);
    l->OPENSSL_cleanse(derived, sizeof derived);
    return ok;
}

/* Returns the plain size; 0: it is not sealed with this key. */
static size_t unseal(const uint8_t key[SECURE_KEY_SIZE], const uint8_t *sealed,
                     size_t size, uint8_t plain[PLAIN_MOST])
{
    const struct secure_library *l = secure_library(NULL);
    uint8_t derived[DIGEST], tag[TAG];
    size_t inner = size - NONCE - TAG;
    int n = 0;
    if (!derive(key, SECURE_KEY_SIZE, "the seal of tokens", NULL, 0, derived))
        return 0;
    memcpy(tag, sealed + size - TAG, TAG);
    EVP_CIPHER_CTX *c = l->EVP_CIPHER_CTX_new();
    bool ok = c &&
              l->EVP_DecryptInit_ex(c, l->cipher, NULL, derived, sealed) == 1 &&
              l->EVP_DecryptUpdate(c, plain, &n, sealed + NONCE, (int)inner) &&
              l->EVP_CIPHER_CTX_ctrl(c, EVP_CTRL_GCM_SET_TAG, TAG, tag) == 1 &&
              l->EVP_DecryptFinal_ex(c, plain + inner, &n) == 1;
    l->EVP_CIPHER_CTX_free(c);
    l->OPENSSL_cleanse(derived, sizeof derived);
    l->ERR_clear_error();
    return ok ? inner : 0;
}

/* The sealed bytes of an identity; 0: it is of no token. */
static size_t sealed_of(const char *identity, uint8_t sealed[SEALED_MOST])
{
    size_t skip = sizeof prefix - 1;
    if (strncmp(identity, prefix, skip) != 0) return 0;
    size_t size = strlen(identity + skip) / 2;
    if (size < SEALED_LEAST || size > SEALED_MOST) return 0;
    return hex_read(identity + skip, sealed, size) ? size : 0;
}

/* -------------------------------------------------------------- the signature
 */

/* What is signed: a label, which run the token is for, and the token. */
static size_t signed_text(const uint8_t key[SECURE_KEY_SIZE],
                          const uint8_t *plain, size_t size,
                          uint8_t text[DIGEST + PLAIN_MOST])
{
    if (!derive(key, SECURE_KEY_SIZE, "the run of a token", NULL, 0, text))
        return 0;
    memcpy(text + DIGEST, plain, size);
    return DIGEST + size;
}

static bool sign(const uint8_t seed[TOKEN_SEED_SIZE], const uint8_t *text,
                 size_t size, uint8_t signature[SIGNATURE])
{
    const struct secure_library *l = secure_library(NULL);
    size_t length = SIGNATURE;
    EVP_PKEY *k = l->EVP_PKEY_new_raw_private_key(EVP_PKEY_ED25519, NULL, seed,
                                                  TOKEN_SEED_SIZE);
    EVP_MD_CTX *c = l->EVP_MD_CTX_new();
    bool ok = k && c && l->EVP_DigestSignInit(c, NULL, NULL, NULL, k) == 1 &&
              l->EVP_DigestSign(c, signature, &length, text, size) == 1;
    l->EVP_MD_CTX_free(c);
    l->EVP_PKEY_free(k);
    l->ERR_clear_error();
    return ok && length == SIGNATURE;
}

static bool is_signed(const uint8_t public_key[TOKEN_PUBLIC_SIZE],
                      const uint8_t *text, size_t size,
                      const uint8_t signature[SIGNATURE])
{
    const struct secure_library *l = secure_library(NULL);
    EVP_PKEY *k = l->EVP_PKEY_new_raw_public_key(EVP_PKEY_ED25519, NULL,
                                                 public_key, TOKEN_PUBLIC_SIZE);
    EVP_MD_CTX *c = l->EVP_MD_CTX_new();
    bool ok = k && c && l->EVP_DigestVerifyInit(c, NULL, NULL, NULL, k) == 1 &&
              l->EVP_DigestVerify(c, signature, SIGNATURE, text, size) == 1;
    l->EVP_MD_CTX_free(c);
    l->EVP_PKEY_free(k);
    l->ERR_clear_error();
    return ok;
}

bool token_public(const uint8_t seed[TOKEN_SEED_SIZE],
                  uint8_t public_key[TOKEN_PUBLIC_SIZE])
{
    const struct secure_library *l = secure_library(NULL);
    size_t size = TOKEN_PUBLIC_SIZE;
    if (!l) return false;
    EVP_PKEY *k = l->EVP_PKEY_new_raw_private_key(EVP_PKEY_ED25519, NULL, seed,
                                                  TOKEN_SEED_SIZE);
    bool ok = k && l->EVP_PKEY_get_raw_public_key(k, public_key, &size) == 1;
    l->EVP_PKEY_free(k);
    l->ERR_clear_error();
    return ok && size == TOKEN_PUBLIC_SIZE;
}

/* ------------------------------------------------------------------- the form
 */

static uint8_t *put(uint8_t *to, uint64_t value, size_t size)
{
    for (size_t i = 0; i < size; i++)
        to[i] = (uint8_t)(value >> (8 * (size - 1 - i)) & 0xff);
    return to + size;
}

static uint64_t get(const uint8_t **from, size_t size)
{
    uint64_t value = 0;
    for (size_t i = 0; i < size; i++) value = value << 8 | *(*from)++;
    return value;
}

static bool is_plausible(const struct token *t)
{
    const uint8_t all = GRANT_JOIN | GRANT_OBSERVE;
    return token_name_is_valid(t->grant.name) && t->grant.rights != 0 &&
           (t->grant.rights & ~all) == 0 &&
           (t->expires == 0 || t->expires > t->issued);
}

static size_t put_plain(const struct token *t,
                        const uint8_t public_key[TOKEN_PUBLIC_SIZE],
                        uint8_t plain[PLAIN_MOST])
{
    size_t length = strlen(t->grant.name);
    uint8_t *to = put(plain, VERSION, 1);
    memcpy(to, public_key, ISSUER);
    to = put(to + ISSUER, t->grant.any_group, 1);
    to = put(to, t->grant.any_group ? 0 : t->grant.group, 4);
    to = put(to, t->grant.rights, 1);
    to = put(to, t->issued, 8);
    to = put(to, t->expires, 8);
    to = put(to, length, 1);
    memcpy(to, t->grant.name, length);
    return FIXED + length;
}

/* All but the signature is what put_plain() makes. False: it is not. */
static bool get_plain(struct token *t, const uint8_t *plain, size_t size)
{
    const uint8_t *from = plain + 1 + ISSUER;
    *t = (struct token){0};
    uint64_t flags = get(&from, 1);
    t->grant.any_group = flags != 0;
    t->grant.group = (uint32_t)get(&from, 4);
    t->grant.rights = (uint8_t)get(&from, 1);
    t->issued = get(&from, 8);
    t->expires = get(&from, 8);
    size_t length = (size_t)get(&from, 1);
    if (flags > 1 || length > GRANT_NAME_MAX || size != FIXED + length)
        return false;
    memcpy(t->grant.name, from, length);
    return strlen(t->grant.name) == length && is_plausible(t);
}

/* -------------------------------------------------------------------- tokens
 */

bool token_issue(const struct token *token, const uint8_t seed[TOKEN_SEED_SIZE],
                 const uint8_t key[SECURE_KEY_SIZE], struct secure_psk *psk)
{
    uint8_t public_key[TOKEN_PUBLIC_SIZE], plain[PLAIN_MOST];
    uint8_t text[DIGEST + PLAIN_MOST], sealed[SEALED_MOST];
    if (!is_plausible(token) || !token_public(seed, public_key)) return false;
    size_t size = put_plain(token, public_key, plain);
    size_t length = signed_text(key, plain, size, text);
    if (length == 0 || !sign(seed, text, length, plain + size)) return false;
    size += SIGNATURE;
    if (!seal(key, plain, size, sealed)) return false;
    size += NONCE + TAG;
    memcpy(psk->identity, prefix, sizeof prefix);
    hex_print(sealed, size, psk->identity + sizeof prefix - 1);
    return secret_of(sealed, size, key, psk->key);
}

enum token_fault token_secret(const char *identity,
                              const uint8_t key[SECURE_KEY_SIZE],
                              uint8_t secret[SECURE_KEY_SIZE])
{
    uint8_t sealed[SEALED_MOST], plain[PLAIN_MOST];
    size_t size = sealed_of(identity, sealed);
    if (size == 0 || unseal(key, sealed, size, plain) == 0)
        return TOKEN_FOREIGN;
    return secret_of(sealed, size, key, secret) ? TOKEN_FINE : TOKEN_FOREIGN;
}

enum token_fault token_open(const char *identity,
                            const uint8_t key[SECURE_KEY_SIZE],
                            const uint8_t public_key[TOKEN_PUBLIC_SIZE],
                            struct token *token)
{
    uint8_t sealed[SEALED_MOST], plain[PLAIN_MOST];
    uint8_t text[DIGEST + PLAIN_MOST];
    size_t size = sealed_of(identity, sealed);
    if (size > 0) size = unseal(key, sealed, size, plain);
    if (size == 0) return TOKEN_FOREIGN;
    if (plain[0] != VERSION) return TOKEN_BROKEN;
    if (memcmp(plain + 1, public_key, ISSUER) != 0) return TOKEN_OTHER_ISSUER;
    size -= SIGNATURE;
    size_t length = signed_text(key, plain, size, text);
    if (!is_signed(public_key, text, length, plain + size)) return TOKEN_FORGED;
    return get_plain(token, plain, size) ? TOKEN_FINE : TOKEN_BROKEN;
}

void token_link_key(struct secure_psk *psk, const uint64_t proof[2])
{
    uint8_t bytes[16], key[DIGEST] = {0};
    (void)put(put(bytes, proof[0], 8), proof[1], 8);
    (void)derive(bytes, sizeof bytes, "the key of links", NULL, 0, key);
    secure_psk_of_key(psk, key);
}
