/* state_plan.c - the questions of a receiver of shared state: it picks the
 * pieces and the partners, and checks the answers. See state.h. */
#include "state.h"

#include "../base/buggify.h"
#include "../hash/hash.h"
#include "../link/link.h"

#include <stdlib.h>
#include <string.h>

static bool bit_get(const uint64_t *bits, uint64_t i)
{
    return bits[i / 64] >> (i % 64) & 1;
}

static void bit_set(uint64_t *bits, uint64_t i)
{
    bits[i / 64] |= (uint64_t)1 << (i % 64);
}

static void bit_clear(uint64_t *bits, uint64_t i)
{
    bits[i / 64] &= ~((uint64_t)1 << (i % 64));
}

static void set_have(struct state_sync *s, uint64_t block)
{
    if (bit_get(s->have, block)) return;
    bit_set(s->have, block);
    s->have_count++;
}

static void set_wanted(struct state_sync *s, uint64_t block)
{
    if (bit_get(s->wanted, block)) return;
    bit_set(s->wanted, block);
    s->wanted_count++;
}

bool state_plan_begin(struct state_sync *s)
{
    uint64_t blocks = s->list->block_count;
    uint64_t words = blocks / 64 + 1;
    s->gains = calloc(s->list->count + (size_t)1, sizeof *s->gains);
    s->have = calloc(words, sizeof *s->have);
    s->wanted = calloc(words, sizeof *s->wanted);
    s->theirs = malloc((blocks + 1) * sizeof *s->theirs);
    s->names_size = 0;
    if (!s->differs) s->names_size = 8 * s->list->count;
    s->names = malloc(s->names_size + (size_t)1);
    return s->gains && s->have && s->wanted && s->theirs && s->names;
}

void state_plan_end(struct state_sync *s)
{
    free(s->gains);
    free(s->have);
    free(s->wanted);
    free(s->theirs);
    free(s->names);
    s->gains = NULL;
    s->have = s->wanted = s->theirs = NULL;
    s->names = NULL;
}

/* --- the questions --- */

static uint32_t at_most_a_body(uint64_t size)
{
    return size < FRAME_BODY_MAX ? (uint32_t)size : FRAME_BODY_MAX;
}

/* The structure, or the tensor hashes: one piece at a time, and all pieces from
 * one holder, so that whoever sent something wrong is known (rule S7d). */
static bool next_names(struct state_sync *s, const struct state_partner *p,
                       struct state_piece *piece)
{
    if (s->names_asked) return false;
    const struct state_partner *from = state_partner(s, s->names_from);
    if (s->names_got > 0 && from && !from->bad && from != p) return false;
    if (s->names_from != p->id) s->names_got = 0;
    s->names_from = p->id;
    s->names_asked = true;
    *piece =
        (struct state_piece){.kind = s->differs ? STATE_NAMES : STATE_TENSORS,
                             .offset = s->names_got,
                             .size = FRAME_BODY_MAX};
    if (!s->differs) piece->size = at_most_a_body(s->names_size - s->names_got);
    return true;
}

static bool next_hashes(struct state_sync *s, struct state_piece *piece)
{
    if (s->again_count > 0) {
        *piece = s->again[--s->again_count];
        return true;
    }
    for (; s->gain_next < s->list->count; s->gain_next++) {
        struct state_gain *g = &s->gains[s->gain_next];
        uint64_t total = 8 * s->list->tensors[s->gain_next].blocks;
        if (!g->differs || g->known || g->asked == total) continue;
        *piece = (struct state_piece){.kind = STATE_BLOCKS,
                                      .tensor = s->gain_next,
                                      .offset = g->asked,
                                      .size = at_most_a_body(total - g->asked)};
        g->asked += piece->size;
        return true;
    }
    return false;
}

static uint32_t tensor_of(const struct state_list *l, uint64_t block)
{
    uint32_t low = 0;
    uint32_t high = l->count;
    while (high - low > 1) {
        uint32_t middle = low + (high - low) / 2;
        if (l->tensors[middle].first <= block)
            low = middle;
        else
            high = middle;
    }
    /* A tensor without blocks has the place where the next one begins. */
    while (l->tensors[low].blocks == 0) low--;
    return low;
}

static uint64_t find_wanted(const struct state_sync *s, uint64_t from,
                            uint64_t to)
{
    for (uint64_t i = from; i < to;) {
        uint64_t word = s->wanted[i / 64] >> (i % 64);
        if (word == 0) {
            i = (i / 64 + 1) * 64;
            continue;
        }
        while (!(word & 1)) {
            word >>= 1;
            i++;
        }
        return i < to ? i : to;
    }
    return to;
}

/* The wanted blocks that are contiguous in one tensor, from `block` on. */
static void take_run(struct state_sync *s, uint64_t block,
                     struct state_piece *piece)
{
    uint32_t index = tensor_of(s->list, block);
    const struct state_tensor *t = &s->list->tensors[index];
    uint64_t end = block;
    uint64_t most = PCCL_BUGGIFY(state_short) ? 1 : STATE_PIECE_BLOCKS;
    while (end < t->first + t->blocks && end - block < most &&
           bit_get(s->wanted, end)) {
        bit_clear(s->wanted, end++);
        s->wanted_count--;
    }
    uint64_t offset = (block - t->first) * HASH_BLOCK_SIZE;
    uint64_t size = (end - block) * HASH_BLOCK_SIZE;
    if (size > t->size - offset) size = t->size - offset;
    *piece = (struct state_piece){.kind = STATE_BYTES,
                                  .tensor = index,
                                  .offset = offset,
                                  .size = (uint32_t)size};
}

static bool next_bytes(struct state_sync *s, struct state_partner *p,
                       struct state_piece *piece)
{
    if (s->wanted_count == 0) return false;
    uint64_t from = s->cut_off ? 0 : p->from;
    uint64_t to = s->cut_off ? s->list->block_count : p->to;
    uint64_t block = find_wanted(s, p->cursor, to);
    if (block == to) {
        block = find_wanted(s, from, p->cursor);
        if (block == p->cursor) return false;
    }
    take_run(s, block, piece);
    p->cursor = block + 1 < to ? block + 1 : from;
    return true;
}

/* Near the end an idle holder takes over a piece that another holder sends
 * slowly. Each time the patience doubles, so that a slow network also
 * completes. */
static bool steal(struct state_sync *s, const struct state_partner *p,
                  struct state_piece *piece)
{
    if (!p->holder || p->asked > 0) return false;
    pccl_ns patience = PCCL_BUGGIFY(state_steal) ? 0 : s->links->deadline / 16;
    struct state_flight *oldest = NULL;
    for (uint32_t i = 0; i < s->flight_end; i++) {
        struct state_flight *f = &s->flights[i];
        if (!f->used || f->receiving || f->piece.kind != STATE_BYTES) continue;
        if (f->steals > 8 || s->links->now - f->since < patience << f->steals)
            continue;
        if (!oldest || f->since < oldest->since) oldest = f;
    }
    if (!oldest) return false;
    struct state_partner *slow = state_partner(s, oldest->peer);
    if (slow) slow->asked--;
    *piece = oldest->piece;
    oldest->peer = p->id;
    oldest->since = s->links->now;
    oldest->steals++;
    return true;
}

static bool fly(struct state_sync *s, struct state_partner *p,
                const struct state_piece *piece)
{
    for (uint32_t i = 0; i < STATE_FLIGHTS_MAX; i++) {
        if (s->flights[i].used) continue;
        s->flights[i] = (struct state_flight){.used = true,
                                              .peer = p->id,
                                              .piece = *piece,
                                              .since = s->links->now};
        if (i >= s->flight_end) s->flight_end = i + 1;
        p->asked++;
        return true;
    }
    return false;
}

static bool room_to_fly(const struct state_sync *s)
{
    for (uint32_t i = 0; i < STATE_FLIGHTS_MAX; i++) {
        if (!s->flights[i].used) return true;
    }
    return false;
}

bool state_plan_next(struct state_sync *s, struct state_partner *p,
                     struct state_piece *piece)
{
    if (!(s->receives || s->differs) || s->outcome != STATE_OPEN) return false;
    if (p->asked > 0 && PCCL_BUGGIFY(state_one)) return false;
    if (p->bad || p->asked >= STATE_WINDOW || s->links->now < p->pause_until)
        return false;
    if (!room_to_fly(s)) return false;
    bool gives_hashes = p->holder || (s->cut_off && s->receives);
    if (!s->hashes_known)
        return gives_hashes && next_names(s, p, piece) && fly(s, p, piece);
    if (gives_hashes && next_hashes(s, piece)) return fly(s, p, piece);
    if (next_bytes(s, p, piece)) return fly(s, p, piece);
    if (!steal(s, p, piece)) return false;
    p->asked++;
    return true;
}

/* The partner that was asked will not send the piece: it is wanted again. */
void state_plan_release(struct state_sync *s, struct state_flight *f)
{
    const struct state_piece piece = f->piece;
    struct state_partner *p = state_partner(s, f->peer);
    if (p) p->asked--;
    if (f->stage) f->stage->used = false;
    f->used = false;
    switch ((enum state_kind)piece.kind) {
    case STATE_NAMES:
    case STATE_TENSORS:
        s->names_asked = false;
        s->names_got = 0;
        return;
    case STATE_BLOCKS:
        PCCL_ASSERT(s->again_count < STATE_FLIGHTS_MAX);
        s->again[s->again_count++] = piece;
        return;
    case STATE_BYTES: {
        const struct state_tensor *t = &s->list->tensors[piece.tensor];
        uint64_t first = t->first + piece.offset / HASH_BLOCK_SIZE;
        uint64_t count = hash_block_count(piece.size);
        for (uint64_t i = 0; i < count; i++) set_wanted(s, first + i);
        return;
    }
    case STATE_KIND_COUNT:
        break;
    }
}

/* --- the answers --- */

/* Of the structure the first piece says how large it is (rule S7d). */
static uint64_t names_total(const struct state_sync *s,
                            const struct state_flight *f, uint32_t total)
{
    bool says = f->piece.kind == STATE_NAMES && f->piece.offset == 0;
    return says ? total : s->names_size;
}

bool state_plan_fits(const struct state_sync *s, const struct state_flight *f,
                     uint32_t size, uint32_t total)
{
    const struct state_piece *p = &f->piece;
    if (p->kind > STATE_TENSORS) return size == p->size;
    uint64_t all = names_total(s, f, total);
    if (p->kind == STATE_NAMES && (total != all || all > STATE_NAMES_MAX))
        return false;
    return size == at_most_a_body(all - p->offset);
}

uint8_t *state_plan_target(struct state_sync *s, struct state_flight *f,
                           uint32_t total)
{
    const struct state_piece *p = &f->piece;
    if (p->kind <= STATE_TENSORS) {
        uint64_t all = names_total(s, f, total);
        uint8_t *names = s->names;
        if (all != s->names_size) names = realloc(names, all + 1);
        if (!names) return NULL;
        s->names = names;
        s->names_size = (uint32_t)all;
        return names + p->offset;
    }
    const struct state_tensor *t = &s->list->tensors[p->tensor];
    if (p->kind == STATE_BLOCKS)
        return (uint8_t *)(s->theirs + t->first) + p->offset;
    if (!t->device) return t->data + p->offset;
    f->stage = state_stage_take(s, t->device);
    return f->stage ? f->stage->bytes : NULL;
}

/* The block hashes of a tensor are right: fellows may ask for them. */
static void pass_on(struct state_sync *s, const struct state_tensor *t,
                    const uint64_t *hashes)
{
    for (uint64_t i = 0; i < t->blocks; i++) {
        s->theirs[t->first + i] = hashes[i];
        state_put_word(&s->theirs[t->first + i]);
    }
}

/* Tensor hashes that match the digest of the master. */
static bool learn_tensors(struct state_sync *s)
{
    struct state_list *l = s->list;
    if (state_content(s->names, l->count) != s->content) return false;
    for (uint32_t i = 0; i < l->count; i++) {
        const struct state_tensor *t = &l->tensors[i];
        struct state_gain *g = &s->gains[i];
        uint64_t hash = state_word(s->names + 8 * (size_t)i);
        g->differs = hash != l->hashes[i];
        l->hashes[i] = hash;
        /* The hash of a lone block is implied by the tensor's. */
        g->known = !g->differs || t->blocks == 1;
        s->unknown += !g->known;
        for (uint64_t b = 0; b < t->blocks && g->known; b++) {
            if (g->differs)
                set_wanted(s, t->first + b);
            else
                set_have(s, t->first + b);
        }
        if (!g->differs) pass_on(s, t, l->blocks + t->first);
    }
    s->hashes_known = true;
    return true;
}

static bool take_names(struct state_sync *s, uint32_t size)
{
    s->names_asked = false;
    s->names_got += size;
    if (s->names_got < s->names_size) return true;
    s->names_got = 0;
    if (!s->differs) return learn_tensors(s);
    if (hash_bytes(s->names, s->names_size, 1) != s->structure) return false;
    static const struct wire_member unknown;
    const struct wire_member *self = links_member(s->links, s->links->self);
    state_list_explain(s->list, s->links->view->rank, self ? self : &unknown,
                       s->names, s->names_size, s->explanation,
                       sizeof s->explanation);
    s->outcome = STATE_EXPLAINED;
    return true;
}

static bool take_hashes(struct state_sync *s, uint32_t index, uint32_t size)
{
    struct state_list *l = s->list;
    const struct state_tensor *t = &l->tensors[index];
    struct state_gain *g = &s->gains[index];
    g->got += size;
    if (g->got < 8 * t->blocks) return true;
    uint64_t *theirs = s->theirs + t->first;
    for (uint64_t i = 0; i < t->blocks; i++)
        theirs[i] = state_word((const uint8_t *)&theirs[i]);
    if (hash_combine(theirs, t->size) != l->hashes[index]) {
        g->asked = g->got = 0;
        s->gain_next = 0;
        return false;
    }
    g->known = true;
    s->unknown--;
    for (uint64_t i = 0; i < t->blocks; i++) {
        uint64_t *own = &l->blocks[t->first + i];
        if (*own == theirs[i])
            set_have(s, t->first + i);
        else
            set_wanted(s, t->first + i);
        *own = theirs[i];
    }
    pass_on(s, t, theirs);
    return true;
}

static bool block_right(struct state_sync *s, uint32_t index, uint64_t block,
                        uint64_t hash)
{
    struct state_list *l = s->list;
    const struct state_tensor *t = &l->tensors[index];
    if (t->blocks > 1) return hash == l->blocks[t->first + block];
    if (hash_combine(&hash, t->size) != l->hashes[index]) return false;
    l->blocks[t->first] = hash;
    return true;
}

/* There are many partners only as holders come and go, so the search visits
 * few. */
static void note_taken(struct state_sync *s, uint64_t peer, uint64_t size)
{
    uint32_t i = 0;
    while (i < s->taken_count && s->taken[i] != peer) i += 2;
    if (i == s->taken_count) {
        PCCL_ASSERT(s->taken_count < s->taken_room);
        s->taken_count += 2;
        s->taken[i] = peer;
        s->taken[i + 1] = 0;
    }
    s->taken[i + 1] += size;
    s->rx_bytes += size;
}

/* A piece for a device is checked on the host. Only a correct piece is copied
 * to the device. */
static bool write_block(struct state_sync *s, const struct state_flight *f,
                        uint64_t at, uint64_t size)
{
    static const char failed[] = "a tensor on a device could not be written";
    const struct state_tensor *t = &s->list->tensors[f->piece.tensor];
    const struct state_device *d = t->device;
    if (!d || d->write(d->user, t->data + f->piece.offset + at,
                       f->stage->bytes + at, size))
        return true;
    memcpy(s->explanation, failed, sizeof failed);
    s->outcome = STATE_FAILED;
    return false;
}

static bool take_bytes(struct state_sync *s, const struct state_flight *f)
{
    const struct state_piece *p = &f->piece;
    const struct state_tensor *t = &s->list->tensors[p->tensor];
    const uint8_t *bytes = f->stage ? f->stage->bytes : t->data + p->offset;
    uint64_t hashes[STATE_PIECE_BLOCKS];
    uint64_t first = p->offset / HASH_BLOCK_SIZE;
    uint64_t count = hash_block_count(p->size);
    bool right = true;
    hash_blocks(bytes, p->size, 0, count, hashes, 1);
    for (uint64_t i = 0; i < count; i++) {
        uint64_t left = p->size - i * HASH_BLOCK_SIZE;
        uint64_t size = left < HASH_BLOCK_SIZE ? left : HASH_BLOCK_SIZE;
        if (!block_right(s, p->tensor, first + i, hashes[i])) {
            set_wanted(s, t->first + first + i);
            right = false;
        } else if (write_block(s, f, i * HASH_BLOCK_SIZE, size)) {
            note_taken(s, f->peer, size);
            set_have(s, t->first + first + i);
        }
    }
    return right;
}

/* The master may list the peer as a holder before the peer receives that
 * list. */
static void received(struct state_sync *s)
{
    s->outcome = STATE_RECEIVED;
    if (!s->fellows) return;
    s->serves = true;
    state_list_to_wire(s->list);
}

bool state_plan_take(struct state_sync *s, const struct state_flight *f,
                     uint32_t size)
{
    bool right = true;
    if (f->piece.kind <= STATE_TENSORS) right = take_names(s, size);
    if (f->piece.kind == STATE_BLOCKS)
        right = take_hashes(s, f->piece.tensor, size);
    if (f->piece.kind == STATE_BYTES) right = take_bytes(s, f);
    if (s->receives && s->outcome == STATE_OPEN && s->hashes_known &&
        s->unknown == 0 && s->have_count == s->list->block_count)
        received(s);
    return right;
}

/* The blocks that a receiver can pass on already. */
bool state_plan_has(const struct state_sync *s, const struct state_piece *p)
{
    if (!s->receives || !s->hashes_known || p->kind != STATE_BYTES)
        return false;
    const struct state_tensor *t = &s->list->tensors[p->tensor];
    if (p->offset % HASH_BLOCK_SIZE != 0) return false;
    uint64_t first = t->first + p->offset / HASH_BLOCK_SIZE;
    uint64_t count = hash_block_count(p->size);
    for (uint64_t i = 0; i < count; i++) {
        if (!bit_get(s->have, first + i)) return false;
    }
    return true;
}

const uint8_t *state_plan_hashes(const struct state_sync *s,
                                 const struct state_piece *p)
{
    if (!s->receives || !s->hashes_known) return NULL;
    uint64_t total = s->names_size;
    const uint8_t *from = s->names;
    if (p->kind == STATE_NAMES) return NULL;
    if (p->kind == STATE_BLOCKS) {
        if (p->tensor >= s->list->count || !s->gains[p->tensor].known)
            return NULL;
        const struct state_tensor *t = &s->list->tensors[p->tensor];
        total = t->blocks > 1 ? 8 * t->blocks : 0; /* a lone one is implied */
        from = (const uint8_t *)(s->theirs + t->first);
    }
    bool inside = p->offset <= total && p->size <= total - p->offset;
    return inside ? from + p->offset : NULL;
}
