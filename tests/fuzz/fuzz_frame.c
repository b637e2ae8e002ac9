/* fuzz_frame.c - frame_decode() on any header: what decodes encodes back. */
#include "fuzz.h"

#include "../../src/link/frame.h"

#include <string.h>

static void decode(const uint8_t in[FRAME_SIZE])
{
    struct frame f = {0};
    uint8_t out[FRAME_SIZE];
    if (!frame_decode(in, &f)) return;
    assert(f.size <= FRAME_BODY_MAX);
    assert(f.type > 0 && f.type < FRAME_TYPE_COUNT);
    frame_encode(&f, out);
    assert(memcmp(in, out, sizeof out) == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *in, size_t size)
{
    uint8_t header[FRAME_SIZE];
    if (size < FRAME_SIZE) return 0;
    memcpy(header, in, sizeof header);
    decode(header);
    header[0] = FRAME_MAGIC;
    header[1] = FRAME_VERSION;
    header[2] = (uint8_t)(in[2] % (FRAME_TYPE_COUNT + 1));
    memset(header + 36, 0, 4);
    decode(header);
    return 0;
}
