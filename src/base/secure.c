/* secure.c - see secure.h. */
#include "secure.h"

#include "secure_channel.h"

#include <stdlib.h>
#include <string.h>

enum {
    /* plain bytes of one secure_write() */
    WRITE_MOST = 8 * RECORD_MOST,
    IN_FIRST = 512, /* holds any greeting of ours */
    IN_MOST = WRITE_MOST + RECORD_WHOLE,
};

struct secure *secure_open(const struct secure_keys *keys,
                           enum secure_side side)
{
    struct secure *s = calloc(1, sizeof *s);
    if (!s) return NULL;
    s->keys = keys;
    s->side = side;
    if (!secure_is_available(NULL))
        secure_break(s, SECURE_NO_LIBRARY);
    else if (side == SECURE_DIALER)
        secure_greeting_begin(s);
    return s;
}

void secure_close(struct secure *s)
{
    if (!s) return;
    secure_greeting_end(s);
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
    s->in_begin = s->in_given = s->in_end = 0;
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

/* The bytes of the first record with its head; 0: it is not there as a whole.
 */
static size_t first_record(const struct secure *s)
{
    size_t have = s->in_end - s->in_begin;
    if (have < RECORD_HEAD) return 0;
    const uint8_t *head = s->in + s->in_begin;
    size_t size = RECORD_HEAD + ((size_t)head[3] << 8 | head[4]);
    return have >= size ? size : 0;
}

void secure_give_record(struct secure *s)
{
    s->in_given = s->in_begin + first_record(s);
}

bool secure_has_input(const struct secure *s)
{
    return first_record(s) > 0 ||
           (s->state == SECURE_OPEN && secure_is_pending(s));
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
    if (s->state == SECURE_BROKEN || first_record(s) > 0) return NULL;
    size_t have = s->in_end - s->in_begin;
    if (have > 0) memmove(s->in, s->in + s->in_begin, have);
    s->in_begin = s->in_given = 0;
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

size_t secure_read(struct secure *s, uint8_t *to, size_t size)
{
    size_t done = 0;
    if (s->state == SECURE_GREETING) secure_greeting_go_on(s);
    while (done < size && s->state == SECURE_OPEN && secure_has_input(s))
        done += secure_read_record(s, to + done, size - done);
    /* Bytes before one that is wrong are right, and count. */
    return done;
}

/* ----------------------------------------------------------------- output */

uint8_t *secure_more(struct secure *s, size_t size)
{
    size_t need = s->out_end + size;
    if (need > s->out_size) {
        if (need < 2 * s->out_size) need = 2 * s->out_size;
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

/* The first bytes of parts[0], from *skip on, and of those behind it; moves on
 * by as many. A small part shares its record with the next one, so that the
 * head of a frame costs no record of its own. */
static const uint8_t *next_bytes(const struct secure_part **parts, size_t *skip,
                                 size_t left, uint8_t mixed[RECORD_MOST],
                                 size_t *size)
{
    while (*skip == (*parts)->size) {
        ++*parts;
        *skip = 0;
    }
    const uint8_t *first = (*parts)->from + *skip;
    *size = (*parts)->size - *skip;
    if (*size >= left || *size >= RECORD_MOST) {
        if (*size > left) *size = left;
        /* Whole records, unless nothing comes behind them. */
        if (*size < left) *size -= *size % RECORD_MOST;
        *skip += *size;
        return first;
    }
    for (*size = 0; *size < RECORD_MOST && *size < left;) {
        size_t n = (*parts)->size - *skip, room = RECORD_MOST - *size;
        if (n > room) n = room;
        if (n > left - *size) n = left - *size;
        if (n > 0) memcpy(mixed + *size, (*parts)->from + *skip, n);
        *size += n;
        *skip += n;
        if (*skip == (*parts)->size && *size < left) {
            ++*parts;
            *skip = 0;
        }
    }
    return mixed;
}

size_t secure_write(struct secure *s, const struct secure_part *parts,
                    uint32_t count)
{
    uint8_t mixed[RECORD_MOST];
    size_t size = 0, skip = 0, n;
    if (s->state != SECURE_OPEN || s->out_begin < s->out_end) return 0;
    for (uint32_t i = 0; i < count; i++) size += parts[i].size;
    if (size > WRITE_MOST) size = WRITE_MOST;
    s->out_begin = s->out_end = 0;
    for (size_t done = 0; done < size; done += n) {
        const uint8_t *from = next_bytes(&parts, &skip, size - done, mixed, &n);
        if (!secure_write_records(s, from, n)) return 0;
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
