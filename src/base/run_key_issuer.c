/* run_key_issuer.c - the files of an issuer of tokens. See run_key.h. */
#include "run_key.h"

#include "hex.h"
#include "secure_token.h"

#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

_Static_assert((int)ISSUER_KEY_SIZE == TOKEN_SEED_SIZE &&
                   (int)ISSUER_KEY_SIZE == TOKEN_PUBLIC_SIZE,
               "both are of Ed25519");

enum { PATH_MOST = 4096 };

static const char private_head[] = "pccl-issuer 1 ";
static const char public_head[] = "pccl-issuer-public 1 ";

static bool write_one(const char *path, bool secret,
                      const uint8_t key[ISSUER_KEY_SIZE], char *error,
                      size_t error_size)
{
    char hex[2 * ISSUER_KEY_SIZE + 1], line[RUN_KEY_LINE];
    hex_print(key, ISSUER_KEY_SIZE, hex);
    snprintf(line, sizeof line, "%s%s\n", secret ? private_head : public_head,
             hex);
    bool done = run_key_write_line(path, secret, line, error, error_size);
    run_key_forget(hex, sizeof hex);
    run_key_forget(line, sizeof line);
    return done;
}

bool run_issuer_make(const char *path, char *error, size_t error_size)
{
    uint8_t seed[ISSUER_KEY_SIZE], public_key[ISSUER_KEY_SIZE];
    char other[PATH_MOST];
    if (snprintf(other, sizeof other, "%s.pub", path) >= (int)sizeof other) {
        snprintf(error, error_size, "the name of the file is too long");
        return false;
    }
    if (getrandom(seed, sizeof seed, 0) != (ssize_t)sizeof seed ||
        !token_public(seed, public_key)) {
        snprintf(error, error_size, "OpenSSL makes no Ed25519 key here");
        return false;
    }
    bool done = write_one(path, true, seed, error, error_size);
    run_key_forget(seed, sizeof seed);
    if (!done) return false;
    if (write_one(other, false, public_key, error, error_size)) return true;
    (void)unlink(path);
    return false;
}

bool run_issuer_read(const char *path, bool secret,
                     uint8_t key[ISSUER_KEY_SIZE], char *error,
                     size_t error_size)
{
    const char *head = secret ? private_head : public_head;
    const char *other = secret ? public_head : private_head;
    char line[RUN_KEY_LINE];
    if (!run_key_read_line(path, false, line, error, error_size)) return false;
    const char *fault = NULL;
    if (strncmp(line, other, strlen(other)) == 0)
        fault = secret ? "it is the issuer's public key, which signs nothing"
                       : "it is the issuer's private key: the coordinator "
                         "takes the one with .pub, and needs no other";
    else if (strncmp(line, head, strlen(head)) != 0 ||
             !hex_read(line + strlen(head), key, ISSUER_KEY_SIZE))
        fault = "it is no key of an issuer (pccl-master --make-issuer makes "
                "one)";
    if (fault) snprintf(error, error_size, "%s: %s", path, fault);
    bool done = !fault && (!secret || run_key_read_line(path, true, line, error,
                                                        error_size));
    run_key_forget(line, sizeof line);
    return done;
}
