/* scale_steps.c - counts the blocks of the coordinator's code that are
 * executed, where the compiler was told to call this at each: an amount of work
 * that no clock and no other load changes. */
#include "scale.h"

uint64_t scale_steps;

void __sanitizer_cov_trace_pc(void);
void __sanitizer_cov_trace_pc(void)
{
    scale_steps++;
}
