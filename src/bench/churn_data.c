/* churn_data.c - the operations of pccl-bench churn: results that tell who
 * contributed.
 *
 * All numbers are small integers, so that every sum is exact in every type and
 * in every order. Element s of the first CHURN_SLOTS is not zero for the
 * process in slot s alone, and depends on its n. The rest is a pattern, shifted
 * by amounts that depend on n, step and operation; its period is a prime, so
 * that no piece of a vector can stand in another one's place. With types of 24
 * bits and more, element 0 of a sum adds a power of 4 for each slot: one that
 * contributed twice shows. */
#include "churn.h"

#include "borders.h"

#include <math.h>
#include <string.h>

enum { PERIOD = 251 };

uint64_t churn_mix(uint64_t a, uint64_t b)
{
    uint64_t x = (a ^ b * 0xff51afd7ed558ccdu) * 0x9e3779b97f4a7c15u;
    return x ^ x >> 31;
}

uint64_t churn_hash(const void *from, size_t size)
{
    const uint8_t *p = from;
    uint64_t h = size;
    for (; size >= 8; size -= 8, p += 8) {
        uint64_t word;
        memcpy(&word, p, 8);
        h = (h ^ word) * 0x9e3779b97f4a7c15u;
        h ^= h >> 29;
    }
    for (; size > 0; size--, p++) h = (h ^ *p) * 0x100000001b3u;
    return h >> 1; /* fits a field */
}

/* Bytes of a vector: on both sides of the algorithms' borders. */
static size_t choose_size(uint64_t h, size_t limit)
{
    static uint64_t sizes[4 * BORDERS_MAX];
    static size_t count;
    if (count == 0) {
        static const enum choice_where places[] = {WHERE_MEMORY, WHERE_SOCKETS,
                                                   WHERE_HOSTS, WHERE_SITES};
        for (size_t i = 0; i < sizeof places / sizeof places[0]; i++)
            count +=
                borders_find(COLL_ALLREDUCE, places[i], 4, 8, sizes + count);
    }
    size_t size = (size_t)sizes[h % count];
    if (size <= limit) return size;
    return 8 + (size_t)(h >> 16) % 4096;
}

static const struct {
    pcclDataType_t type;
    size_t size;
} types[] = {{pcclFloat, 4},  {pcclUint64, 8}, {pcclInt32, 4},
             {pcclDouble, 8}, {pcclUint8, 1},  {pcclBFloat16, 2}};

void churn_op_make(struct churn_op *o, uint64_t seed, uint64_t step,
                   uint32_t op, uint32_t n)
{
    uint64_t h = churn_mix(churn_mix(seed, step), op);
    *o = (struct churn_op){.step = step,
                           .op = op,
                           .type = pcclUint64,
                           .size = 8,
                           .count = 2 * CHURN_SLOTS,
                           .redop = pcclSum,
                           .in_place = churn_mix(h, n) >> 40 & 1};
    if (op == 0) return; /* the agreement on the end */
    bool big = op + 1 == CHURN_OPS && h % 4 == 0;
    size_t bytes = choose_size(h >> 3, big ? CHURN_BIG : CHURN_SMALL);
    size_t kind = (size_t)(h >> 20) % (sizeof types / sizeof types[0]);
    o->quantized = (h >> 32) % 10 == 0;
    o->redop = (h >> 36) % 10 == 0 ? pcclMax : pcclSum;
    if (o->quantized || (h >> 40) % 10 == 0) {
        kind = 0;
        o->redop = (h >> 44) & 1 ? pcclAvg : pcclSum;
    }
    o->type = types[kind].type;
    o->size = types[kind].size;
    o->count = bytes / o->size;
    if (o->count < CHURN_SLOTS) o->count = CHURN_SLOTS;
}

/* Whether element 0 has the powers of 4. */
static bool has_powers(const struct churn_op *o)
{
    return o->op != 0 && o->size >= 4 && !o->quantized && o->redop != pcclMax;
}

static void put(const struct churn_op *o, void *to, size_t at, uint32_t value)
{
    float f = (float)value;
    double d = value;
    uint64_t u = value;
    switch (o->type) {
    case pcclFloat:
        memcpy((float *)to + at, &f, 4);
        break;
    case pcclDouble:
        memcpy((double *)to + at, &d, 8);
        break;
    case pcclBFloat16:
        memcpy((uint16_t *)to + at, (const char *)&f + 2, 2);
        break;
    default: /* little endian */
        memcpy((char *)to + at * o->size, &u, o->size);
    }
}

static double get(const struct churn_op *o, const void *from, size_t at)
{
    float f = 0;
    double d = 0;
    uint64_t u = 0;
    switch (o->type) {
    case pcclFloat:
        return (double)((const float *)from)[at];
    case pcclDouble:
        memcpy(&d, (const double *)from + at, 8);
        return d;
    case pcclBFloat16:
        memcpy((char *)&f + 2, (const uint16_t *)from + at, 2);
        return (double)f;
    default:
        memcpy(&u, (const char *)from + at * o->size, o->size);
        return (double)u;
    }
}

static uint32_t pattern(const struct churn_op *o, uint32_t n, size_t at)
{
    static uint8_t table[2][PERIOD];
    if (table[0][1] == 0) {
        for (uint32_t i = 0; i < PERIOD; i++) {
            table[1][i] = (uint8_t)(churn_mix(i, 7) >> 20);
            table[0][i] = (uint8_t)(churn_mix(i, 3) >> 20 | 128);
        }
    }
    uint64_t h = churn_mix(churn_mix(n, o->step), o->op);
    size_t a = (at + (size_t)(h >> 8) % PERIOD) % PERIOD;
    size_t b = (at + (size_t)(h >> 32) % PERIOD) % PERIOD;
    return (table[0][a] ^ table[1][b]) & 15;
}

/* Of the first elements. */
static uint32_t sign(const struct churn_op *o, uint32_t n, size_t at)
{
    uint32_t slot = n % CHURN_SLOTS;
    if (at == 0 && has_powers(o)) return 1u << 2 * slot;
    if (at != slot) return 0;
    return o->op == 0 ? n : 1 + (uint32_t)(churn_mix(n, o->step) >> 20 & 7);
}

/* Repeats the period that begins at CHURN_SLOTS up to the end. */
static void repeat(const struct churn_op *o, void *vector)
{
    char *v = vector;
    size_t have = CHURN_SLOTS + PERIOD;
    for (size_t at = have; at < o->count;) {
        size_t more = o->count - at;
        size_t whole = (at - CHURN_SLOTS) / PERIOD * PERIOD;
        if (more > whole) more = whole;
        memcpy(v + at * o->size, v + CHURN_SLOTS * o->size, more * o->size);
        at += more;
    }
}

void churn_fill(const struct churn_op *o, uint32_t n, bool over, void *to)
{
    for (size_t i = 0; i < CHURN_SLOTS && i < o->count; i++)
        put(o, to, i, sign(o, n, i));
    if (o->op == 0) {
        for (size_t i = CHURN_SLOTS; i < o->count; i++)
            put(o, to, i, over && i - CHURN_SLOTS == n % CHURN_SLOTS);
        return;
    }
    for (size_t i = CHURN_SLOTS; i < o->count && i < CHURN_SLOTS + PERIOD; i++)
        put(o, to, i, pattern(o, n, i));
    repeat(o, to);
}

static double expect(const struct churn_op *o, const uint32_t *ns,
                     uint32_t count, size_t at)
{
    uint32_t sum = 0;
    for (uint32_t k = 0; k < count; k++) {
        uint32_t one =
            at < CHURN_SLOTS ? sign(o, ns[k], at) : pattern(o, ns[k], at);
        sum = o->redop != pcclMax ? sum + one : one > sum ? one : sum;
    }
    if (o->redop != pcclAvg) return sum;
    return o->quantized ? (double)sum / count
                        : (double)((float)sum / (float)count);
}

/* The bound of pccl.h. */
static double tolerance(const struct churn_op *o, uint32_t count)
{
    if (o->quantized)
        return 0.53 * (o->redop == pcclAvg ? 1 : count) * (count + 1) * 15 /
               255;
    return o->redop == pcclAvg ? 1 : 0; /* checked by its bits' neighbours */
}

static bool near(const struct churn_op *o, double got, double want,
                 double allowed)
{
    if (o->redop == pcclAvg && !o->quantized) allowed = want * 3e-7;
    return fabs(got - want) <= allowed;
}

static bool rest_holds(const struct churn_op *o, const uint32_t *ns,
                       uint32_t count, const void *result)
{
    double allowed = tolerance(o, count);
    for (size_t i = CHURN_SLOTS; i < o->count && i < CHURN_SLOTS + PERIOD; i++)
        if (!near(o, get(o, result, i), expect(o, ns, count, i), allowed))
            return false;
    if (o->quantized) {
        for (size_t i = CHURN_SLOTS + PERIOD; i < o->count; i++) {
            size_t same = CHURN_SLOTS + (i - CHURN_SLOTS) % PERIOD;
            if (!near(o, get(o, result, i), expect(o, ns, count, same),
                      allowed))
                return false;
        }
        return true;
    }
    if (o->count <= CHURN_SLOTS + PERIOD) return true;
    const char *v = (const char *)result + CHURN_SLOTS * o->size;
    size_t rest = o->count - CHURN_SLOTS - PERIOD;
    return memcmp(v, v + PERIOD * o->size, rest * o->size) == 0;
}

uint32_t churn_set(const struct churn_op *o, const void *result, uint32_t count,
                   bool *twice)
{
    uint32_t set = 0;
    if (o->quantized) return 0;
    for (size_t i = has_powers(o); i < CHURN_SLOTS; i++)
        if (get(o, result, i) > 0) set |= 1u << i;
    if (!has_powers(o)) return set;
    double first = get(o, result, 0) * (o->redop == pcclAvg ? count : 1);
    uint64_t digits = (uint64_t)(first + 0.5);
    for (uint32_t i = 0; i < CHURN_SLOTS; i++) {
        uint64_t digit = digits >> 2 * i & 3;
        if (i == 0 && digit > 0) set |= 1;
        *twice |= digit > 1;
        *twice |= digit != (set >> i & 1);
    }
    return set;
}

bool churn_holds(const struct churn_op *o, const uint32_t *ns, uint32_t count,
                 const void *result, uint32_t *set, bool *over)
{
    bool twice = false;
    bool well = true;
    *set = churn_set(o, result, count, &twice);
    for (size_t i = 0; i < CHURN_SLOTS; i++) {
        double want = expect(o, ns, count, i);
        if (!near(o, get(o, result, i), want, tolerance(o, count)))
            well = false;
    }
    if (o->op != 0) return well && !twice && rest_holds(o, ns, count, result);
    for (size_t i = CHURN_SLOTS; i < o->count; i++)
        *over |= get(o, result, i) > 0;
    return well;
}
