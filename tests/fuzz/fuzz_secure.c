/* fuzz_secure.c - any bytes for an end of a secure channel: in place of the
 * greeting, behind some records of a true one, or behind all of it. Nothing
 * that was not sealed by the other end is ever read. */
#include "fuzz.h"

#include "../../src/base/secure.h"

#include <string.h>

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

int LLVMFuzzerTestOneInput(const uint8_t *in, size_t size)
{
    if (size < 3) return 0;
    if (!keys.own.identity[0]) {
        static const uint8_t key[SECURE_KEY_SIZE] = {1, 2, 3};
        secure_psk_of_key(&keys.own, key);
        if (!keys.own.identity[0]) return 0; /* there is no OpenSSL */
    }
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
    return 0;
}
