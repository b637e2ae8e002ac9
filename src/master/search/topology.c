/* topology.c - scores, bounds, and the phases of a ring search. */
#include "topology_search.h"

#include <string.h>

uint16_t topology_encode(uint64_t value)
{
    if (value < 2048) return (uint16_t)value;
    uint32_t exponent = 64u - (uint32_t)__builtin_clzll(value) - 11;
    if (exponent > 31) return UINT16_MAX;
    return (uint16_t)(exponent << 11 | (value >> (exponent - 1) & 2047));
}

uint64_t topology_decode(uint16_t code)
{
    uint32_t exponent = code >> 11;
    if (exponent == 0) return code;
    return (uint64_t)(2048 + (code & 2047u)) << (exponent - 1);
}

struct topology_score topology_ring_score(const struct topology_instance *in,
                                          const uint16_t *order)
{
    struct topology_score score = {.rate = UINT16_MAX};
    for (uint32_t i = 0; in->n > 1 && i < in->n; i++) {
        uint16_t from = order[i], to = order[i + 1 < in->n ? i + 1 : 0];
        struct topology_edge edge = in->edges[(size_t)from * in->n + to];
        if (edge.rate == 0) score.missing++;
        if (edge.rate < score.rate) score.rate = edge.rate;
        score.delay += edge_delay(edge);
    }
    return score;
}

int topology_score_compare(const struct topology_score *a,
                           const struct topology_score *b)
{
    if (a->missing != b->missing) return a->missing < b->missing ? -1 : 1;
    if (a->rate != b->rate) return a->rate > b->rate ? -1 : 1;
    if (a->delay != b->delay) return a->delay < b->delay ? -1 : 1;
    return 0;
}

/* splitmix64 (Steele, Lea, Flood 2014), scaled without a division. */
uint32_t search_random(struct topology_search *s, uint32_t below)
{
    uint64_t z = s->random += 0x9e3779b97f4a7c15u;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    z ^= z >> 31;
    return (uint32_t)((z >> 32) * below >> 32);
}

int32_t search_level(const struct topology_search *s, uint16_t rate)
{
    int32_t low = -1, high = (int32_t)s->level_count - 1;
    while (low < high) {
        int32_t middle = low + (high - low + 1) / 2;
        if (s->levels[middle] <= rate)
            low = middle;
        else
            high = middle - 1;
    }
    return low;
}

void search_offer(struct topology_search *s, const uint16_t *order)
{
    struct topology_score score = topology_ring_score(&s->in, order);
    if (topology_score_compare(&score, &s->best_score) >= 0) return;
    s->best_score = score;
    memcpy(s->best, order, s->in.n * sizeof(*order));
}

static void *carve(char *base, size_t *used, size_t size)
{
    void *part = base ? base + *used : NULL;
    *used += (size + 7) & ~(size_t)7;
    return part;
}

/* Places every array after the struct; with no base, only adds up the size. */
static size_t layout(struct topology_search *s, char *base, uint32_t n)
{
    size_t used = 0, words = (size_t)n * sizeof(uint16_t);
    size_t edges = (size_t)n * n;
    carve(base, &used, sizeof(*s));
    s->levels =
        carve(base, &used, (edges < 65536 ? edges : 65536) * sizeof(uint16_t));
    s->level_bits = carve(base, &used, 65536 / 8);
    s->width = carve(base, &used, words);
    s->flagged = carve(base, &used, n);
    s->best = carve(base, &used, words);
    s->order = carve(base, &used, words);
    s->place = carve(base, &used, words);
    s->ahead = carve(base, &used, n * sizeof(uint64_t));
    s->back = carve(base, &used, n * sizeof(uint64_t));
    s->cached = carve(base, &used, words);
    s->scratch = carve(base, &used, words);
    s->out_list = carve(base, &used, words * NEIGHBOURS_MAX);
    s->in_list = carve(base, &used, words * NEIGHBOURS_MAX);
    s->queue = carve(base, &used, words);
    s->table = carve(base, &used, n <= TOPOLOGY_EXACT_MAX ? exact_size(n) : 0);
    return used;
}

size_t topology_search_size(uint32_t n)
{
    struct topology_search unused;
    return layout(&unused, NULL, n);
}

struct topology_search *
topology_search_init(void *memory, size_t size,
                     const struct topology_instance *in,
                     const struct topology_options *options)
{
    uint32_t n = in->n;
    PCCL_ASSERT(n >= 1 && n <= TOPOLOGY_PEERS_MAX);
    PCCL_ASSERT(size >= topology_search_size(n));
    PCCL_ASSERT((uintptr_t)memory % _Alignof(uint64_t) == 0);

    struct topology_search *s = memory;
    memset(s, 0, sizeof(*s));
    layout(s, memory, n);
    memset(s->level_bits, 0, 65536 / 8);
    memset(s->flagged, 0, n);
    s->in = *in;
    s->random = options->seed;
    s->rounds = options->rounds ? options->rounds : 1;
    s->effort = options->effort ? options->effort : 8;
    s->bound = UINT16_MAX;

    for (uint32_t i = 0; i < n; i++) s->best[i] = (uint16_t)i;
    s->best_score = topology_ring_score(in, s->best);
    if (options->initial) {
        for (uint32_t i = 0; i < n; i++) {
            PCCL_ASSERT(options->initial[i] < n);
            PCCL_ASSERT(!s->flagged[options->initial[i]]);
            s->flagged[options->initial[i]] = 1;
        }
        memset(s->flagged, 0, n);
        search_offer(s, options->initial);
    }
    s->phase = n == 1 ? PHASE_DONE : PHASE_SCAN;
    s->optimal = n == 1;
    return s;
}

/* Bound of a peer: it needs one edge in and one edge out. */
static uint16_t peer_bound(const struct topology_search *s, uint32_t peer)
{
    uint16_t in1 = 0, in2 = 0, out1 = 0, out2 = 0;
    uint32_t from = peer, to = peer;
    for (uint32_t q = 0; q < s->in.n; q++) {
        if (q == peer) continue;
        uint16_t in = search_edge(s, q, peer).rate;
        uint16_t out = search_edge(s, peer, q).rate;
        if (in > in1)
            in2 = in1, in1 = in, from = q;
        else if (in > in2)
            in2 = in;
        if (out > out1)
            out2 = out1, out1 = out, to = q;
        else if (out > out2)
            out2 = out;
    }
    if (from != to || s->in.n == 2) return in1 < out1 ? in1 : out1;
    uint16_t first = in1 < out2 ? in1 : out2;
    uint16_t second = in2 < out1 ? in2 : out1;
    return first > second ? first : second;
}

static void bound_lower(struct topology_search *s, uint16_t rate)
{
    if (rate < s->bound) s->bound = rate;
}

static void widest_start(struct topology_search *s, enum search_phase phase)
{
    s->phase = phase;
    s->cursor = 0;
    memset(s->width, 0, s->in.n * sizeof(*s->width));
    memset(s->flagged, 0, s->in.n);
    s->width[0] = UINT16_MAX;
}

static void scan_step(struct topology_search *s)
{
    uint32_t n = s->in.n, row = s->cursor++;
    for (uint32_t to = 0; to < n; to++) {
        uint16_t rate = row == to ? 0 : search_edge(s, row, to).rate;
        s->level_bits[rate / 64] |= (uint64_t)1 << rate % 64;
    }
    bound_lower(s, peer_bound(s, row));
    if (s->cursor < n) return;
    for (uint32_t rate = 1; rate < 65536; rate++)
        if (s->level_bits[rate / 64] >> rate % 64 & 1)
            s->levels[s->level_count++] = (uint16_t)rate;
    widest_start(s, PHASE_REACH_OUT);
}

/* One peer of Prim's algorithm for widest paths. The narrowest of these paths,
 * in both directions, is the largest rate at which the world is strongly
 * connected. */
static void widest_step(struct topology_search *s)
{
    uint32_t n = s->in.n, peer = n;
    for (uint32_t q = 0; q < n; q++)
        if (!s->flagged[q] && (peer == n || s->width[q] > s->width[peer]))
            peer = q;
    s->flagged[peer] = 1;
    bound_lower(s, s->width[peer]);
    for (uint32_t q = 0; q < n; q++) {
        if (s->flagged[q]) continue;
        uint16_t rate = s->phase == PHASE_REACH_OUT
                            ? search_edge(s, peer, q).rate
                            : search_edge(s, q, peer).rate;
        if (rate > s->width[peer]) rate = s->width[peer];
        if (rate > s->width[q]) s->width[q] = rate;
    }
    if (++s->cursor < n) return;
    if (s->phase == PHASE_REACH_OUT) {
        widest_start(s, PHASE_REACH_IN);
        return;
    }
    s->bound_known = true;
    s->impossible = s->bound == 0;
    if (n <= TOPOLOGY_EXACT_MAX)
        exact_start(s);
    else
        climb_start(s);
}

bool topology_search_step(struct topology_search *s, uint32_t max_steps)
{
    for (uint32_t i = 0; i < max_steps && s->phase != PHASE_DONE; i++) {
        s->steps++;
        switch (s->phase) {
        case PHASE_SCAN:
            scan_step(s);
            break;
        case PHASE_REACH_OUT:
        case PHASE_REACH_IN:
            widest_step(s);
            break;
        case PHASE_EXACT_RATE:
        case PHASE_EXACT_DELAY:
            exact_step(s);
            break;
        case PHASE_CONSTRUCT:
        case PHASE_CANDIDATES:
        case PHASE_DESCEND:
        case PHASE_KICK:
            climb_step(s);
            break;
        case PHASE_DONE:
            break;
        }
    }
    return s->phase != PHASE_DONE;
}

void topology_search_result(const struct topology_search *s,
                            struct topology_result *result, uint16_t *order)
{
    uint32_t n = s->in.n, start = 0;
    while (s->best[start] != 0) start++;
    for (uint32_t i = 0; i < n; i++) order[i] = s->best[(start + i) % n];
    *result = (struct topology_result){
        .verdict = s->best_score.missing == 0 ? TOPOLOGY_FOUND
                   : s->impossible            ? TOPOLOGY_IMPOSSIBLE
                                              : TOPOLOGY_NOT_FOUND,
        .optimal = s->optimal,
        .score = s->best_score,
        .bound = s->bound_known || n == 1 ? s->bound : UINT16_MAX,
        .steps = s->steps,
    };
}
