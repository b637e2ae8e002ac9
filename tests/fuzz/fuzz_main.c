/* fuzz_main.c - drives a fuzzer without libFuzzer: random inputs of a fixed
 * seed, for RUNS rounds or a few seconds. fuzz_x FILE...: runs these inputs. */
#include "fuzz.h"

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum { RUNS = 20000, SIZE_MAX_IN = 4096, SECONDS = 5 };

static uint64_t random_next(uint64_t *state) /* xorshift64* */
{
    *state ^= *state >> 12;
    *state ^= *state << 25;
    *state ^= *state >> 27;
    return *state * 2685821657736338717u;
}

static int run_file(const char *path)
{
    FILE *file = fopen(path, "rb");
    uint8_t *in = malloc(1 << 20);
    if (!file || !in) {
        perror(path);
        return 1;
    }
    size_t size = fread(in, 1, 1 << 20, file);
    fclose(file);
    LLVMFuzzerTestOneInput(in, size);
    free(in);
    return 0;
}

int main(int argc, char **argv)
{
    uint64_t state = 0x9e3779b97f4a7c15u;
    time_t end = time(NULL) + SECONDS;
    int failed = 0;
    for (int i = 1; i < argc; i++) failed |= run_file(argv[i]);
    if (argc > 1) return failed;
    for (int run = 0; run < RUNS && time(NULL) < end; run++) {
        size_t size = random_next(&state) % (run % 4 ? 200 : SIZE_MAX_IN);
        uint8_t *in = malloc(size + 1); /* exact, for sanitizers */
        if (!in) return 1;
        for (size_t i = 0; i < size; i++)
            in[i] = (uint8_t)(random_next(&state) >> 56);
        LLVMFuzzerTestOneInput(in, size);
        free(in);
    }
    return 0;
}
