/* atomic_hooks.h - every atomic access of code that is compiled with
 * -fsanitize=thread, as a call.
 *
 * The compiler puts a call of __tsan_* in place of each atomic operation, and
 * one before each plain access. Nothing links ThreadSanitizer's runtime:
 * atomic_hooks.c has these functions, and calls the ones below. The scheduler
 * (sched_atomic.c) and the explorer of litmus tests (../litmus/explorer.c) each
 * define them. `order` is one of __ATOMIC_RELAXED and so on. */
#ifndef SCHED_ATOMIC_HOOKS_H
#define SCHED_ATOMIC_HOOKS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum hook_change {
    HOOK_EXCHANGE,
    HOOK_ADD,
    HOOK_SUB,
    HOOK_AND,
    HOOK_OR,
    HOOK_XOR,
};

uint64_t hook_load(const volatile void *at, size_t size, int order);
void hook_store(volatile void *at, size_t size, uint64_t value, int order);
/* Returns the value before. */
uint64_t hook_change(volatile void *at, size_t size, enum hook_change kind,
                     uint64_t operand, int order);
/* Returns the value before; it is replaced if it is `expected`. */
uint64_t hook_compare(volatile void *at, size_t size, uint64_t expected,
                      uint64_t desired, int order);
void hook_fence(int order);
/* A plain access follows. */
void hook_plain(const volatile void *at, size_t size, bool writes);

/* For those who define them. */
uint64_t hook_peek(const volatile void *at, size_t size);
void hook_poke(volatile void *at, size_t size, uint64_t value);
uint64_t hook_apply(enum hook_change kind, uint64_t before, uint64_t operand);

#endif
