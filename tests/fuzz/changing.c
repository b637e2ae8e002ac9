/* changing.c - another process that changes shared memory while it is read.
 *
 * The sources of link/, ring/ and message/ are compiled so that each block of
 * instructions calls __sanitizer_cov_trace_pc(). Between any two blocks a word
 * may change that this end is about to read, and change back: whoever reads a
 * word twice, checking it once, has checked another one. The changes follow
 * from one number, so a failure comes again. Linked with fuzz_conn.c. */
#include "member.h"

#include <stdio.h>

enum {
    HEADS = FRAME_SIZE + 16, /* bytes at the place of reading */
    CALM = 500,      /* blocks, or more, between two changes of how often */
    INDICES_OF = 24, /* one change in so many is of an index */
};

static uint64_t state = 0x853c49e6748fea9bu;
static uint64_t changes;

/* The word that was changed last. */
static struct {
    uint8_t *at; /* NULL: none */
    uint8_t size, was[8], is[8];
} last;

static void change_back(void)
{
    if (last.at && memcmp(last.at, last.is, last.size) == 0)
        memcpy(last.at, last.was, last.size);
    last.at = NULL;
}

static void change(uint8_t *at, uint8_t size)
{
    memcpy(last.was, at, size);
    memcpy(last.is, at, size);
    tape_vary_number(&state, last.is, size);
    memcpy(at, last.is, size);
    last.size = size;
    last.at = at;
    changes++;
}

static void change_index(struct channel *c)
{
    _Atomic uint64_t *indices[] = {&c->other->written, &c->other->read,
                                   &c->other->base,    &c->own->written,
                                   &c->own->read,      &c->own->base};
    change((uint8_t *)indices[tape_pick(&state, ARRAY_COUNT(indices))], 8);
}

/* The header that is read now or next, or the first bytes of its body. */
static void change_head(const struct channel *c)
{
    uint64_t base = atomic_load_explicit(&c->other->base, memory_order_relaxed);
    uint64_t at = c->read - base + tape_pick(&state, HEADS);
    uint8_t size = (uint8_t)(1u << tape_pick(&state, 4));
    /* The queue is mapped twice in a row. */
    change(c->in + (at & (c->size - 1)), size);
}

static void change_region(uint8_t *region)
{
    uint32_t slot = tape_pick(&state, SINGLE_COPY_SLOTS);
    size_t at = slot * sizeof(struct single_copy_head);
    if (tape_pick(&state, 4) == 0)
        at = SINGLE_COPY_HEAD +
             (size_t)slot * SINGLE_COPY_BUFFERS * SINGLE_COPY_BUFFER;
    change(region + at + 8 * (size_t)tape_pick(&state, 3), 8);
}

/* Now and then often, now and then never: what is read first must mostly be
 * right, or nothing is read behind it. */
static bool is_due(void)
{
    static const uint32_t odds[] = {2, 8, 64, UINT32_MAX};
    static uint32_t left, of = 2;
    if (left-- == 0) {
        left = CALM + tape_pick(&state, CALM);
        of = odds[tape_pick(&state, ARRAY_COUNT(odds))];
    }
    return tape_pick(&state, of) == 0;
}

void __sanitizer_cov_trace_pc(void);

void __sanitizer_cov_trace_pc(void)
{
    static bool inside;
    if (inside) return;
    inside = true;
    change_back();
    if (is_due()) {
        struct channel *c = member_channel_read();
        uint8_t *region = member_region();
        if (region && tape_pick(&state, 4) == 0) c = NULL;
        if (c && tape_pick(&state, INDICES_OF) == 0)
            change_index(c);
        else if (c)
            change_head(c);
        else if (region)
            change_region(region);
    }
    inside = false;
}

static void __attribute__((destructor)) report(void)
{
    (void)fprintf(stderr, "%llu words changed while they were read\n",
                  (unsigned long long)changes);
}
