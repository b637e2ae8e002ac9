/* party.c - see party.h. */
#include "party.h"

#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../../../src/link/frame.h"
#include "../../../src/base/wire.h"
#include "arena.h"

struct party_config party_config;
struct intern party_messages;
struct party_out party_out;
uint64_t party_runs;

static struct intern effect_lists;
static struct memo memos[2]; /* of members; of the master */
static struct arena *arenas[2];
static void *roots[MEMBERS_MAX + 1]; /* the same place for all members */
static struct facts *facts_of;       /* by state of a member */
static uint32_t first[MEMBERS_MAX + 1];
static char error[512];
static sigjmp_buf failed;
static volatile bool running;

static uint32_t kind_of(uint32_t party)
{
    return party == MASTER;
}

/* ------------------------------------------------------------------ running */

static void on_signal(int number, siginfo_t *info, void *context)
{
    (void)context;
    if (number == SIGSEGV && arena_fault(info->si_addr)) return;
    if (!running) {
        (void)signal(number, SIG_DFL);
        (void)raise(number);
        return;
    }
    if (number == SIGABRT)
        (void)snprintf(error, sizeof error, "an assertion of the core failed");
    else
        (void)snprintf(error, sizeof error, "a bad memory access: signal %d",
                       number);
    siglongjmp(failed, 1);
}

void party_fail(const char *format, ...)
{
    va_list args;
    va_start(args, format);
    (void)vsnprintf(error, sizeof error, format, args);
    va_end(args);
    siglongjmp(failed, 1);
}

const char *party_error(void)
{
    return error;
}

void party_effect(enum effect_kind kind, uint32_t at, uint32_t number)
{
    PARTY_CHECK(party_out.count < EFFECTS_MAX, "too many effects at once");
    party_out.effects[party_out.count++] =
        (struct effect){(uint8_t)kind, (uint8_t)at, 0, number};
}

static void save_facts(uint32_t state)
{
    if (facts_of[state].outcome_count != UINT32_MAX) return;
    struct facts *f = &facts_of[state];
    f->outcome_count = 0;
    member_facts(roots[0], f);
}

/* Bytes of new facts are marked, so that each state has its own only once. */
static void make_room_for_facts(void)
{
    static uint32_t marked;
    uint32_t need = arena_pictures(arenas[0]) + 2;
    for (; marked < need; marked++) facts_of[marked].outcome_count = UINT32_MAX;
}

/* What an earlier call left on the stack must not get into a state, by way of
 * the padding of a struct. */
__attribute__((noinline)) static void wipe_stack(void)
{
    uint8_t dirt[48 * 1024];
    memset(dirt, 0, sizeof dirt);
    __asm__ volatile("" : : "r"(dirt) : "memory");
}

static bool run(uint32_t party, const struct event *event)
{
    uint32_t kind = kind_of(party);
    party_out.count = 0;
    party_runs++;
    running = true;
    if (sigsetjmp(failed, 1) != 0) {
        running = false;
        arena_enter(NULL);
        return false;
    }
    wipe_stack();
    arena_enter(arenas[kind]);
    if (party == MASTER)
        coordinator_event(roots[MASTER], event);
    else
        member_event(roots[party], event);
    arena_enter(NULL);
    running = false;
    return true;
}

static uint64_t key_of(uint32_t state, const struct event *e)
{
    PCCL_ASSERT(state < 1u << 26 && e->at < 64 && e->number < 1u << 27);
    return (uint64_t)(state + 1) << 37 | (uint64_t)e->number << 10 |
           (uint64_t)e->at << 4 | e->kind;
}

uint32_t party_step(uint32_t party, uint32_t state, struct event event,
                    const struct effect **effects, uint32_t *count)
{
    uint32_t kind = kind_of(party);
    struct memo_entry *entry = memo_at(&memos[kind], key_of(state, &event));
    if (entry->next == MEMO_NEW) {
        arena_load(arenas[kind], state);
        if (!run(party, &event)) return PARTY_FAILED;
        entry->next = arena_save(arenas[kind]);
        make_room_for_facts();
        if (kind == 0) save_facts(entry->next);
        entry->effects = intern_put(&effect_lists, party_out.effects,
                                    party_out.count * sizeof(struct effect));
    }
    size_t size;
    *effects = intern_get(&effect_lists, entry->effects, &size);
    *count = (uint32_t)(size / sizeof(struct effect));
    return entry->next;
}

static void found(uint32_t party)
{
    uint32_t kind = kind_of(party);
    arena_clear(arenas[kind]);
    running = true;
    if (sigsetjmp(failed, 1) != 0) {
        (void)fprintf(stderr, "explore: %s\n", error);
        exit(3);
    }
    wipe_stack();
    arena_enter(arenas[kind]);
    roots[party] = party == MASTER ? coordinator_new() : member_new(party);
    arena_enter(NULL);
    running = false;
    PCCL_ASSERT(party == MASTER || roots[party] == roots[0]);
    first[party] = arena_save(arenas[kind]);
    make_room_for_facts();
    if (kind == 0) save_facts(first[party]);
}

void party_init(const struct party_config *config)
{
    party_config = *config;
    struct sigaction action = {.sa_sigaction = on_signal,
                               .sa_flags = SA_SIGINFO | SA_NODEFER};
    (void)sigaction(SIGSEGV, &action, NULL);
    (void)sigaction(SIGBUS, &action, NULL);
    (void)sigaction(SIGABRT, &action, NULL);
    (void)sigaction(SIGFPE, &action, NULL);
    intern_init(&party_messages, 0);
    intern_init(&effect_lists, 0);
    facts_of = intern_reserve(((size_t)1 << 26) * sizeof *facts_of);
    for (uint32_t i = 0; i < 2; i++) arenas[i] = arena_new();
    for (uint32_t i = 0; i < config->members; i++) found(i);
    found(MASTER);
}

uint32_t party_first(uint32_t party)
{
    return first[party];
}

const struct facts *party_facts(uint32_t state)
{
    return &facts_of[state];
}

uint32_t party_states(void)
{
    return arena_pictures(arenas[0]) + arena_pictures(arenas[1]);
}

uint64_t party_memory(void)
{
    return arena_memory(arenas[0]) + arena_memory(arenas[1]) +
           intern_memory(&party_messages) + intern_memory(&effect_lists) +
           (memos[0].room + memos[1].room) * sizeof(struct memo_entry) +
           arena_pictures(arenas[0]) * sizeof(struct facts);
}

void party_compare(uint32_t party, uint32_t one, uint32_t other)
{
    arena_compare(arenas[kind_of(party)], one, other);
}

pccl_ns party_time(uint32_t step)
{
    return PCCL_S + step * EXPLORE_STEP;
}

/* ----------------------------------------------------------------- messages */

uint32_t party_encode(const struct wire_msg *msg)
{
    static uint8_t frame[WIRE_FRAME_MAX];
    size_t size = wire_encode(msg, frame);
    return intern_put(&party_messages, frame, size);
}

void party_decode(uint32_t message, struct wire_msg *msg)
{
    static struct wire_store store;
    size_t size, used;
    const void *bytes = intern_get(&party_messages, message, &size);
    PARTY_CHECK(wire_decode(bytes, size, &store, msg, &used) == WIRE_OK &&
                    used == size,
                "a message cannot be decoded");
}

bool party_is_neutral(bool control, uint32_t message)
{
    size_t size;
    const uint8_t *bytes = intern_get(&party_messages, message, &size);
    if (!control) return size > 2 && bytes[2] == FRAME_PING;
    return size > 3 && (bytes[3] == WIRE_HEARTBEAT || bytes[3] == WIRE_SILENT);
}

static const char *frame_name(uint32_t type)
{
    static const char *const names[] = {
        [FRAME_HELLO] = "HELLO", [FRAME_DATA] = "DATA", [FRAME_READY] = "READY",
        [FRAME_DONE] = "DONE",   [FRAME_PING] = "PING", [FRAME_FILL] = "FILL"};
    return type < ARRAY_COUNT(names) && names[type] ? names[type] : "frame";
}

void party_describe(bool control, uint32_t message, char *text, size_t size)
{
    size_t length;
    const uint8_t *bytes = intern_get(&party_messages, message, &length);
    struct frame f;
    if (control && length > 3) {
        struct wire_msg msg;
        party_decode(message, &msg);
        (void)snprintf(text, size, "%s round %u epoch %u",
                       wire_type_name(msg.type), msg.round, msg.epoch);
    } else if (length >= FRAME_SIZE && frame_decode(bytes, &f)) {
        (void)snprintf(text, size, "%s epoch %u tag %llu seq %u index %u",
                       frame_name(f.type), f.epoch, (unsigned long long)f.tag,
                       f.seq, f.index);
    } else {
        (void)snprintf(text, size, "%zu bytes", length);
    }
}
