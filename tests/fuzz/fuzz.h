/* fuzz.h - the entry points of a fuzzer, and its input as numbers. */
#ifndef PCCL_FUZZ_H
#define PCCL_FUZZ_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

int LLVMFuzzerTestOneInput(const uint8_t *in, size_t size);

/* Of libFuzzer, or of fuzz_main.c: changes bytes[0, size) anyhow, up to `most`
 * bytes, and returns the new size. */
size_t LLVMFuzzerMutate(uint8_t *bytes, size_t size, size_t most);

/* mutate.c, for inputs that are tapes. */
size_t LLVMFuzzerCustomMutator(uint8_t *in, size_t size, size_t most,
                               unsigned seed);
size_t LLVMFuzzerCustomCrossOver(const uint8_t *a, size_t a_size,
                                 const uint8_t *b, size_t b_size, uint8_t *out,
                                 size_t most, unsigned seed);

struct fuzz_input {
    const uint8_t *at;
    size_t left;
};

/* `width` bytes, little-endian; zeros when the input is over. */
static inline uint64_t fuzz_number(struct fuzz_input *in, size_t width)
{
    uint64_t value = 0;
    for (size_t i = 0; i < width && in->left > 0; i++, in->left--)
        value |= (uint64_t)*in->at++ << (8 * i);
    return value;
}

static inline uint8_t fuzz_u8(struct fuzz_input *in)
{
    return (uint8_t)fuzz_number(in, 1);
}

static inline uint16_t fuzz_u16(struct fuzz_input *in)
{
    return (uint16_t)fuzz_number(in, 2);
}

static inline uint32_t fuzz_u32(struct fuzz_input *in)
{
    return (uint32_t)fuzz_number(in, 4);
}

static inline uint64_t fuzz_u64(struct fuzz_input *in)
{
    return fuzz_number(in, 8);
}

static inline uint32_t fuzz_below(struct fuzz_input *in, uint32_t count)
{
    return fuzz_u8(in) % count;
}

#endif
