/* fuzz_main.c - drives a fuzzer without libFuzzer.
 *
 * fuzz_x FILE or FOLDER...: runs these inputs, and then, if one was a folder,
 * changed ones. Without arguments: random inputs. Their number, not a time, is
 * fixed (FUZZ_INPUTS in the environment), and so is their seed: every machine
 * runs the same ones. */
#include "fuzz.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

enum { INPUTS = 6000, SIZE_MOST = 4096, ROOM = 1 << 20 };

/* mutate.c is not part of every fuzzer. */
#pragma weak LLVMFuzzerCustomMutator

struct seed_input {
    uint8_t *bytes;
    size_t size;
};

static struct seed_input *seeds;
static size_t seed_count;
static uint64_t state = 0x9e3779b97f4a7c15u;

static uint64_t random_next(void) /* xorshift64* */
{
    state ^= state >> 12;
    state ^= state << 25;
    state ^= state >> 27;
    return state * 2685821657736338717u >> 8;
}

size_t LLVMFuzzerMutate(uint8_t *bytes, size_t size, size_t most)
{
    if (size < most && random_next() % 4 == 0) bytes[size++] = 0;
    for (uint64_t n = 1 + random_next() % 4; n > 0 && size > 0; n--)
        bytes[random_next() % size] = (uint8_t)random_next();
    return size;
}

static void run(const uint8_t *bytes, size_t size)
{
    uint8_t *in = malloc(size + 1); /* exact, for sanitizers */
    if (!in) abort();
    uint8_t *end = realloc(in, size > 0 ? size : 1);
    in = end ? end : in;
    if (size > 0) memcpy(in, bytes, size);
    LLVMFuzzerTestOneInput(in, size);
    free(in);
}

static int run_file(const char *path)
{
    FILE *file = fopen(path, "rb");
    uint8_t *in = malloc(ROOM);
    if (!file || !in) {
        perror(path);
        return 1;
    }
    size_t size = fread(in, 1, ROOM, file);
    fclose(file);
    run(in, size);
    seeds = realloc(seeds, (seed_count + 1) * sizeof *seeds);
    if (!seeds) abort();
    seeds[seed_count++] = (struct seed_input){in, size};
    return 0;
}

static int by_name(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

/* In an order that does not depend on the file system. */
static int run_folder(const char *path)
{
    DIR *folder = opendir(path);
    char **names = NULL;
    size_t count = 0;
    int failed = 0;
    if (!folder) {
        perror(path);
        return 1;
    }
    for (const struct dirent *d; (d = readdir(folder));) {
        char name[4096];
        if (d->d_name[0] == '.') continue;
        (void)snprintf(name, sizeof name, "%s/%s", path, d->d_name);
        names = realloc(names, (count + 1) * sizeof *names);
        if (!names) abort();
        names[count++] = strdup(name);
    }
    closedir(folder);
    if (count > 0) qsort(names, count, sizeof *names, by_name);
    for (size_t i = 0; i < count; i++) {
        failed |= run_file(names[i]);
        free(names[i]);
    }
    free(names);
    return failed;
}

/* A seed that was changed, or random bytes. */
static void run_random(uint64_t number)
{
    static uint8_t in[ROOM];
    size_t size = 0;
    if (seed_count > 0 && number % 8 != 0) {
        const struct seed_input *s = &seeds[random_next() % seed_count];
        size = s->size;
        memcpy(in, s->bytes, size);
    }
    if (!LLVMFuzzerCustomMutator) {
        if (size == 0) {
            size = random_next() % (number % 4 ? 200 : SIZE_MOST);
            for (size_t i = 0; i < size; i++) in[i] = (uint8_t)random_next();
        }
        run(in, LLVMFuzzerMutate(in, size, ROOM));
        return;
    }
    for (uint64_t n = 1 + random_next() % (size > 0 ? 8 : 60); n > 0; n--)
        size = LLVMFuzzerCustomMutator(in, size, ROOM, (unsigned)random_next());
    run(in, size);
}

int main(int argc, char **argv)
{
    const char *text = getenv("FUZZ_INPUTS");
    uint64_t inputs = text ? strtoull(text, NULL, 10) : INPUTS;
    int failed = 0;
    bool folders = argc < 2;
    for (int i = 1; i < argc; i++) {
        struct stat st;
        bool folder = stat(argv[i], &st) == 0 && S_ISDIR(st.st_mode);
        folders |= folder;
        failed |= folder ? run_folder(argv[i]) : run_file(argv[i]);
    }
    time_t begun = time(NULL);
    if (!folders) inputs = 0;
    for (uint64_t i = 0; i < inputs; i++) run_random(i);
    printf("%zu files, %llu random inputs in %lld s\n", seed_count,
           (unsigned long long)inputs, (long long)(time(NULL) - begun));
    for (size_t i = 0; i < seed_count; i++) free(seeds[i].bytes);
    free(seeds);
    return failed;
}
