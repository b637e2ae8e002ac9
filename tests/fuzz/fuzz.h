/* fuzz.h - the entry point of a fuzzer, and its input as numbers. */
#ifndef PCCL_FUZZ_H
#define PCCL_FUZZ_H

#include <stddef.h>
#include <stdint.h>

int LLVMFuzzerTestOneInput(const uint8_t *in, size_t size);

struct fuzz_input {
    const uint8_t *at;
    size_t left;
};

/* 0 when the input is over. */
static inline uint8_t fuzz_u8(struct fuzz_input *in)
{
    if (in->left == 0) return 0;
    in->left--;
    return *in->at++;
}

static inline uint32_t fuzz_below(struct fuzz_input *in, uint32_t count)
{
    return fuzz_u8(in) % count;
}

#endif
