/* fuzz_wire.c - wire_decode() on any bytes: a frame that decodes encodes, and
 * what that gives decodes to the same; no prefix of a frame is a frame. */
#include "fuzz.h"

#include "../../src/base/wire.h"

#include <string.h>

static struct wire_store store;
static uint8_t frame[WIRE_FRAME_MAX], again[WIRE_FRAME_MAX];

static void decode(const uint8_t *in, size_t size)
{
    struct wire_msg msg;
    size_t used = 0;
    enum wire_status status = wire_decode(in, size, &store, &msg, &used);
    if (status != WIRE_OK) return;
    assert(used >= WIRE_HEADER_SIZE && used <= size);
    assert(wire_type_name(msg.type)[0] != '?');

    size_t made = wire_encode(&msg, frame);
    assert(wire_decode(frame, made, &store, &msg, &used) == WIRE_OK);
    assert(used == made);
    assert(wire_encode(&msg, again) == made);
    assert(memcmp(frame, again, made) == 0);
    for (size_t cut = 0; cut < made; cut += 1 + made / 16)
        assert(wire_decode(frame, cut, &store, &msg, &used) == WIRE_MORE);
}

int LLVMFuzzerTestOneInput(const uint8_t *in, size_t size)
{
    static uint8_t framed[WIRE_FRAME_MAX];
    decode(in, size);
    if (size < 1 || size > 60000) return 0;
    /* The same bytes as the body of a correct header. */
    size_t body = size - 1;
    uint8_t header[WIRE_HEADER_SIZE] = {WIRE_MAGIC >> 8,
                                        WIRE_MAGIC & 0xff,
                                        WIRE_VERSION,
                                        (uint8_t)(in[0] % WIRE_TYPE_COUNT),
                                        0,
                                        0,
                                        (uint8_t)(body >> 8),
                                        (uint8_t)body};
    memcpy(framed, header, sizeof header);
    memcpy(framed + sizeof header, in + 1, body);
    decode(framed, sizeof header + body);
    return 0;
}
