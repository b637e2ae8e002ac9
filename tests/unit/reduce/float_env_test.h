/* float_env_test.h - the floating-point environments that a program may have
 * set in its thread, for tests that results do not depend on them. */
#ifndef FLOAT_ENV_TEST_H
#define FLOAT_ENV_TEST_H

#include <fenv.h>
#include <stdint.h>

#if defined(__x86_64__)
#include <xmmintrin.h>
/* Flushes subnormal results, and takes subnormal operands as zero. */
static inline void env_flush(void)
{
    _mm_setcsr(_mm_getcsr() | 0x8040);
}
static inline uint64_t env_bits(void)
{
    uint16_t x87;
    __asm__ volatile("fnstcw %0" : "=m"(x87));
    return (uint64_t)x87 << 32 | (_mm_getcsr() & ~0x3fu);
}
#elif defined(__aarch64__)
static inline uint64_t env_bits(void)
{
    uint64_t bits;
    __asm__ volatile("mrs %0, fpcr" : "=r"(bits));
    return bits;
}
static inline void env_flush(void)
{
    __asm__ volatile("msr fpcr, %0" : : "r"(env_bits() | 1u << 24));
}
#else
static inline void env_flush(void)
{
}
static inline uint64_t env_bits(void)
{
    return (uint64_t)fegetround();
}
#endif

enum { ENVS = 6 };

/* Environment 0 is the default one. */
static inline void env_set(int which)
{
    static const int modes[] = {FE_TONEAREST, FE_UPWARD, FE_DOWNWARD,
                                FE_TOWARDZERO};
    (void)fesetenv(FE_DFL_ENV);
    if (which < 4) (void)fesetround(modes[which]);
    if (which == 4) env_flush();
    if (which == 5) {
        (void)fesetround(FE_UPWARD);
        env_flush();
    }
}

#endif
