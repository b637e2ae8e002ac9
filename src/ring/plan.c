/* plan.c - see plan.h.
 *
 * Ring all-reduce after Patarasuk & Yuan, JPDC 69(2), 2009: world-1 steps of
 * reduce-scatter, world-1 of all-gather. In step s the member at position p
 * sends chunk p-s and receives chunk p-s-1; it ends up owning chunk p+1, and
 * the all-gather passes on what was received one step before. Both halves are
 * one stream of 2(world-1) steps, each of `segments` transfers, in which the
 * k-th sent depends on the one received a step earlier. Within a host, of
 * vectors that no cache holds, they are not sent step by step but skewed (rule
 * D14), by the sum of step and segment: what has just come is passed on before
 * the next segment comes, and need not be read from memory again.
 *
 * Pairwise all-reduce, for members that share processors and memory, and for
 * those that are far apart, where each step of a ring takes a distance: chunk r
 * is that of rank r. Everybody sends each owner its part, and each owner sends
 * everybody the sum. As many bytes as in a ring, but who waits, waits twice and
 * not 2(world-1) times for another member's turn on the processor. Where
 * members share a site, what crosses to another one is added up before
 * (tree.h).
 *
 * Lent: pairwise for large vectors of members that share memory, segment by
 * segment: the sum of one follows the input of the next, and the input after
 * that waits for all sums of the first (rule D16), so that no more than two are
 * anywhere under way. */
#include "plan.h"

#include <string.h>

static uint32_t at_position(const struct plan *p, uint32_t position)
{
    return p->r.order ? p->r.order[position] : position;
}

static uint32_t position_of(const struct plan *p, uint32_t rank)
{
    if (!p->r.order) return rank;
    for (uint32_t i = 0; i < p->r.world; i++) {
        if (p->r.order[i] == rank) return i;
    }
    assert(false && "position_of: the rank is not in the ring");
    return 0;
}

uint64_t plan_vector_size(const struct plan *p)
{
    return p->r.count * p->r.element - p->r.spare;
}

/* Positions and chunks are taken modulo world; `back` <= world. */
static uint32_t wrap(const struct plan *p, uint32_t from, uint32_t back)
{
    return (from + p->r.world - back % p->r.world) % p->r.world;
}

static uint64_t chunk_first(const struct plan *p, uint32_t chunk)
{
    uint64_t base = p->r.count / p->r.world;
    uint64_t rest = p->r.count % p->r.world;
    return base * chunk + (chunk < rest ? chunk : rest);
}

/* Bytes; no chunk has more than chunk 0. */
static uint64_t chunk_size(const struct plan *p, uint32_t chunk)
{
    uint64_t first = chunk_first(p, chunk);
    uint64_t next = chunk_first(p, chunk + 1);
    uint64_t size = (next - first) * p->r.element;
    return next > first && next == p->r.count ? size - p->r.spare : size;
}

/* What all have put down, and wait for others to take, stays in a cache; the
 * fewer members, the larger are the portions between two turns of the others.
 */
static uint64_t single_copy_segment(const struct plan *p)
{
    if (p->r.piece > 0) return p->r.piece;
    uint64_t segment = PLAN_SINGLE_COPY_TOTAL / p->r.world / p->r.world;
    if (segment < PLAN_SINGLE_COPY_MIN) return PLAN_SINGLE_COPY_MIN;
    return segment < PLAN_SINGLE_COPY_MAX ? segment : PLAN_SINGLE_COPY_MAX;
}

/* Segments small enough that transfer and reduction overlap, large enough
 * that a frame header costs nothing; whole elements. Between hosts each of
 * many connections is to have one under way, and while it travels a next.
 * Sockets within a host give more by few large calls than by overlap, where
 * everybody sends at all times. */
static void choose_segments(struct plan *p, uint64_t size)
{
    uint64_t least = p->r.one_host ? PLAN_SEGMENT_MIN : PLAN_SEGMENT_WAN_MIN;
    uint64_t segment = size / (p->r.one_host ? 4 : 64);
    if (p->r.sockets && p->kind == PLAN_RING) segment = size;
    if (segment < least) segment = least;
    /* Of a size that needs no READY (rule D2). */
    if (p->kind == PLAN_PAIRWISE) segment = PLAN_SEGMENT_MIN;
    if (p->kind == PLAN_SINGLE_COPY) segment = single_copy_segment(p);
    uint64_t most =
        p->interleaved ? PLAN_SEGMENT_INTERLEAVED_MAX : PLAN_SEGMENT_MAX;
    if (segment > most) segment = most;
    /* Elements are powers of two up to 64 bytes, or larger blocks. */
    segment -= segment % (p->r.element > 64 ? p->r.element : 64);
    p->segment = segment;
    p->segments = (uint32_t)((size + segment - 1) / segment);
    if (p->segments == 0) p->segments = 1;
}

/* Members of one host share its processors, and then what counts with sockets
 * is how many messages there are in all: 2(n-1) instead of n(n-1). */
static bool may_be_star(const struct plan_request *r)
{
    return r->mesh && r->sockets && r->world > 2;
}

/* Between hosts a ring takes 2(n-1) of their distances, one behind the other;
 * this takes two. Unless sites are known it lets more bytes cross a way that
 * many share. */
static bool may_be_pairwise(const struct plan_request *r)
{
    uint64_t most = r->one_host ? PLAN_PAIRWISE_MAX : PLAN_PAIRWISE_WAN_MAX;
    bool may = r->one_host ? r->pairwise : r->plain;
    return r->mesh && may && r->world > 2 && r->count * r->element <= most;
}

/* Rule D16. Smaller vectors pass through queues that stay in the caches. */
static bool may_be_single_copy(const struct plan_request *r)
{
    return r->one_host && r->pairwise && r->mesh && r->world > 2 &&
           r->world <= r->single_copy_world &&
           r->count * r->element > PLAN_PAIRWISE_MAX;
}

static enum plan_kind choose_kind(const struct plan_request *r)
{
    uint64_t size = r->count * r->element - r->spare;
    uint64_t most = r->hierarchy && r->coll == COLL_ALLREDUCE && r->plain
                        ? PLAN_EXCHANGE_SITES_MAX
                        : PLAN_EXCHANGE_MAX;
    bool small =
        r->mesh && size <= most && size * (r->world - 1) <= PLAN_EXCHANGE_TOTAL;
    bool star = may_be_star(r) && size <= PLAN_EXCHANGE_MAX;
    if (r->world == 1) return PLAN_LOCAL;
    switch (r->coll) {
    case COLL_ALLREDUCE:
    case COLL_BARRIER:
        if (star) return PLAN_STAR;
        if (small) return PLAN_EXCHANGE;
        if (may_be_pairwise(r)) return PLAN_PAIRWISE;
        return may_be_single_copy(r) ? PLAN_SINGLE_COPY : PLAN_RING;
    case COLL_BROADCAST:
        if (small && r->pairwise) return PLAN_SPREAD;
        return small || star ? PLAN_FLAT : PLAN_CHAIN;
    case COLL_ALLGATHER:
        return small ? PLAN_GATHER_FLAT : PLAN_GATHER_RING;
    case COLL_ALLTOALLV:
        return PLAN_ALLTOALL;
    }
    assert(false && "choose_kind: not a collective");
    return PLAN_LOCAL;
}

void plan_init(struct plan *p, const struct plan_request *request)
{
    assert(request->world > 0 && request->rank < request->world);
    assert(request->root < request->world);
    memset(p, 0, sizeof *p);
    p->r = *request;
    if (p->r.coll == COLL_BARRIER) p->r.count = 0;
    if (p->r.coll != COLL_ALLREDUCE) {
        p->r.element = 1;
        p->r.spare = 0;
    }
    p->kind = choose_kind(&p->r);
    p->position = position_of(p, p->r.rank);
    p->prev = at_position(p, wrap(p, p->position, 1));
    p->next = at_position(p, (p->position + 1) % p->r.world);
    p->place = wrap(p, p->position, position_of(p, p->r.root));
    p->star =
        p->kind == PLAN_STAR || (p->kind == PLAN_FLAT && may_be_star(&p->r));
    p->center = p->kind == PLAN_FLAT ? p->r.root : p->r.center % p->r.world;
    uint64_t size = plan_vector_size(p);
    if (p->kind == PLAN_RING || plan_has_pieces(p)) size = chunk_size(p, 0);
    p->streamed =
        p->r.pairwise && plan_vector_size(p) * p->r.world >= p->r.cached;
    p->interleaved = p->kind == PLAN_RING && p->streamed;
    choose_segments(p, size);
    p->direct = plan_is_ring(p) && p->r.mesh && !p->r.one_host;
}

bool plan_is_ring(const struct plan *p)
{
    return p->kind == PLAN_RING || p->kind == PLAN_CHAIN ||
           p->kind == PLAN_GATHER_RING;
}

bool plan_has_pieces(const struct plan *p)
{
    return p->kind == PLAN_PAIRWISE || p->kind == PLAN_SINGLE_COPY;
}

bool plan_is_center(const struct plan *p)
{
    return p->star && p->r.rank == p->center;
}

uint32_t plan_partners(const struct plan *p)
{
    if (p->kind == PLAN_LOCAL) return 0;
    if (plan_is_ring(p) && !p->direct) return p->prev == p->next ? 1 : 2;
    if (p->star && p->r.rank != p->center) return 1;
    return p->r.world - 1;
}

/* Of a direct ring: those beside the neighbours, by rank. */
static uint32_t nth_other(const struct plan *p, uint32_t i)
{
    uint32_t rank = 0;
    for (;; rank++) {
        if (rank == p->r.rank || rank == p->prev || rank == p->next) continue;
        if (i-- == 0) return rank;
    }
}

uint32_t plan_partner(const struct plan *p, uint32_t i)
{
    assert(i < plan_partners(p));
    if (plan_is_ring(p) && i > 1) return nth_other(p, i - 2);
    if (plan_is_ring(p)) return i == 0 ? p->prev : p->next;
    if (p->star && p->r.rank != p->center) return p->center;
    return i < p->r.rank ? i : i + 1;
}

static uint32_t pieces(uint64_t size)
{
    return (uint32_t)((size + PLAN_SEGMENT_MAX - 1) / PLAN_SEGMENT_MAX);
}

/* Steps of the ring in which this member sends; it receives in as many. */
static uint32_t ring_steps(const struct plan *p)
{
    return p->kind == PLAN_RING ? 2 * (p->r.world - 1) : p->r.world - 1;
}

/* Chunks of which `from` sends its part to `to`, and the i-th of them. */
static uint32_t parts_to(const struct plan *p, uint32_t from, uint32_t to)
{
    return p->r.hierarchy ? hierarchy_chunks(p->r.hierarchy, from, to) : 1;
}

static uint32_t part_to(const struct plan *p, uint32_t from, uint32_t to,
                        uint32_t i)
{
    return p->r.hierarchy ? hierarchy_chunk(p->r.hierarchy, from, to, i) : to;
}

/* Transfers from one to the other: its parts, and then the sums that it has for
 * the other's parts. */
static uint32_t pairwise_count(const struct plan *p, uint32_t a, uint32_t b)
{
    return (parts_to(p, a, b) + parts_to(p, b, a)) * p->segments;
}

uint32_t plan_sends(const struct plan *p, uint32_t to)
{
    switch (p->kind) {
    case PLAN_LOCAL:
        return 0;
    case PLAN_EXCHANGE:
    case PLAN_STAR:
    case PLAN_GATHER_FLAT:
    case PLAN_SPREAD:
        return 1;
    case PLAN_FLAT:
        return p->r.rank == p->r.root ? 1 : 0;
    case PLAN_CHAIN:
        return to == p->next && p->place + 1 < p->r.world ? p->segments : 0;
    case PLAN_PAIRWISE:
        return pairwise_count(p, p->r.rank, to);
    case PLAN_SINGLE_COPY:
        return 2 * p->segments;
    case PLAN_RING:
    case PLAN_GATHER_RING:
        return to == p->next ? ring_steps(p) * p->segments : 0;
    case PLAN_ALLTOALL:
        return pieces(p->r.send_bytes[to]);
    }
    return 0;
}

uint32_t plan_recvs(const struct plan *p, uint32_t from)
{
    switch (p->kind) {
    case PLAN_LOCAL:
        return 0;
    case PLAN_EXCHANGE:
    case PLAN_STAR:
    case PLAN_GATHER_FLAT:
    case PLAN_SPREAD:
        return 1;
    case PLAN_FLAT:
        return from == p->r.root ? 1 : 0;
    case PLAN_CHAIN:
        return from == p->prev && p->place > 0 ? p->segments : 0;
    case PLAN_PAIRWISE:
        return pairwise_count(p, from, p->r.rank);
    case PLAN_SINGLE_COPY:
        return 2 * p->segments;
    case PLAN_RING:
    case PLAN_GATHER_RING:
        return from == p->prev ? ring_steps(p) * p->segments : 0;
    case PLAN_ALLTOALL:
        return pieces(p->r.recv_bytes[from]);
    }
    return 0;
}

/* Segment g of a span of `size` bytes that starts at `first`. */
static void cut(const struct plan *p, uint64_t first, uint64_t size, uint32_t g,
                struct plan_xfer *x)
{
    uint64_t begin = g * p->segment;
    uint64_t left = begin < size ? size - begin : 0;
    x->offset = first + (begin < size ? begin : size);
    x->size = (uint32_t)(left < p->segment ? left : p->segment);
}

static void chunk_cut(const struct plan *p, uint32_t chunk, uint32_t g,
                      struct plan_xfer *x)
{
    cut(p, chunk_first(p, chunk) * p->r.element, chunk_size(p, chunk), g, x);
}

static void pair_cut(const size_t *bytes, const size_t *displs, uint32_t rank,
                     uint32_t k, struct plan_xfer *x)
{
    uint64_t begin = (uint64_t)k * PLAN_SEGMENT_MAX;
    uint64_t left = bytes[rank] - begin;
    x->offset = displs[rank] + begin;
    x->size = (uint32_t)(left < PLAN_SEGMENT_MAX ? left : PLAN_SEGMENT_MAX);
}

/* Skewed: transfers of which step and segment add up to less than `diagonal`.
 * Diagonals grow, stay, and shrink again. */
static uint32_t before_diagonal(const struct plan *p, uint32_t diagonal)
{
    uint32_t steps = ring_steps(p);
    uint32_t less = steps < p->segments ? steps : p->segments;
    uint32_t more = steps < p->segments ? p->segments : steps;
    uint32_t left = steps + p->segments - 1 - diagonal;
    if (diagonal <= less) return diagonal * (diagonal + 1) / 2;
    if (diagonal <= more)
        return less * (less + 1) / 2 + (diagonal - less) * less;
    return steps * p->segments - left * (left + 1) / 2;
}

/* The first step on a diagonal. */
static uint32_t first_step(const struct plan *p, uint32_t diagonal)
{
    return diagonal < p->segments ? 0 : diagonal - p->segments + 1;
}

static uint32_t ring_index(const struct plan *p, uint32_t step, uint32_t g)
{
    if (!p->interleaved) return step * p->segments + g;
    uint32_t diagonal = step + g;
    return before_diagonal(p, diagonal) + step - first_step(p, diagonal);
}

static uint32_t ring_step(const struct plan *p, uint32_t k, uint32_t *g)
{
    if (!p->interleaved) {
        *g = k % p->segments;
        return k / p->segments;
    }
    uint32_t diagonal = 0;
    uint32_t end = ring_steps(p) + p->segments - 1;
    while (end - diagonal > 1) {
        uint32_t middle = diagonal + (end - diagonal) / 2;
        if (before_diagonal(p, middle) <= k)
            diagonal = middle;
        else
            end = middle;
    }
    uint32_t step = first_step(p, diagonal) + k - before_diagonal(p, diagonal);
    *g = diagonal - step;
    return step;
}

bool plan_is_streamed(const struct plan *p, uint32_t k)
{
    uint32_t g;
    return p->interleaved && ring_step(p, k, &g) + 1 == ring_steps(p);
}

bool plan_is_first_write(const struct plan *p, uint32_t k)
{
    uint32_t g;
    return ring_step(p, k, &g) < p->r.world;
}

static void ring_send(const struct plan *p, uint32_t k, struct plan_xfer *x)
{
    uint32_t g;
    uint32_t step = ring_step(p, k, &g);
    uint32_t half = p->r.world - 1;
    uint32_t chunk = step < half ? wrap(p, p->position, step)
                                 : wrap(p, p->position + 1, step - half);
    chunk_cut(p, chunk, g, x);
    x->space = step == 0 ? SPACE_SEND : SPACE_RECV;
    x->after = step == 0 ? PLAN_NOTHING : ring_index(p, step - 1, g);
}

static void ring_recv(const struct plan *p, uint32_t k, struct plan_xfer *x)
{
    uint32_t g;
    uint32_t step = ring_step(p, k, &g);
    uint32_t half = p->r.world - 1;
    uint32_t chunk = step < half ? wrap(p, p->position, step + 1)
                                 : wrap(p, p->position, step - half);
    chunk_cut(p, chunk, g, x);
    x->action = ACTION_STORE;
    if (step < half) x->action = ACTION_REDUCE;
    if (step == half - 1) x->action = ACTION_DIVIDE;
}

uint64_t plan_chunk_max(const struct plan *p)
{
    return chunk_size(p, 0);
}

void plan_piece_place(const struct plan *p, uint32_t piece, struct plan_xfer *x)
{
    chunk_cut(p, piece / p->segments, piece % p->segments, x);
}

static uint32_t pairwise_piece(const struct plan *p, uint32_t from, uint32_t to,
                               uint32_t k, bool *part)
{
    uint32_t parts = parts_to(p, from, to);
    uint32_t i = k / p->segments;
    *part = i < parts;
    uint32_t chunk =
        *part ? part_to(p, from, to, i) : part_to(p, to, from, i - parts);
    return chunk * p->segments + k % p->segments;
}

bool plan_is_sum(const struct plan *p, uint32_t k, uint32_t *segment)
{
    bool last = k + 1 == 2 * p->segments;
    bool input = k == 0 || (k % 2 == 1 && !last);
    *segment = input ? (k + 1) / 2 : k / 2 - (last ? 0 : 1);
    return !input;
}

static uint32_t cma_piece(const struct plan *p, uint32_t from, uint32_t to,
                          uint32_t k)
{
    uint32_t g;
    bool sum = plan_is_sum(p, k, &g);
    return (sum ? from : to) * p->segments + g;
}

uint32_t plan_piece(const struct plan *p, uint32_t from, uint32_t k)
{
    if (p->kind == PLAN_SINGLE_COPY) return cma_piece(p, from, p->r.rank, k);
    bool part;
    return pairwise_piece(p, from, p->r.rank, k, &part);
}

bool plan_is_part(const struct plan *p, uint32_t from, uint32_t k)
{
    uint32_t g;
    if (p->kind == PLAN_SINGLE_COPY) return !plan_is_sum(p, k, &g);
    return k / p->segments < parts_to(p, from, p->r.rank);
}

uint32_t plan_turns(const struct plan *p, uint32_t piece)
{
    uint32_t chunk = piece / p->segments;
    if (p->r.hierarchy) return hierarchy_turns(p->r.hierarchy, chunk);
    return chunk == p->r.rank ? p->r.world - 1 : 0;
}

uint32_t plan_turn(const struct plan *p, uint32_t piece, uint32_t from)
{
    if (p->r.hierarchy)
        return hierarchy_turn(p->r.hierarchy, piece / p->segments, from);
    return wrap(p, from, p->r.rank);
}

uint32_t plan_parts(const struct plan *p)
{
    return p->r.hierarchy ? p->r.hierarchy->parts : p->r.world - 1;
}

uint32_t plan_parts_before(const struct plan *p, uint32_t chunk)
{
    return p->r.hierarchy ? p->r.hierarchy->parts_before[chunk] : 0;
}

static void pairwise_send(const struct plan *p, uint32_t to, uint32_t k,
                          struct plan_xfer *x)
{
    bool part;
    uint32_t piece = pairwise_piece(p, p->r.rank, to, k, &part);
    uint32_t chunk = piece / p->segments;
    plan_piece_place(p, piece, x);
    if (part && plan_turns(p, piece) == 0) return;
    x->space = SPACE_RECV;
    x->after = piece;
    if (!part && chunk != p->r.rank) x->after += p->r.world * p->segments;
}

static void cma_send(const struct plan *p, uint32_t to, uint32_t k,
                     struct plan_xfer *x)
{
    uint32_t g;
    bool sum = plan_is_sum(p, k, &g);
    plan_piece_place(p, cma_piece(p, p->r.rank, to, k), x);
    x->space = sum ? SPACE_RECV : SPACE_SEND;
    if (sum)
        x->after = g;
    else if (g >= 2)
        x->after = p->segments + g - 2;
}

static void pairwise_recv(const struct plan *p, uint32_t from, uint32_t k,
                          struct plan_xfer *x)
{
    uint32_t piece = plan_piece(p, from, k);
    plan_piece_place(p, piece, x);
    x->action = plan_is_part(p, from, k) ? ACTION_REDUCE : ACTION_STORE;
}

/* Block b of a gather is that of the member at ring position b. */
static void block_cut(const struct plan *p, uint32_t position, uint32_t g,
                      struct plan_xfer *x)
{
    uint64_t size = plan_vector_size(p);
    cut(p, at_position(p, position) * size, size, g, x);
}

void plan_send(const struct plan *p, uint32_t to, uint32_t k,
               struct plan_xfer *x)
{
    assert(k < plan_sends(p, to));
    *x = (struct plan_xfer){.space = SPACE_SEND, .after = PLAN_NOTHING};
    uint32_t step = k / p->segments;
    switch (p->kind) {
    case PLAN_LOCAL:
        return;
    case PLAN_EXCHANGE:
        x->size = (uint32_t)plan_vector_size(p);
        return;
    case PLAN_STAR:
        x->size = (uint32_t)plan_vector_size(p);
        if (p->r.rank != p->center) return;
        x->space = SPACE_RECV;
        x->after = PLAN_ALL;
        return;
    case PLAN_GATHER_FLAT:
        x->space = SPACE_RECV; /* one's own block is put there first */
        x->size = (uint32_t)plan_vector_size(p);
        x->offset = p->r.rank * plan_vector_size(p);
        return;
    case PLAN_SPREAD:
        x->space = SPACE_RECV;
        if (p->r.rank == p->r.root) x->size = (uint32_t)plan_vector_size(p);
        return;
    case PLAN_FLAT:
        x->space = SPACE_RECV;
        x->size = (uint32_t)plan_vector_size(p);
        return;
    case PLAN_CHAIN:
        cut(p, 0, plan_vector_size(p), k, x);
        x->space = SPACE_RECV;
        if (p->place > 0) x->after = k;
        return;
    case PLAN_PAIRWISE:
        pairwise_send(p, to, k, x);
        return;
    case PLAN_SINGLE_COPY:
        cma_send(p, to, k, x);
        return;
    case PLAN_RING:
        ring_send(p, k, x);
        return;
    case PLAN_GATHER_RING:
        block_cut(p, wrap(p, p->position, step), k % p->segments, x);
        x->space = SPACE_RECV;
        if (step > 0) x->after = k - p->segments;
        return;
    case PLAN_ALLTOALL:
        pair_cut(p->r.send_bytes, p->r.send_displs, to, k, x);
        return;
    }
}

void plan_recv(const struct plan *p, uint32_t from, uint32_t k,
               struct plan_xfer *x)
{
    assert(k < plan_recvs(p, from));
    *x = (struct plan_xfer){.space = SPACE_RECV, .after = PLAN_NOTHING};
    uint32_t step = k / p->segments;
    switch (p->kind) {
    case PLAN_LOCAL:
        return;
    case PLAN_EXCHANGE:
        x->space = SPACE_SLOT;
        x->size = (uint32_t)plan_vector_size(p);
        x->offset = from * plan_vector_size(p);
        return;
    case PLAN_STAR:
        x->size = (uint32_t)plan_vector_size(p);
        if (p->r.rank != p->center) return;
        x->space = SPACE_SLOT;
        x->offset = from * plan_vector_size(p);
        return;
    case PLAN_GATHER_FLAT:
        x->size = (uint32_t)plan_vector_size(p);
        x->offset = from * plan_vector_size(p);
        return;
    case PLAN_SPREAD:
        if (from == p->r.root) x->size = (uint32_t)plan_vector_size(p);
        return;
    case PLAN_FLAT:
        x->size = (uint32_t)plan_vector_size(p);
        return;
    case PLAN_CHAIN:
        cut(p, 0, plan_vector_size(p), k, x);
        return;
    case PLAN_PAIRWISE:
    case PLAN_SINGLE_COPY:
        pairwise_recv(p, from, k, x);
        return;
    case PLAN_RING:
        ring_recv(p, k, x);
        return;
    case PLAN_GATHER_RING:
        block_cut(p, wrap(p, p->position, step + 1), k % p->segments, x);
        return;
    case PLAN_ALLTOALL:
        pair_cut(p->r.recv_bytes, p->r.recv_displs, from, k, x);
        return;
    }
}

bool plan_implies_all(const struct plan *p)
{
    return p->kind == PLAN_EXCHANGE || p->kind == PLAN_STAR ||
           plan_has_pieces(p) || p->kind == PLAN_SPREAD ||
           p->kind == PLAN_GATHER_FLAT;
}
