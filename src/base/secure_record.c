/* secure_record.c - see secure_record.h. */
#include "secure_record.h"

#include "secure_library.h"

#include <string.h>

enum { TAG = 16, LABEL_MOST = 16 };

/* HKDF-Expand-Label without a context, of at most one block. */
static bool expand(const uint8_t secret[RECORD_SECRET], const char *label,
                   uint8_t *out, size_t size)
{
    const struct secure_library *l = secure_library(NULL);
    uint8_t info[4 + 6 + LABEL_MOST + 2];
    uint8_t block[RECORD_SECRET];
    size_t length = strlen(label);
    info[0] = 0;
    info[1] = (uint8_t)size;
    info[2] = (uint8_t)(6 + length);
    memcpy(info + 3, "tls13 ", 6);
    memcpy(info + 9, label, length);
    info[9 + length] = 0;
    info[10 + length] = 1; /* the number of the block */
    bool ok = l->HMAC(l->EVP_sha256(), secret, RECORD_SECRET, info, 11 + length,
                      block, NULL) != NULL;
    if (ok) memcpy(out, block, size);
    l->OPENSSL_cleanse(block, sizeof block);
    return ok;
}

static bool set_key(struct secure_cipher *c)
{
    const struct secure_library *l = secure_library(NULL);
    uint8_t key[16];
    c->number = 0;
    bool ok = expand(c->secret, "key", key, sizeof key) &&
              expand(c->secret, "iv", c->iv, sizeof c->iv);
    if (ok && c->seals)
        ok = l->EVP_EncryptInit_ex(c->context, l->cipher, NULL, key, NULL) == 1;
    else if (ok)
        ok = l->EVP_DecryptInit_ex(c->context, l->cipher, NULL, key, NULL) == 1;
    l->OPENSSL_cleanse(key, sizeof key);
    return ok;
}

bool secure_cipher_open(struct secure_cipher *c,
                        const uint8_t secret[RECORD_SECRET], bool seals)
{
    *c = (struct secure_cipher){.seals = seals};
    c->context = secure_library(NULL)->EVP_CIPHER_CTX_new();
    if (!c->context) return false;
    memcpy(c->secret, secret, RECORD_SECRET);
    return set_key(c);
}

bool secure_cipher_next(struct secure_cipher *c)
{
    uint8_t next[RECORD_SECRET];
    if (!expand(c->secret, "traffic upd", next, sizeof next)) return false;
    memcpy(c->secret, next, sizeof next);
    secure_library(NULL)->OPENSSL_cleanse(next, sizeof next);
    return set_key(c);
}

void secure_cipher_close(struct secure_cipher *c)
{
    if (!c->context) return;
    const struct secure_library *l = secure_library(NULL);
    l->EVP_CIPHER_CTX_free(c->context);
    l->OPENSSL_cleanse(c, sizeof *c);
}

static void nonce(struct secure_cipher *c, uint8_t out[12])
{
    memcpy(out, c->iv, 12);
    for (int i = 0; i < 8; i++)
        out[11 - i] ^= (uint8_t)(c->number >> (8 * i) & 0xff);
    c->number++;
}

size_t secure_seal(struct secure_cipher *c, uint8_t type,
                   struct secure_source *from, size_t size, uint8_t *record)
{
    const struct secure_library *l = secure_library(NULL);
    uint8_t iv[12];
    uint8_t *out = record + RECORD_HEAD;
    size_t length = size + RECORD_TAIL;
    int n = 0;
    PCCL_ASSERT(size <= RECORD_MOST);
    nonce(c, iv);
    record[0] = RECORD_DATA;
    record[1] = record[2] = 3;
    record[3] = (uint8_t)(length >> 8);
    record[4] = (uint8_t)(length & 0xff);
    bool ok =
        l->EVP_EncryptInit_ex(c->context, NULL, NULL, NULL, iv) == 1 &&
        l->EVP_EncryptUpdate(c->context, NULL, &n, record, RECORD_HEAD) == 1;
    for (size_t left = size; ok && left > 0;) {
        size_t part = from->parts->size - from->skip;
        if (part > left) part = left;
        if (part > 0)
            ok = l->EVP_EncryptUpdate(c->context, out, &n,
                                      from->parts->from + from->skip,
                                      (int)part) == 1;
        out += part;
        left -= part;
        from->skip += part;
        if (from->skip == from->parts->size) {
            from->parts++;
            from->skip = 0;
        }
    }
    ok = ok && l->EVP_EncryptUpdate(c->context, out, &n, &type, 1) == 1 &&
         l->EVP_EncryptFinal_ex(c->context, out + 1, &n) == 1 &&
         l->EVP_CIPHER_CTX_ctrl(c->context, EVP_CTRL_AEAD_GET_TAG, TAG,
                                out + 1) == 1;
    return ok ? RECORD_HEAD + length : 0;
}

size_t secure_record_size(const uint8_t head[RECORD_HEAD])
{
    size_t size = (size_t)head[3] << 8 | head[4];
    bool data = head[0] == RECORD_DATA && head[1] == 3 && head[2] == 3;
    return data && size >= RECORD_TAIL && size <= RECORD_MOST + RECORD_TAIL
               ? size
               : 0;
}

uint8_t secure_unseal(struct secure_cipher *c, const uint8_t *record,
                      size_t size, uint8_t *to)
{
    const struct secure_library *l = secure_library(NULL);
    const uint8_t *from = record + RECORD_HEAD;
    size_t plain = size - RECORD_TAIL;
    uint8_t iv[12], type = 0, tag[TAG], none[TAG];
    int n = 0;
    nonce(c, iv);
    memcpy(tag, from + plain + 1, TAG);
    bool ok =
        l->EVP_DecryptInit_ex(c->context, NULL, NULL, NULL, iv) == 1 &&
        l->EVP_CIPHER_CTX_ctrl(c->context, EVP_CTRL_AEAD_SET_TAG, TAG, tag) ==
            1 &&
        l->EVP_DecryptUpdate(c->context, NULL, &n, record, RECORD_HEAD) == 1 &&
        (plain == 0 ||
         l->EVP_DecryptUpdate(c->context, to, &n, from, (int)plain) == 1) &&
        l->EVP_DecryptUpdate(c->context, &type, &n, from + plain, 1) == 1 &&
        l->EVP_DecryptFinal_ex(c->context, none, &n) == 1;
    return ok ? type : 0;
}
