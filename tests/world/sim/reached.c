/* reached.c - which blocks of the cores a universe, or a search, reaches.
 * Linked to test_sim, or explorer, whose cores are compiled with
 * -fsanitize-coverage=trace-pc and no PIE.
 *
 * At exit it writes the addresses to the file that REACH names, one a line, and
 * how many blocks were executed, which is the price of the universe. By these
 * mutants.sh gives each mutant the cheapest universes that reach its line. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>

extern char __executable_start, etext;

static unsigned char *reached;
static unsigned long long blocks;

void __sanitizer_cov_trace_pc(void);
void __sanitizer_cov_trace_pc(void)
{
    uintptr_t pc = (uintptr_t)__builtin_return_address(0);
    blocks++;
    if (reached) reached[pc - (uintptr_t)&__executable_start] = 1;
}

__attribute__((constructor)) static void begin(void)
{
    /* No malloc: the explorer has one that forgets (explore/arena.h). */
    void *memory =
        mmap(NULL, (size_t)(&etext - &__executable_start),
             PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) abort();
    reached = memory;
}

__attribute__((destructor)) static void end(void)
{
    const char *name = getenv("REACH");
    FILE *to = name ? fopen(name, "w") : NULL;
    if (!to) abort();
    for (uintptr_t i = 0; &__executable_start + i < &etext; i++)
        /* The call before this address is in the block. */
        if (reached[i])
            fprintf(to, "0x%jx\n",
                    (uintmax_t)((uintptr_t)&__executable_start + i - 1));
    fprintf(to, "blocks %llu\n", blocks);
    if (fclose(to) != 0) abort();
}
