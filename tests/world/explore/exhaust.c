/* exhaust.c - see exhaust.h.
 *
 * A state is looked up by 128 bits of hash of its bytes. States themselves are
 * kept as long as they wait to be looked at; of each state, its parent and the
 * choice that led to it are kept, for the path to a violation. */
#include "exhaust.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

#define QUEUE_SPACE ((size_t)1 << 37)
#define STATES_SPACE ((size_t)1 << 31)
#define RELEASE ((size_t)256 << 20)

struct key {
    uint64_t a, b;
};

struct step {
    uint32_t parent;
    struct choice choice;
};

struct search {
    struct key *keys;
    uint64_t room;
    struct step *steps; /* by number of the state */
    uint64_t count;     /* states */
    uint8_t *queue;     /* size and bytes of each state */
    uint64_t head, tail, released;
    uint64_t next;          /* number of the first state of the queue */
    struct intern outcomes; /* the first one is none */
    struct choice last;
    uint64_t last_state;
};

static struct search search;

bool exhaust_is_fault(struct choice c)
{
    return c.kind == CHOICE_CRASH || c.kind == CHOICE_STOP ||
           c.kind == CHOICE_CUT || c.kind == CHOICE_CUT_UP ||
           c.kind == CHOICE_STALL;
}

/* ------------------------------------------------------------------- states */

static uint64_t slot_of(const struct key *keys, uint64_t room, struct key key)
{
    uint64_t at = key.a & (room - 1);
    while ((keys[at].a | keys[at].b) != 0 &&
           (keys[at].a != key.a || keys[at].b != key.b))
        at = (at + 1) & (room - 1);
    return at;
}

static void grow(struct search *s)
{
    uint64_t room = s->room ? s->room * 2 : 1 << 16;
    struct key *keys = intern_reserve(room * sizeof *keys);
    for (uint64_t i = 0; i < s->room; i++) {
        if ((s->keys[i].a | s->keys[i].b) != 0)
            keys[slot_of(keys, room, s->keys[i])] = s->keys[i];
    }
    if (s->room > 0) munmap(s->keys, s->room * sizeof *keys);
    s->keys = keys;
    s->room = room;
}

static void add(struct search *s, const struct universe *w, uint64_t parent,
                struct choice choice)
{
    size_t size = universe_size(w);
    struct key key = {intern_hash(w, size, 17) | 1, intern_hash(w, size, 99)};
    if (s->count * 10 >= s->room * 7) grow(s);
    uint64_t at = slot_of(s->keys, s->room, key);
    if (s->keys[at].a != 0) return;
    s->keys[at] = key;
    s->steps[s->count++] = (struct step){(uint32_t)parent, choice};
    uint32_t head = (uint32_t)size;
    memcpy(s->queue + s->tail, &head, 4);
    memcpy(s->queue + s->tail + 4, w, size);
    s->tail += 4 + size;
}

static void take(struct search *s, struct universe *w)
{
    uint32_t size;
    memcpy(&size, s->queue + s->head, 4);
    memcpy(w, s->queue + s->head + 4, size);
    s->head += 4 + size;
    if (s->head - s->released > RELEASE) {
        (void)madvise(s->queue + s->released, RELEASE, MADV_DONTNEED);
        s->released += RELEASE;
    }
}

static uint64_t memory_of(const struct search *s)
{
    return s->room * sizeof *s->keys + s->count * sizeof *s->steps + s->tail -
           s->released + party_memory() + intern_memory(&universe_queues);
}

/* ------------------------------------------------------------------- search */

static double clock_now(void)
{
    struct timespec t;
    (void)clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

/* What programs know at an end. */
static void count_outcome(struct search *s, const struct universe *w)
{
    struct facts facts[MEMBERS_MAX + 1];
    memset(facts, 0, sizeof facts);
    for (uint32_t i = 0; i < universe_config.members; i++) {
        if (universe_runs(w, i)) facts[i] = *party_facts(w->state[i]);
    }
    facts[MEMBERS_MAX].epoch = w->quiet;
    (void)intern_put(&s->outcomes, facts, sizeof facts);
}

/* All that can follow. False: a violation, by s->last. */
static bool expand(struct search *s, const struct universe *w,
                   struct exhaust_result *r)
{
    struct choice choices[CHOICES_MAX];
    struct universe next;
    uint32_t n = universe_choices(w, choices);
    uint64_t self = s->next - 1;
    bool still = true;
    for (uint32_t i = 0; i < n; i++) {
        s->last = choices[i];
        enum universe_result result = universe_choose(w, choices[i], &next);
        if (result == UNIVERSE_BAD) return false;
        if (result == UNIVERSE_SAME) continue;
        r->edges++;
        still &= exhaust_is_fault(choices[i]);
        add(s, &next, self, choices[i]);
    }
    if (!still) return true;
    s->last = (struct choice){.kind = 0};
    if (!universe_waits(w) || w->quiet >= universe_config.patience) {
        r->ends++;
        count_outcome(s, w);
        if (w->quiet > r->longest) r->longest = w->quiet;
        return universe_over(w);
    }
    s->last = (struct choice){.kind = CHOICE_TIME};
    if (universe_choose(w, s->last, &next) == UNIVERSE_BAD) return false;
    r->edges++;
    add(s, &next, self, s->last);
    return true;
}

static bool limited(const struct search *s, const struct exhaust_limits *limits,
                    double since)
{
    if (limits->states && s->count >= limits->states) return true;
    if (s->count >= STATES_SPACE - CHOICES_MAX) return true;
    if (s->next % 4096 != 0) return false;
    if (limits->seconds && clock_now() - since > (double)limits->seconds)
        return true;
    return limits->memory && memory_of(s) > limits->memory;
}

struct exhaust_result exhaust_run(const struct universe *start,
                                  const struct exhaust_limits *limits)
{
    struct search *s = &search;
    struct exhaust_result r = {.end = SEARCH_COMPLETE};
    *s = (struct search){.steps =
                             intern_reserve(STATES_SPACE * sizeof *s->steps),
                         .queue = intern_reserve(QUEUE_SPACE)};
    intern_init(&s->outcomes, 0);
    double since = clock_now();
    uint64_t level = 1; /* states of a smaller depth */
    add(s, start, 0, (struct choice){0});
    while (s->next < s->count) {
        struct universe w;
        if (limited(s, limits, since)) {
            r.end = SEARCH_LIMITED;
            break;
        }
        if (s->next == level) r.depth++, level = s->count;
        take(s, &w);
        s->next++;
        s->last_state = s->next - 1;
        if (expand(s, &w, &r)) continue;
        (void)snprintf(r.error, sizeof r.error, "%s", universe_error());
        r.end = SEARCH_FOUND;
        break;
    }
    if (r.end != SEARCH_FOUND) s->last = (struct choice){.kind = 0};
    r.states = s->count;
    r.outcomes = s->outcomes.count - 1u;
    r.frontier = s->count - s->next;
    r.memory = memory_of(s);
    r.seconds = clock_now() - since;
    return r;
}

/* -------------------------------------------------------------------- paths */

static void print_choice(struct choice c)
{
    printf("%c%u", c.kind, c.party);
    if (c.at > 0) printf(":%u", c.at);
}

void exhaust_print_path(const struct universe *start)
{
    const struct search *s = &search;
    uint32_t count = 0;
    for (uint64_t k = s->last_state; k > 0; k = s->steps[k].parent) count++;
    struct choice *path = malloc((count + 1u) * sizeof *path);
    if (!path) abort();
    uint32_t left = count;
    for (uint64_t k = s->last_state; k > 0; k = s->steps[k].parent)
        path[--left] = s->steps[k].choice;
    if (s->last.kind) path[count++] = s->last;
    struct universe w = *start;
    for (uint32_t i = 0; i < count; i++) {
        char text[UNIVERSE_TEXT_MAX];
        universe_describe(&w, path[i], text, sizeof text);
        printf("%4u ", i);
        print_choice(path[i]);
        printf(": %s\n", text);
        struct universe next;
        if (universe_choose(&w, path[i], &next) != UNIVERSE_BAD)
            memcpy(&w, &next, universe_size(&next));
    }
    universe_print(&w);
    printf("replay:");
    for (uint32_t i = 0; i < count; i++) {
        printf(" ");
        print_choice(path[i]);
    }
    printf("\n");
    free(path);
}

static bool parse(const char **at, struct choice *c)
{
    char *end;
    while (**at == ' ' || **at == '\n') (*at)++;
    if (**at == '\0') return false;
    *c = (struct choice){.kind = (uint8_t) * (*at)++};
    c->party = (uint8_t)strtoul(*at, &end, 10);
    if (*end == ':') c->at = (uint8_t)strtoul(end + 1, &end, 10);
    *at = end;
    return true;
}

static bool is_offered(const struct universe *w, struct choice c)
{
    struct choice choices[CHOICES_MAX];
    uint32_t n = universe_choices(w, choices);
    for (uint32_t i = 0; i < n; i++) {
        if (memcmp(&choices[i], &c, sizeof c) == 0) return true;
    }
    return c.kind == CHOICE_TIME;
}

bool exhaust_drain(struct universe *w)
{
    struct choice choices[CHOICES_MAX];
    struct universe next;
    uint32_t n = universe_choices(w, choices);
    for (uint32_t i = 0; i < n; i++) {
        if (exhaust_is_fault(choices[i]) || choices[i].kind == CHOICE_PROGRAM)
            continue;
        if (universe_choose(w, choices[i], &next) != UNIVERSE_NEXT) continue;
        memcpy(w, &next, universe_size(&next));
        return true;
    }
    return false;
}

bool exhaust_replay(const struct universe *start, const char *path, bool print)
{
    struct universe w = *start, next;
    struct choice c;
    while (parse(&path, &c)) {
        char text[UNIVERSE_TEXT_MAX];
        if (!is_offered(&w, c)) {
            if (print) print_choice(c), printf(": impossible here\n");
            continue;
        }
        universe_describe(&w, c, text, sizeof text);
        if (print) print_choice(c), printf(": %s\n", text);
        enum universe_result result = universe_choose(&w, c, &next);
        if (result == UNIVERSE_BAD) return false;
        memcpy(&w, &next, universe_size(&next));
    }
    /* The rest of its life, in a fixed order. */
    for (;;) {
        struct choice choices[CHOICES_MAX];
        uint32_t n = universe_choices(&w, choices);
        bool moved = false;
        for (uint32_t i = 0; i < n && !moved; i++) {
            if (exhaust_is_fault(choices[i])) continue;
            enum universe_result result =
                universe_choose(&w, choices[i], &next);
            if (result == UNIVERSE_BAD) return false;
            moved = result == UNIVERSE_NEXT;
        }
        if (!moved &&
            (!universe_waits(&w) || w.quiet >= universe_config.patience))
            return universe_over(&w);
        c = (struct choice){.kind = CHOICE_TIME};
        if (!moved && universe_choose(&w, c, &next) == UNIVERSE_BAD)
            return false;
        memcpy(&w, &next, universe_size(&next));
    }
}
