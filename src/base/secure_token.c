/* secure_token.c - see secure_token.h. */
#include "secure_token.h"

#include "cursor.h"
#include "hex.h"
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

/* All but the signature, in either direction. */
static void plain_field(struct cursor *c, struct token *t,
                        uint8_t issuer[ISSUER])
{
    uint8_t version = VERSION, length = (uint8_t)strlen(t->grant.name);
    cursor_u8(c, &version);
    cursor_bytes(c, issuer, ISSUER);
    cursor_flag(c, &t->grant.any_group);
    cursor_u32(c, &t->grant.group);
    cursor_u8(c, &t->grant.rights);
    cursor_u64(c, &t->issued);
    cursor_u64(c, &t->expires);
    cursor_u8(c, &length);
    cursor_limit(c, length, GRANT_NAME_MAX + 1);
    if (!c->failed) cursor_bytes(c, (uint8_t *)t->grant.name, length);
}

static bool is_plausible(const struct token *t)
{
    const uint8_t all = GRANT_JOIN | GRANT_OBSERVE;
    return token_name_is_valid(t->grant.name) && t->grant.rights != 0 &&
           (t->grant.rights & ~all) == 0 &&
           (t->expires == 0 || t->expires > t->issued);
}

static size_t put_plain(const struct token *token,
                        uint8_t public_key[TOKEN_PUBLIC_SIZE],
                        uint8_t plain[PLAIN_MOST])
{
    struct token t = *token;
    struct cursor c = {.out = plain, .left = PLAIN_MOST};
    if (t.grant.any_group) t.grant.group = 0;
    plain_field(&c, &t, public_key);
    return c.done;
}

/* False: it is not what put_plain() makes. */
static bool get_plain(struct token *t, const uint8_t *plain, size_t size)
{
    struct cursor c = {.in = plain, .left = size};
    uint8_t issuer[ISSUER];
    *t = (struct token){0};
    plain_field(&c, t, issuer);
    return !c.failed && FIXED + strlen(t->grant.name) == size &&
           is_plausible(t);
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
    struct cursor c = {.out = bytes, .left = sizeof bytes};
    for (int i = 0; i < 2; i++) cursor_u64(&c, &(uint64_t){proof[i]});
    (void)derive(bytes, sizeof bytes, "the key of links", NULL, 0, key);
    secure_psk_of_key(psk, key);
}
