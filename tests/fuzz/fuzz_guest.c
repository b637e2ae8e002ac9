/* fuzz_guest.c - a newcomer that downloads the shared state before it joins:
 * what the coordinator and the members that offer it say, in any pieces.
 * Nothing is written but the blocks that were asked for, and a download that is
 * done has no block that is too old. */
#include "fuzz.h"

#include "../../src/elastic/prefetch.h"
#include "../../src/hash/hash.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

enum { TENSORS = 4, DEADLINE_MS = 200 };

struct guest {
    struct prefetch p;
    struct state_list list;
    uint8_t *bytes[TENSORS]; /* each of its own, for sanitizers */
    uint32_t fails;          /* reads and writes of the device until one fails,
                                or 0: none does */
    uint32_t taken;          /* memory of the device that is lent */
    pccl_ns now;
};

/* ------------------------------------------------------------------- device */

static bool works(struct guest *g)
{
    return g->fails == 0 || --g->fails > 0;
}

static uint8_t *device_take(void *user, uint64_t size)
{
    struct guest *g = user;
    if (!works(g)) return NULL;
    g->taken++;
    return malloc(size);
}

static void device_give(void *user, uint8_t *host)
{
    struct guest *g = user;
    assert(g->taken-- > 0);
    free(host);
}

static bool device_read(void *user, uint8_t *host, const uint8_t *data,
                        uint64_t size)
{
    memcpy(host, data, size);
    return works(user);
}

static bool device_write(void *user, uint8_t *data, const uint8_t *host,
                         uint64_t size)
{
    memcpy(data, host, size);
    return works(user);
}

/* ------------------------------------------------------------------- begins */

static struct state_device devices[2];

static void begin(struct guest *g, struct fuzz_input *in)
{
    static const uint32_t sizes[] = {
        100, 1, 0, HASH_BLOCK_SIZE, HASH_BLOCK_SIZE + 1, 600000};
    struct state_tensor tensors[TENSORS] = {{.name = "t"}};
    uint32_t count = fuzz_below(in, TENSORS + 1);
    uint8_t fails = fuzz_u8(in);
    *g = (struct guest){.now = PCCL_S, .fails = fails > 200 ? fails - 200 : 0};
    for (uint32_t i = 0; i < 2; i++)
        devices[i] = (struct state_device){.user = g,
                                           .take = device_take,
                                           .give = device_give,
                                           .read = device_read,
                                           .write = device_write};
    for (uint32_t i = 0; i < count; i++) {
        uint8_t kind = fuzz_u8(in);
        uint64_t size = sizes[kind % ARRAY_COUNT(sizes)];
        g->bytes[i] = calloc(1, size > 0 ? size : 1);
        assert(g->bytes[i]);
        tensors[i] = (struct state_tensor){
            .name = "t", .data = g->bytes[i], .count = size, .size = size};
        if (kind & 64) tensors[i].device = &devices[kind >> 7];
        tensors[i].free = (kind & 48) == 48;
    }
    bool made = state_list_describe(&g->list, tensors, count);
    assert(made);
    made = prefetch_init(&g->p, &g->list, fuzz_below(in, 4),
                         DEADLINE_MS * PCCL_MS, g->now);
    assert(made);
}

static void end(struct guest *g)
{
    prefetch_free(&g->p);
    assert(g->taken == 0);
    state_list_free(&g->list);
    for (uint32_t i = 0; i < TENSORS; i++) free(g->bytes[i]);
}

/* -------------------------------------------------------------- the outside */

static void check(const struct guest *g)
{
    const struct prefetch *p = &g->p;
    if (p->state != PREFETCH_DONE) return;
    uint64_t oldest = prefetch_oldest(p);
    assert(oldest >= p->revision || p->revision - oldest <= p->max_stale);
}

static void give(struct guest *g, const uint8_t *bytes, size_t size,
                 size_t step)
{
    while (size > 0 && g->p.state == PREFETCH_RUNS) {
        uint8_t *to;
        size_t room = prefetch_rx_window(&g->p, &to);
        assert(room > 0); /* or it would wait for ever */
        if (room > step) room = step;
        if (room > size) room = size;
        memcpy(to, bytes, room);
        prefetch_rx(&g->p, room);
        bytes += room;
        size -= room;
    }
}

static void take(struct guest *g, size_t most)
{
    const uint8_t *from;
    size_t size;
    while (most > 0 && (size = prefetch_tx_window(&g->p, &from)) > 0) {
        if (size > most) size = most;
        assert(from >= g->p.tx && from + size <= g->p.tx + sizeof g->p.tx);
        prefetch_tx(&g->p, size);
        most -= size;
    }
}

static void say_servers(struct guest *g, struct fuzz_input *in)
{
    struct wire_member members[WIRE_OFFERS_MAX];
    struct wire_msg msg = {.type = WIRE_OFFERS, .members = members};
    uint8_t bits = fuzz_u8(in);
    if (g->p.state != PREFETCH_ASKS) return;
    msg.offer.group_size = bits == 255 ? 0 : 1 + bits;
    msg.offer.key.word[0] = bits & 1;
    msg.offer.deadline_ms = bits & 2 ? 50 : 0;
    msg.member_count = bits / 4 % 4u;
    for (uint32_t i = 0; i < msg.member_count; i++)
        members[i] = (struct wire_member){.id = 1 + i};
    prefetch_servers(&g->p, &msg);
}

static void quirk(struct frame *f, uint8_t odd)
{
    if (odd == 1) f->scope++;
    if (odd == 2) f->scope = UINT64_MAX;
    if (odd == 3) f->digest ^= 1;
    if (odd == 4) f->seq++;
    if (odd == 5) f->tag += HASH_BLOCK_SIZE;
    if (odd == 6) f->index++;
    if (odd == 7) f->size++;
    if (odd == 8) f->flags = 0xff;
    if (odd == 9) f->type++;
    if (odd == 10) f->scope = 0;
    if (odd == 11) f->flags = 0;
}

/* A frame that the member says in this place. */
static void say(struct guest *g, struct fuzz_input *in)
{
    static uint8_t bytes[FRAME_SIZE + FRAME_BODY_MAX + 1];
    const struct prefetch *p = &g->p;
    const struct prefetch_question *q = &p->asked[p->asked_first];
    uint8_t what = fuzz_u8(in), odd = fuzz_u8(in), step = fuzz_u8(in);
    struct frame f = {.scope = 3 + what / 64u};
    switch (what % 8) {
    case 0:
    case 1:
        f = (struct frame){.type = FRAME_HELLO, .flags = FLAG_GUEST};
        f.size = FRAME_HELLO_SIZE;
        break;
    case 2:
        f = (struct frame){.type = FRAME_FILL, .size = what * 48u};
        break;
    case 3:
    case 4:
        f.type = FRAME_OFFER;
        f.digest = g->list.structure;
        break;
    default:
        f.type = FRAME_BLOCK;
        f.seq = q->tensor;
        f.tag = q->block * HASH_BLOCK_SIZE;
        f.index = q->size;
        if (what % 8 == 5) f.flags = FLAG_ANSWER;
        if (what % 8 > 5) f.size = q->size;
    }
    quirk(&f, odd);
    if (f.size > FRAME_BODY_MAX) f.size = FRAME_BODY_MAX;
    frame_encode(&f, bytes);
    memset(bytes + FRAME_SIZE, what, f.size);
    struct frame_hello h = {.key = {p->key.word[0], p->key.word[1]},
                            .from = p->server.id + (odd == 12)};
    if (f.type == FRAME_HELLO) frame_hello_encode(&h, bytes + FRAME_SIZE);
    size_t size = FRAME_SIZE + f.size;
    if (odd > 240) size -= odd % size; /* the rest comes with what follows */
    give(g, bytes, size, step < 128 ? SIZE_MAX : 1u + 100u * (step - 128u));
}

static void play(struct guest *g, struct fuzz_input *in)
{
    uint8_t what = fuzz_u8(in);
    struct prefetch *p = &g->p;
    switch (what % 16) {
    case 0:
        g->now += fuzz_u32(in) % (300 * PCCL_MS);
        prefetch_tick(p, g->now);
        break;
    case 1:
    case 2:
        say_servers(g, in);
        break;
    case 3:
        prefetch_unanswered(p);
        break;
    case 4:
    case 5:
        if (p->state == PREFETCH_DIALS) prefetch_dialed(p, what < 240);
        break;
    case 6:
        if (what >= 128) prefetch_closed(p);
        break;
    case 7: {
        size_t size = fuzz_u8(in);
        if (size > in->left) size = in->left;
        give(g, in->at, size, SIZE_MAX);
        in->at += size;
        in->left -= size;
        break;
    }
    case 8:
    case 9:
    case 10:
        take(g, what < 128 ? SIZE_MAX : fuzz_u16(in));
        break;
    default:
        say(g, in);
        break;
    }
    check(g);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    static struct guest g;
    struct fuzz_input in = {bytes, size};
    if (in.left > 256) in.left = 256; /* bodies are large */
    begin(&g, &in);
    while (in.left > 0) play(&g, &in);
    end(&g);
    return 0;
}
