/* secure_none.c - secure.h in a build without the headers of OpenSSL: every
 * channel is broken from the start. */
#include "secure.h"

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

void secure_rekey(struct secure *s)
{
    (void)s;
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
