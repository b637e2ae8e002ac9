/* secure.c - see secure.h. */
#include "secure.h"

#include "secure_channel.h"
#include "secure_library.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    /* plain bytes of one secure_write() */
    WRITE_MOST = 8 * RECORD_MOST,
    IN_FIRST = 512, /* holds any greeting of ours */
    IN_MOST = WRITE_MOST + RECORD_WHOLE,
};

bool secure_is_available(const char **why)
{
    return secure_library(why) != NULL;
}

void secure_psk_of_key(struct secure_psk *psk,
                       const uint8_t key[SECURE_KEY_SIZE])
{
    static const unsigned char label[] = "the identity of a run's key";
    const struct secure_library *l = secure_library(NULL);
    unsigned char digest[32] = {0};
    memset(psk, 0, sizeof *psk);
    memcpy(psk->key, key, SECURE_KEY_SIZE);
    if (!l || !l->HMAC(l->EVP_sha256(), key, SECURE_KEY_SIZE, label,
                       sizeof label - 1, digest, NULL))
        return; /* no channel opens without the library */
    memcpy(psk->identity, "run-", 4);
    for (size_t i = 0; i < 16; i++)
        snprintf(psk->identity + 4 + 2 * i, 3, "%02x", digest[i]);
}

struct secure *secure_open(const struct secure_keys *keys,
                           enum secure_side side)
{
    struct secure *s = calloc(1, sizeof *s);
    if (!s) return NULL;
    s->keys = keys;
    s->side = side;
    if (!secure_library(NULL))
        secure_break(s, SECURE_NO_LIBRARY);
    else if (side == SECURE_DIALER)
        secure_greeting_begin(s);
    return s;
}

void secure_close(struct secure *s)
{
    if (!s) return;
    secure_greeting_end(s);
    secure_cipher_close(&s->rx);
    secure_cipher_close(&s->tx);
    free(s->in);
    free(s->out);
    free(s);
}

/* What a dialer is told before there are keys; 0: nothing. */
static uint8_t alert_of(enum secure_fault fault)
{
    switch (fault) {
    case SECURE_WRONG_KEY:
        return 115; /* unknown_psk_identity */
    case SECURE_REFUSED:
        return 49; /* access_denied */
    case SECURE_NO_TLS:
        return 40; /* handshake_failure */
    default:
        return 0;
    }
}

void secure_break(struct secure *s, enum secure_fault fault)
{
    if (s->state == SECURE_BROKEN) return;
    bool tells = s->side == SECURE_ACCEPTOR && s->state == SECURE_GREETING &&
                 s->greetings <= 1 && alert_of(fault) != 0;
    s->state = SECURE_BROKEN;
    s->fault = fault;
    s->plain = s->plain_end = s->in_begin = s->in_end = 0;
    s->out_begin = s->out_end = s->writing = 0;
    uint8_t *to = tells ? secure_more(s, SECURE_REFUSAL_SIZE) : NULL;
    if (!to) return;
    secure_put_alert(to, alert_of(fault));
    s->out_end += SECURE_REFUSAL_SIZE;
}

enum secure_state secure_state(const struct secure *s)
{
    return s->state;
}

enum secure_fault secure_fault(const struct secure *s)
{
    return s->fault;
}

const char *secure_identity(const struct secure *s)
{
    return s->identity;
}

/* ------------------------------------------------------------------ input */

/* The bytes of the first record with its head; 0: its head is not there. */
static size_t first_record(const struct secure *s)
{
    if (s->in_end - s->in_begin < RECORD_HEAD) return 0;
    const uint8_t *head = s->in + s->in_begin;
    return RECORD_HEAD + ((size_t)head[3] << 8 | head[4]);
}

bool secure_has_input(const struct secure *s)
{
    size_t size = first_record(s);
    return s->plain < s->plain_end ||
           (size > 0 && s->in_end - s->in_begin >= size);
}

static bool make_room(struct secure *s, size_t size)
{
    if (size <= s->in_size) return true;
    uint8_t *more = realloc(s->in, size);
    if (!more) return false;
    s->in = more;
    s->in_size = size;
    return true;
}

uint8_t *secure_room(struct secure *s, size_t *size)
{
    *size = 0;
    if (s->state == SECURE_BROKEN || secure_has_input(s)) return NULL;
    size_t have = s->in_end - s->in_begin;
    if (have > 0) memmove(s->in, s->in + s->in_begin, have);
    s->in_begin = 0;
    s->in_end = have;
    size_t least = IN_FIRST, most = SECURE_GREETING_MAX;
    if (s->state == SECURE_OPEN) {
        least = RECORD_WHOLE;
        most = IN_MOST;
    }
    size_t want = s->filled ? 2 * s->in_size : s->in_size;
    if (want < least) want = least;
    if (want > most) want = most;
    s->filled = false;
    if (!make_room(s, want) && s->in_size == have) {
        secure_break(s, SECURE_NO_MEMORY);
        return NULL;
    }
    *size = s->in_size - have;
    return s->in + have;
}

void secure_received(struct secure *s, size_t size)
{
    PCCL_ASSERT(size <= s->in_size - s->in_end);
    s->moved |= size > 0;
    s->in_end += size;
    s->filled = s->in_end == s->in_size;
}

void secure_ended(struct secure *s)
{
    if (s->state == SECURE_GREETING) secure_break(s, SECURE_CUT);
}

static size_t take_plain(struct secure *s, uint8_t *to, size_t size)
{
    size_t n = s->plain_end - s->plain;
    if (n > size) n = size;
    if (n > 0) memcpy(to, s->in + s->plain, n);
    s->plain += n;
    return n;
}

/* What the other end says beside data: only that its next key begins. */
static bool is_key_update(const uint8_t *bytes, size_t size)
{
    static const uint8_t update[] = {24, 0, 0, 1, 0};
    return size == sizeof update && memcmp(bytes, update, size) == 0;
}

/* Opens the first record, into to[0, size) if it fits there. Returns the bytes
 * put there. */
static size_t open_record(struct secure *s, uint8_t *to, size_t size)
{
    uint8_t *record = s->in + s->in_begin;
    size_t sealed = secure_record_size(record);
    if (sealed == 0) {
        secure_break(s, SECURE_TAMPERED);
        return 0;
    }
    size_t plain = sealed - RECORD_TAIL;
    bool fits = plain <= size;
    uint8_t *at = fits ? to : record + RECORD_HEAD;
    uint8_t type = secure_unseal(&s->rx, record, sealed, at);
    s->in_begin += RECORD_HEAD + sealed;
    if (type == RECORD_DATA && fits) return plain;
    if (type == RECORD_DATA) {
        s->plain = (size_t)(at - s->in);
        s->plain_end = s->plain + plain;
        return take_plain(s, to, size);
    }
    bool update = type == RECORD_HANDSHAKE && is_key_update(at, plain);
    if (!update || !secure_cipher_next(&s->rx))
        secure_break(s, SECURE_TAMPERED);
    return 0;
}

size_t secure_read(struct secure *s, uint8_t *to, size_t size)
{
    if (s->state == SECURE_GREETING) secure_greeting_go_on(s);
    if (s->state != SECURE_OPEN) return 0;
    size_t done = take_plain(s, to, size);
    while (done < size && s->state == SECURE_OPEN && secure_has_input(s))
        done += open_record(s, to + done, size - done);
    /* Bytes before one that is wrong are right, and count. */
    return done;
}

/* ----------------------------------------------------------------- output */

uint8_t *secure_more(struct secure *s, size_t size)
{
    size_t need = s->out_end + size;
    if (need > s->out_size) {
        uint8_t *more = realloc(s->out, need);
        if (!more) {
            secure_break(s, SECURE_NO_MEMORY);
            return NULL;
        }
        s->out = more;
        s->out_size = need;
    }
    return s->out + s->out_end;
}

static bool put_record(struct secure *s, uint8_t type,
                       struct secure_source *from, size_t size)
{
    size_t n = secure_seal(&s->tx, type, from, size, s->out + s->out_end);
    if (n == 0) secure_break(s, SECURE_NO_MEMORY);
    s->out_end += n;
    return n > 0;
}

static bool put_key_update(struct secure *s)
{
    static const uint8_t update[] = {24, 0, 0, 1, 0};
    const struct secure_part part = {update, sizeof update};
    struct secure_source from = {&part, 0};
    s->rekeys = false;
    if (!put_record(s, RECORD_HANDSHAKE, &from, sizeof update)) return false;
    if (secure_cipher_next(&s->tx)) return true;
    secure_break(s, SECURE_NO_MEMORY);
    return false;
}

void secure_rekey(struct secure *s)
{
    s->rekeys = true;
}

size_t secure_write(struct secure *s, const struct secure_part *parts,
                    uint32_t count)
{
    struct secure_source from = {parts, 0};
    size_t size = 0;
    if (s->state != SECURE_OPEN || s->out_begin < s->out_end) return 0;
    for (uint32_t i = 0; i < count; i++) size += parts[i].size;
    if (size > WRITE_MOST) size = WRITE_MOST;
    size_t records = (size + RECORD_MOST - 1) / RECORD_MOST + 1;
    s->out_begin = s->out_end = 0;
    if (!secure_more(s, size + records * (RECORD_HEAD + RECORD_TAIL + 8)))
        return 0;
    for (size_t done = 0; done < size;) {
        size_t part = size - done < RECORD_MOST ? size - done : RECORD_MOST;
        bool due = s->rekeys || s->tx.number >= RECORD_LIMIT;
        if (due && !put_key_update(s)) return 0;
        if (!put_record(s, RECORD_DATA, &from, part)) return 0;
        done += part;
    }
    s->writing = size;
    return size;
}

size_t secure_out(const struct secure *s, const uint8_t **from)
{
    *from = s->out ? s->out + s->out_begin : NULL;
    return s->out_end - s->out_begin;
}

bool secure_moved(struct secure *s)
{
    bool moved = s->moved;
    s->moved = false;
    return moved;
}

bool secure_writes(const struct secure *s)
{
    return s->writing > 0;
}

size_t secure_sent(struct secure *s, size_t size)
{
    PCCL_ASSERT(size <= s->out_end - s->out_begin);
    s->moved |= size > 0;
    s->out_begin += size;
    if (s->out_begin < s->out_end) return 0;
    size_t whole = s->writing;
    s->out_begin = s->out_end = s->writing = 0;
    return whole;
}
