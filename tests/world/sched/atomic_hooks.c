/* atomic_hooks.c - see atomic_hooks.h. Names and arguments are the compiler's:
 * gcc and clang use the same ones. This file is compiled without
 * -fsanitize=thread. */
#include "atomic_hooks.h"

#include <string.h>

uint64_t hook_peek(const volatile void *at, size_t size)
{
    uint64_t value = 0;
    memcpy(&value, (const void *)(uintptr_t)at, size);
    return value;
}

void hook_poke(volatile void *at, size_t size, uint64_t value)
{
    memcpy((void *)(uintptr_t)at, &value, size);
}

uint64_t hook_apply(enum hook_change kind, uint64_t before, uint64_t operand)
{
    switch (kind) {
    case HOOK_ADD:
        return before + operand;
    case HOOK_SUB:
        return before - operand;
    case HOOK_AND:
        return before & operand;
    case HOOK_OR:
        return before | operand;
    case HOOK_XOR:
        return before ^ operand;
    default:
        return operand;
    }
}

#define CHANGE(bits, name, kind)                                               \
    uint##bits##_t __tsan_atomic##bits##_##name(                               \
        volatile uint##bits##_t *at, uint##bits##_t operand, int order);       \
    uint##bits##_t __tsan_atomic##bits##_##name(                               \
        volatile uint##bits##_t *at, uint##bits##_t operand, int order)        \
    {                                                                          \
        return (uint##bits##_t)hook_change(at, bits / 8, kind, operand,        \
                                           order);                             \
    }

#define COMPARE(bits, name)                                                    \
    int __tsan_atomic##bits##_compare_exchange_##name(                         \
        volatile uint##bits##_t *at, uint##bits##_t *expected,                 \
        uint##bits##_t desired, int order, int otherwise);                     \
    int __tsan_atomic##bits##_compare_exchange_##name(                         \
        volatile uint##bits##_t *at, uint##bits##_t *expected,                 \
        uint##bits##_t desired, int order, int otherwise)                      \
    {                                                                          \
        (void)otherwise;                                                       \
        uint##bits##_t before = (uint##bits##_t)hook_compare(                  \
            at, bits / 8, *expected, desired, order);                          \
        int done = before == *expected;                                        \
        *expected = before;                                                    \
        return done;                                                           \
    }

#define ATOMIC(bits)                                                           \
    uint##bits##_t __tsan_atomic##bits##_load(                                 \
        const volatile uint##bits##_t *at, int order);                         \
    uint##bits##_t __tsan_atomic##bits##_load(                                 \
        const volatile uint##bits##_t *at, int order)                          \
    {                                                                          \
        return (uint##bits##_t)hook_load(at, bits / 8, order);                 \
    }                                                                          \
    void __tsan_atomic##bits##_store(volatile uint##bits##_t *at,              \
                                     uint##bits##_t value, int order);         \
    void __tsan_atomic##bits##_store(volatile uint##bits##_t *at,              \
                                     uint##bits##_t value, int order)          \
    {                                                                          \
        hook_store(at, bits / 8, value, order);                                \
    }                                                                          \
    uint##bits##_t __tsan_atomic##bits##_compare_exchange_val(                 \
        volatile uint##bits##_t *at, uint##bits##_t expected,                  \
        uint##bits##_t desired, int order, int otherwise);                     \
    uint##bits##_t __tsan_atomic##bits##_compare_exchange_val(                 \
        volatile uint##bits##_t *at, uint##bits##_t expected,                  \
        uint##bits##_t desired, int order, int otherwise)                      \
    {                                                                          \
        (void)otherwise;                                                       \
        return (uint##bits##_t)hook_compare(at, bits / 8, expected, desired,   \
                                            order);                            \
    }                                                                          \
    COMPARE(bits, strong)                                                      \
    COMPARE(bits, weak)                                                        \
    CHANGE(bits, exchange, HOOK_EXCHANGE)                                      \
    CHANGE(bits, fetch_add, HOOK_ADD)                                          \
    CHANGE(bits, fetch_sub, HOOK_SUB)                                          \
    CHANGE(bits, fetch_and, HOOK_AND)                                          \
    CHANGE(bits, fetch_or, HOOK_OR)                                            \
    CHANGE(bits, fetch_xor, HOOK_XOR)

ATOMIC(8)
ATOMIC(16)
ATOMIC(32)
ATOMIC(64)

void __tsan_atomic_thread_fence(int order);
void __tsan_atomic_thread_fence(int order)
{
    hook_fence(order);
}

void __tsan_atomic_signal_fence(int order);
void __tsan_atomic_signal_fence(int order)
{
    (void)order;
}

/* ---------------------------------------------------------- plain accesses */

#define PLAIN(size)                                                            \
    void __tsan_read##size(void *at);                                          \
    void __tsan_read##size(void *at)                                           \
    {                                                                          \
        hook_plain(at, size, false);                                           \
    }                                                                          \
    void __tsan_write##size(void *at);                                         \
    void __tsan_write##size(void *at)                                          \
    {                                                                          \
        hook_plain(at, size, true);                                            \
    }                                                                          \
    void __tsan_unaligned_read##size(void *at);                                \
    void __tsan_unaligned_read##size(void *at)                                 \
    {                                                                          \
        hook_plain(at, size, false);                                           \
    }                                                                          \
    void __tsan_unaligned_write##size(void *at);                               \
    void __tsan_unaligned_write##size(void *at)                                \
    {                                                                          \
        hook_plain(at, size, true);                                            \
    }

PLAIN(1)
PLAIN(2)
PLAIN(4)
PLAIN(8)
PLAIN(16)

void __tsan_read_range(void *at, size_t size);
void __tsan_read_range(void *at, size_t size)
{
    hook_plain(at, size, false);
}

void __tsan_write_range(void *at, size_t size);
void __tsan_write_range(void *at, size_t size)
{
    hook_plain(at, size, true);
}

void __tsan_init(void);
void __tsan_init(void)
{
}

void __tsan_func_entry(void *caller);
void __tsan_func_entry(void *caller)
{
    (void)caller;
}

void __tsan_func_exit(void);
void __tsan_func_exit(void)
{
}

/* clang's, where it copies structs. */
void *__tsan_memcpy(void *to, const void *from, size_t size);
void *__tsan_memcpy(void *to, const void *from, size_t size)
{
    return memcpy(to, from, size);
}

void *__tsan_memmove(void *to, const void *from, size_t size);
void *__tsan_memmove(void *to, const void *from, size_t size)
{
    return memmove(to, from, size);
}

void *__tsan_memset(void *to, int value, size_t size);
void *__tsan_memset(void *to, int value, size_t size)
{
    return memset(to, value, size);
}
