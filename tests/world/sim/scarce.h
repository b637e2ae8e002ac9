/* scarce.h - memory of the simulated cores, which may be refused. They are
 * compiled with malloc and the like defined to be those of scarce.c
 * (CMakeLists.txt); the simulator itself always has memory. */
#ifndef PCCL_SIM_SCARCE_H
#define PCCL_SIM_SCARCE_H

#include <stdbool.h>
#include <stddef.h>

#ifdef __SANITIZE_ADDRESS__
#define SCARCE_CHECKED true
#elif defined __has_feature
#if __has_feature(address_sanitizer)
#define SCARCE_CHECKED true
#endif
#endif
#ifndef SCARCE_CHECKED
#define SCARCE_CHECKED false
#endif

/* Asked before each allocation. NULL: there is memory. */
extern bool (*scarce_refuses)(void);

/* Zeros of which little is used: a universe asks for megabytes of them, and
 * would spend a third of its time on clearing what it never touches. Large ones
 * come from the system, page by page, unless a sanitizer is to see who writes
 * beyond their end. The cores' calloc() does the same. NULL: no memory. */
void *scarce_zeros(size_t size);
void scarce_free(void *memory);

/* The buffers of one universe are kept for the next one. */
void scarce_keeps(void);

#endif
