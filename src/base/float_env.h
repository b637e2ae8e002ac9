/* float_env.h - the default floating-point environment: rounding to nearest
 * even, subnormals neither flushed nor taken as zero, no traps.
 *
 * A program may set another one in the thread that calls the library (linking
 * with -ffast-math does). Results must not depend on it, or members would get
 * different bits. Code that computes results enters the default environment,
 * and leaves it as the caller had it. Reading the register costs a few cycles,
 * writing it a hundred, so it is written only where it differs. */
#ifndef PCCL_FLOAT_ENV_H
#define PCCL_FLOAT_ENV_H

#include <stdbool.h>
#include <stdint.h>

struct float_env {
    bool changed;
    uint64_t control; /* the caller's registers */
};

#if defined(__SSE2__)

/* MXCSR, and above it the control word of the x87, for long double: all
 * exceptions masked, 64 bits of precision. */
#define FLOAT_ENV_DEFAULT ((uint64_t)0x37f << 32 | 0x1f80)
#define FLOAT_ENV_FLAGS ((uint64_t)0x3f) /* exceptions that were seen */

static inline uint64_t float_env_read(void)
{
    uint16_t x87;
    __asm__ volatile("fnstcw %0" : "=m"(x87));
    return (uint64_t)x87 << 32 | __builtin_ia32_stmxcsr();
}

static inline void float_env_write(uint64_t control)
{
    uint16_t x87 = (uint16_t)(control >> 32);
    __builtin_ia32_ldmxcsr((uint32_t)control);
    __asm__ volatile("fldcw %0" : : "m"(x87));
}

#elif defined(__aarch64__)

#define FLOAT_ENV_DEFAULT ((uint64_t)0) /* FPCR */
#define FLOAT_ENV_FLAGS ((uint64_t)0)

static inline uint64_t float_env_read(void)
{
    uint64_t control;
    __asm__ volatile("mrs %0, fpcr" : "=r"(control));
    return control;
}

static inline void float_env_write(uint64_t control)
{
    __asm__ volatile("msr fpcr, %0" : : "r"(control) : "memory");
}

#else

/* No register is known: the caller's thread must have the default one. */
#define FLOAT_ENV_DEFAULT ((uint64_t)0)
#define FLOAT_ENV_FLAGS ((uint64_t)0)

static inline uint64_t float_env_read(void)
{
    return FLOAT_ENV_DEFAULT;
}

static inline void float_env_write(uint64_t control)
{
    (void)control;
}

#endif

static inline struct float_env float_env_enter(void)
{
    struct float_env env = {.control = float_env_read()};
    env.changed = (env.control & ~FLOAT_ENV_FLAGS) != FLOAT_ENV_DEFAULT;
    if (__builtin_expect(env.changed, false))
        float_env_write(FLOAT_ENV_DEFAULT);
    return env;
}

static inline void float_env_leave(const struct float_env *env)
{
    if (__builtin_expect(env->changed, false)) float_env_write(env->control);
}

#endif
