/* mutate.c - changes tapes: as records, as messages in them, as bytes. See
 * tape.h. */
#include "tape.h"

enum { RECORDS_MAX = 8192, ROOM = 1 << 21 };

struct span {
    size_t at, size; /* with the head */
};

static struct span spans[RECORDS_MAX];
static uint8_t work[ROOM];

static uint32_t cut(const uint8_t *in, size_t size)
{
    uint32_t count = 0;
    size_t at = 0;
    while (count < RECORDS_MAX && size - at >= TAPE_HEAD) {
        size_t record = TAPE_HEAD + (size_t)(in[at + 2] | in[at + 3] << 8);
        if (record > size - at) record = size - at;
        spans[count++] = (struct span){at, record};
        at += record;
    }
    return count;
}

void tape_vary_number(uint64_t *random, uint8_t *at, size_t width)
{
    static const uint64_t edges[] = {
        0,          1,       2,          3,         4,      7,
        8,          16,      63,         64,        65,     255,
        256,        1023,    1024,       4095,      4096,   4097,
        65535,      65536,   524288,     524289,    262144, 0x7fffffff,
        0x80000000, 1 << 20, UINT32_MAX, UINT64_MAX};
    uint64_t value = 0;
    bool big = tape_pick(random, 2) == 0;
    for (size_t i = 0; i < width; i++)
        value |= (uint64_t)at[big ? width - 1 - i : i] << (8 * i);
    switch (tape_pick(random, 4)) {
    case 0:
        value = edges[tape_pick(random, sizeof edges / sizeof edges[0])];
        break;
    case 1:
        value += tape_pick(random, 9);
        value -= 4;
        break;
    case 2:
        value ^= (uint64_t)1 << tape_pick(random, (uint32_t)(8 * width));
        break;
    default:
        value =
            tape_pick(random, 2) ? tape_random(random) : tape_pick(random, 8);
    }
    for (size_t i = 0; i < width; i++)
        at[big ? width - 1 - i : i] = (uint8_t)(value >> (8 * i));
}

/* Replaces in[at, at + old) by fresh[0, size); 0: it does not fit. */
static size_t replace(uint8_t *in, size_t in_size, size_t most, size_t at,
                      size_t old, const uint8_t *fresh, size_t size)
{
    if (in_size - old + size > most) return 0;
    memmove(in + at + size, in + at + old, in_size - at - old);
    memcpy(in + at, fresh, size);
    return in_size - old + size;
}

static size_t insert_made(uint64_t *random, uint8_t *in, size_t size,
                          size_t most, size_t at)
{
    uint8_t kind = (uint8_t)tape_pick(random, tape_kinds);
    size_t made = tape_make(kind, random, work);
    return replace(in, size, most, at, 0, work, made);
}

/* The content of a record: a field of its message, a number, or anything. */
static size_t change(uint64_t *random, uint8_t *in, size_t size, size_t most,
                     struct span s)
{
    uint8_t *bytes = in + s.at + TAPE_HEAD;
    size_t has = s.size - TAPE_HEAD;
    if (has == 0) {
        in[s.at + 1] = (uint8_t)tape_pick(random, 8);
        return size;
    }
    switch (tape_pick(random, 8)) {
    case 0: {
        size_t width = (size_t)1 << tape_pick(random, 4);
        if (width > has) width = 1;
        size_t at = (size_t)tape_random(random) % (has - width + 1);
        tape_vary_number(random, bytes + at, width);
        return size;
    }
    case 1: {
        size_t room = has + 64 < TAPE_SIZE_MAX ? has + 64 : TAPE_SIZE_MAX;
        if (has > room) return size;
        memcpy(work, in + s.at, s.size);
        size_t now = LLVMFuzzerMutate(work + TAPE_HEAD, has, room);
        work[2] = (uint8_t)now;
        work[3] = (uint8_t)(now >> 8);
        return replace(in, size, most, s.at, s.size, work, TAPE_HEAD + now);
    }
    case 2:
        in[s.at + 1] = (uint8_t)tape_pick(random, 8);
        return size;
    default:
        tape_vary(in[s.at], random, bytes, has);
        return size;
    }
}

/* The same bytes in two records. */
static size_t split(uint64_t *random, uint8_t *in, size_t size, size_t most,
                    struct span s)
{
    size_t has = s.size - TAPE_HEAD;
    if (has < 2) return size;
    size_t first = 1 + (size_t)tape_random(random) % (has - 1);
    const uint8_t *bytes = in + s.at + TAPE_HEAD;
    size_t made =
        tape_put(work, in[s.at], in[s.at + 1], bytes, (uint16_t)first);
    made += tape_put(work + made, in[s.at], in[s.at + 1], bytes + first,
                     (uint16_t)(has - first));
    return replace(in, size, most, s.at, s.size, work, made);
}

/* Moves or copies a record to another place; most often a near one. */
static size_t move(uint64_t *random, uint8_t *in, size_t size, size_t most,
                   uint32_t count, bool stays)
{
    uint32_t from = tape_pick(random, count);
    uint32_t to = from + tape_pick(random, 8);
    if (tape_pick(random, 4) == 0 || to >= count) to = tape_pick(random, count);
    struct span s = spans[from];
    size_t at = spans[to].at;
    if (s.size > sizeof work) return size;
    memcpy(work, in + s.at, s.size);
    if (!stays) {
        size = replace(in, size, most, s.at, s.size, work, 0);
        if (at > s.at) at -= s.size;
    }
    return replace(in, size, most, at, 0, work, s.size);
}

static size_t drop(uint64_t *random, uint8_t *in, size_t size, uint32_t count)
{
    uint32_t from = tape_pick(random, count);
    uint32_t to = from;
    if (tape_pick(random, 4) == 0) to += tape_pick(random, 8);
    if (to >= count) to = count - 1;
    size_t end = spans[to].at + spans[to].size;
    return replace(in, size, size, spans[from].at, end - spans[from].at, work,
                   0);
}

static size_t one_step(uint64_t *random, uint8_t *in, size_t size, size_t most)
{
    uint32_t count = cut(in, size);
    if (count == 0) return insert_made(random, in, 0, most, 0);
    struct span s = spans[tape_pick(random, count)];
    switch (tape_pick(random, 16)) {
    case 0:
        return drop(random, in, size, count);
    case 1:
        return move(random, in, size, most, count, true);
    case 2:
        return move(random, in, size, most, count, false);
    case 3:
        return split(random, in, size, most, s);
    case 4:
        return s.at > 0 && tape_pick(random, 4) == 0 ? s.at : size; /* cut */
    case 5:
    case 6:
    case 7:
        return insert_made(random, in, size, most, s.at);
    case 8:
    case 9: /* after all that is there */
        return insert_made(random, in, size, most, size);
    default:
        return change(random, in, size, most, s);
    }
}

size_t LLVMFuzzerCustomMutator(uint8_t *in, size_t size, size_t most,
                               unsigned seed)
{
    uint64_t random = seed * 0x9e3779b97f4a7c15u + 1;
    if (most > ROOM / 2) most = ROOM / 2;
    if (size > most) size = most;
    for (uint32_t steps = 1 + tape_pick(&random, 4); steps > 0; steps--) {
        size_t now = one_step(&random, in, size, most);
        if (now > 0) size = now;
    }
    return size;
}

/* The beginning of one and the end of another. */
size_t LLVMFuzzerCustomCrossOver(const uint8_t *a, size_t a_size,
                                 const uint8_t *b, size_t b_size, uint8_t *out,
                                 size_t most, unsigned seed)
{
    uint64_t random = seed * 0x9e3779b97f4a7c15u + 1;
    uint32_t count = cut(a, a_size);
    size_t head = count > 0 ? spans[tape_pick(&random, count)].at : 0;
    count = cut(b, b_size);
    size_t from = count > 0 ? spans[tape_pick(&random, count)].at : 0;
    if (head > most) return 0;
    memcpy(out, a, head);
    size_t tail = b_size - from;
    if (tail > most - head) tail = most - head;
    memcpy(out + head, b + from, tail);
    return head + tail;
}
