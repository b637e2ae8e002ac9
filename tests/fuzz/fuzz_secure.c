/* fuzz_secure.c - any bytes for an end of a secure channel: in place of the
 * greeting, behind some records of a true one, or behind all of it; and what
 * two ends say to each other, which somebody between them changes, with new
 * keys at any time. What is read is what the other end has sealed as data, from
 * its first byte on. */
#include "fuzz.h"

#include "../../src/base/secure_channel.h"
#include "../../src/base/secure_library.h"

#include <string.h>

enum { WRITE_MAX = 3 * 65535, READ_MAX = 20000 };

static struct secure_keys keys;

static size_t give(struct secure *to, const uint8_t *from, size_t size,
                   size_t step)
{
    size_t all = size, room;
    uint8_t plain[700];
    while (size > 0) {
        uint8_t *at = secure_room(to, &room);
        if (at && room > step) room = step;
        if (at && room > size) room = size;
        if (at) memcpy(at, from, room);
        if (at) secure_received(to, room);
        from += at ? room : 0;
        size -= at ? room : 0;
        size_t got = secure_read(to, plain, sizeof plain);
        assert(got == 0);
        if (!at && secure_state(to) == SECURE_BROKEN) break;
    }
    return all - size;
}

/* The next bytes of one end go to the other one. */
static void carry(struct secure *from, struct secure *to)
{
    const uint8_t *out;
    size_t size = secure_out(from, &out);
    if (size == 0) return;
    (void)give(to, out, size, size);
    (void)secure_sent(from, size);
}

/* ------------------------------------------------------- after the greeting */

struct talk {
    struct secure *ends[2];
    uint32_t sent[2], got[2]; /* plain bytes that an end has written, read */
};

/* The stream that each end writes. */
static uint8_t byte_at(uint32_t place)
{
    return (uint8_t)(place * 31u + (place >> 8));
}

static void read_some(struct talk *t, int side, size_t most)
{
    static uint8_t plain[READ_MAX];
    if (most > sizeof plain) most = sizeof plain;
    size_t n = secure_read(t->ends[side], plain, most);
    assert(n <= most);
    for (size_t i = 0; i < n; i++) assert(plain[i] == byte_at(t->got[side]++));
    assert(t->got[side] <= t->sent[!side]);
}

/* What an end has to send goes to the other one in steps; one byte of it is
 * changed if `flip` is not 0. */
static void deliver(struct talk *t, int side, size_t step, uint32_t at,
                    uint8_t flip)
{
    struct secure *from = t->ends[side], *to = t->ends[!side];
    const uint8_t *out;
    size_t room, size;
    while ((size = secure_out(from, &out)) > 0) {
        uint8_t *in = secure_room(to, &room);
        if (!in && secure_state(to) == SECURE_BROKEN) {
            (void)secure_sent(from, size);
            return;
        }
        if (!in) {
            read_some(t, !side, READ_MAX);
            continue;
        }
        if (room > size) room = size;
        if (room > step) room = step;
        memcpy(in, out, room);
        if (at < room) in[at] ^= flip;
        at = at < room ? UINT32_MAX : at - (uint32_t)room;
        secure_received(to, room);
        (void)secure_sent(from, room);
        (void)secure_moved(to);
    }
}

static void write_some(struct talk *t, int side, struct fuzz_input *in)
{
    static uint8_t plain[WRITE_MAX];
    size_t size = 3 * (size_t)fuzz_u16(in);
    size_t first = fuzz_u16(in);
    if (fuzz_u8(in) & 3) size %= 600;
    if (first > size) first = size;
    for (size_t i = 0; i < size; i++)
        plain[i] = byte_at(t->sent[side] + (uint32_t)i);
    const struct secure_part parts[] = {
        {plain, first}, {plain, 0}, {plain + first, size - first}};
    size_t n = secure_write(t->ends[side], parts, ARRAY_COUNT(parts));
    assert(n <= size);
    t->sent[side] += (uint32_t)n;
    assert(n == 0 || secure_writes(t->ends[side]));
}

/* The other end answers with a new key of its own. */
static void ask_for_key(struct secure *from)
{
    if (secure_state(from) != SECURE_OPEN) return;
    (void)secure_library(NULL)->SSL_key_update(from->ssl,
                                               SSL_KEY_UPDATE_REQUESTED);
}

static void talk(struct talk *t, struct fuzz_input *in)
{
    while (in->left > 0) {
        uint8_t what = fuzz_u8(in);
        int side = what & 1;
        switch (what >> 1 & 7) {
        case 0:
        case 1:
            write_some(t, side, in);
            break;
        case 2:
            if (secure_state(t->ends[side]) == SECURE_OPEN)
                secure_rekey(t->ends[side]);
            break;
        case 3:
            read_some(t, side, 1u + fuzz_u16(in));
            break;
        case 4:
            ask_for_key(t->ends[side]);
            break;
        case 5: /* somebody between them */
            deliver(t, side, SIZE_MAX, fuzz_u16(in),
                    (uint8_t)(1u << fuzz_below(in, 8)));
            break;
        default:
            deliver(t, side, 1u + fuzz_u16(in), 0, 0);
            break;
        }
    }
    for (int side = 0; side < 2; side++) {
        deliver(t, side, SIZE_MAX, 0, 0);
        while (secure_state(t->ends[!side]) == SECURE_OPEN &&
               secure_has_input(t->ends[!side]))
            read_some(t, !side, READ_MAX);
    }
}

/* -------------------------------------------------------------------- tests */

static enum secure_fault find(void *user, const char *identity,
                              uint8_t key[SECURE_KEY_SIZE])
{
    const enum secure_fault *answer = user;
    if (strcmp(identity, keys.own.identity) != 0) return SECURE_WRONG_KEY;
    memcpy(key, keys.own.key, SECURE_KEY_SIZE);
    return *answer;
}

/* The greeting of two ends, which may have other keys, and what follows it. */
static void greet_and_talk(struct fuzz_input *in)
{
    struct secure_keys acceptor = keys, dialer = keys;
    enum secure_fault answer = SECURE_FINE;
    uint8_t odd = fuzz_u8(in);
    if (odd & 1) acceptor.find = find;
    acceptor.user = &answer;
    if (odd > 240) answer = SECURE_REFUSED;
    if (odd > 250) dialer.own.key[0] ^= odd;
    if (odd > 253) dialer.own.identity[5] ^= 1;
    struct talk t = {.ends = {secure_open(&dialer, SECURE_DIALER),
                              secure_open(&acceptor, SECURE_ACCEPTOR)}};
    assert(t.ends[0] && t.ends[1]);
    for (int i = 0; i < 4; i++) carry(t.ends[i & 1], t.ends[!(i & 1)]);
    bool open = secure_state(t.ends[0]) == SECURE_OPEN &&
                secure_state(t.ends[1]) == SECURE_OPEN;
    assert(open == (odd <= 240 || (odd <= 250 && !(odd & 1))));
    if (open) talk(&t, in);
    for (int i = 0; i < 2; i++) {
        secure_ended(t.ends[i]);
        assert(secure_fault_text(secure_fault(t.ends[i])));
        secure_close(t.ends[i]);
    }
}

/* Bytes of a stranger. */
static void strange(const uint8_t *in, size_t size)
{
    struct secure *ends[] = {secure_open(&keys, SECURE_DIALER),
                             secure_open(&keys, SECURE_ACCEPTOR)};
    assert(ends[0] && ends[1]);
    int side = in[0] & 1;
    for (int steps = (in[0] >> 1) % 4, i = 0; i < steps; i++)
        carry(ends[i & 1], ends[!(i & 1)]);
    uint8_t head[] = {(in[0] & 16) ? 22 : 23, 3, 3,
                      (uint8_t)((size - 3) >> 8 & 0xff),
                      (uint8_t)((size - 3) & 0xff)};
    if (in[0] & 8) (void)give(ends[side], head, sizeof head, sizeof head);
    (void)give(ends[side], in + 2, size - 2, 1u + in[1]);
    secure_ended(ends[side]);
    assert(secure_fault_text(secure_fault(ends[side])));
    secure_close(ends[0]);
    secure_close(ends[1]);
}

int LLVMFuzzerTestOneInput(const uint8_t *in, size_t size)
{
    if (size < 3) return 0;
    if (!keys.own.identity[0]) {
        static const uint8_t key[SECURE_KEY_SIZE] = {1, 2, 3};
        secure_psk_of_key(&keys.own, key);
        if (!keys.own.identity[0]) return 0; /* there is no OpenSSL */
    }
    struct fuzz_input rest = {in + 1, size - 1};
    if (in[0] & 32)
        greet_and_talk(&rest);
    else
        strange(in, size);
    return 0;
}
