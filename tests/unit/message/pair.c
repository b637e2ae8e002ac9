/* pair.c - simulated connections between two message engines. */
#include "pair.h"
#include "../install_view.h"

#include "../../world/host/line.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { WIRES = 64, WIRE_BYTES = 1 << 16 };

struct wire {
    bool used, made; /* made: the connection was accepted */
    bool up[2];      /* this end has not closed */
    bool cut;        /* bytes are lost */
    uint32_t number[2];
    uint8_t *bytes[2]; /* towards side [i] */
    size_t size[2];
};

struct engine *ends[2];
struct messages *boxes[2];
static struct wire wires[WIRES];
static uint64_t state;
bool faults, lies;
static pccl_ns now;
const struct wire_member members[2] = {{.id = 1}, {.id = 2}};
const uint64_t ids[2] = {1, 2};

uint32_t dice(uint32_t limit)
{
    state = state * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(state >> 33) % limit;
}

/* The engines' user pointer is the index of their id. */
static int side_of(const void *user)
{
    return user == &ids[1];
}

static uint32_t free_number(int i)
{
    for (uint32_t n = 0; n < WIRES; n++) {
        bool used = false;
        for (int w = 0; w < WIRES; w++)
            used |= wires[w].used && wires[w].up[i] && wires[w].number[i] == n;
        if (!used) return n;
    }
    return NO_CONN;
}

static uint32_t on_dial(void *user, const struct wire_addr *addr)
{
    int i = side_of(user);
    (void)addr;
    for (int w = 0; w < WIRES; w++) {
        if (wires[w].used) continue;
        uint32_t number = free_number(i);
        wires[w].used = true;
        wires[w].up[i] = true;
        wires[w].number[i] = number;
        return number;
    }
    return NO_CONN;
}

int wall = -1;
bool unanswered;
static struct {
    bool used;
    uint32_t dials, heard;
} asks[2]; /* in flight to side [i] */
uint32_t asked;

static bool on_ask(void *user, uint64_t member, uint32_t dials, uint32_t heard)
{
    int i = side_of(user);
    assert_int_equal(member, ids[1 - i]);
    asked++;
    asks[1 - i].used = true; /* a later one replaces an earlier one */
    asks[1 - i].dials = dials;
    asks[1 - i].heard = heard;
    return true;
}

static void on_close(void *user, uint32_t number)
{
    int i = side_of(user);
    for (int w = 0; w < WIRES; w++) {
        if (wires[w].used && wires[w].up[i] && wires[w].number[i] == number)
            wires[w].up[i] = false;
    }
}

static void on_fault(void *user, enum engine_fault fault, const struct op *op,
                     uint64_t peer)
{
    (void)user, (void)fault, (void)op, (void)peer;
    fail();
}

enum fetching fetching;
uint32_t fetched, tries, compared;
bool preferring;

static bool on_fetch(void *user, uint32_t conn,
                     const struct wire_member *member, uint64_t address,
                     void *to, size_t size)
{
    (void)conn;
    assert_int_equal(member->id, members[1 - side_of(user)].id);
    assert_true(size <= CMA_PIECE);
    if (++tries % 2 == 0 && fetching == FETCH_AT_TIMES) return false;
    memcpy(to, (const void *)(uintptr_t)address, size);
    fetched++;
    return true;
}

static bool on_prefer(void *user, uint32_t conn, size_t size, bool alone)
{
    (void)side_of(user), (void)conn;
    assert_true(size >= CMA_TRY_MIN && size < CMA_MIN);
    compared += alone ? 0x100 : 0; /* asked for */
    return preferring;
}

static void on_compared(void *user, uint32_t conn, size_t size)
{
    (void)side_of(user), (void)conn;
    assert_true(size >= CMA_TRY_MIN && size < CMA_MIN);
    compared++;
}

void pair_install(int i)
{
    install_view(ends[i], 1, members, 2, (uint32_t)i);
}

void pair_start(uint64_t seed)
{
    state = seed * 7919 + 1;
    faults = lies = false;
    now = PCCL_S;
    for (int i = 0; i < 2; i++) {
        struct driver d = {.user = (void *)(uintptr_t)&ids[i],
                           .dial = on_dial,
                           .close = on_close};
        struct engine_events o = {.user = (void *)(uintptr_t)&ids[i],
                                  .fault = on_fault};
        asks[i].used = false;
        struct message_events m = {.user = d.user};
        if (wall >= 0) m.ask = on_ask;
        if (fetching != FETCH_NEVER) {
            d.cma_read = on_fetch;
            d.cma_prefers = on_prefer;
            d.cma_compared = on_compared;
        }
        ends[i] = calloc(1, sizeof *ends[i]);
        assert_non_null(ends[i]);
        assert_true(engine_init(ends[i], &d, &o, 1, 100 * PCCL_MS));
        boxes[i] = calloc(1, sizeof *boxes[i]);
        assert_non_null(boxes[i]);
        message_init(boxes[i], &ends[i]->links, &m);
        ends[i]->links.self = ids[i];
        ends[i]->links.fill_size = 8;
        ends[i]->links.now = now;
    }
}

void pair_stop(void)
{
    for (int i = 0; i < 2; i++) {
        message_free(boxes[i]);
        free(boxes[i]);
        engine_free(ends[i]);
        free(ends[i]);
    }
    for (int w = 0; w < WIRES; w++) {
        free(wires[w].bytes[0]);
        free(wires[w].bytes[1]);
    }
    memset(wires, 0, sizeof wires);
}

/* ------------------------------------------------------------- the network */

static void close_end(struct wire *w, int i)
{
    if (!w->up[i]) return;
    w->up[i] = false;
    engine_closed(ends[i], w->number[i]);
}

static void answer_call(struct wire *w)
{
    int caller = w->up[0] ? 0 : 1;
    int callee = 1 - caller;
    if (!w->up[caller]) return; /* closed */
    if (caller == wall && unanswered) return;
    if (caller == wall || (faults && dice(4) == 0)) {
        w->up[caller] = false;
        engine_dialed(ends[caller], w->number[caller], false);
        return;
    }
    w->made = true;
    w->number[callee] = free_number(callee);
    w->up[callee] = true;
    for (int i = 0; i < 2; i++) w->bytes[i] = malloc(WIRE_BYTES);
    assert_true(engine_accepted(ends[callee], w->number[callee]));
    engine_dialed(ends[caller], w->number[caller], true);
}

static void send_some(struct wire *w, int i)
{
    size_t *used = &w->size[1 - i];
    size_t room = WIRE_BYTES - *used;
    size_t most = dice(3) ? room : dice(200);
    struct line_bytes b = {w->bytes[1 - i] + *used, 0,
                           most < room ? most : room};
    size_t sent = line_send(&ends[i]->links, w->number[i], line_append, &b);
    if (sent == 0) return;
    *used += sent;
    if (w->cut || !w->up[1 - i]) *used = 0;
}

static void receive_some(struct wire *w, int i)
{
    uint8_t *to;
    size_t size = engine_rx_window(ends[i], w->number[i], &to);
    if (size > w->size[i]) size = w->size[i];
    if (dice(3) == 0 && size > 0) size = 1 + dice((uint32_t)size);
    if (size == 0) {
        if (w->size[i] == 0) engine_rx_dry(ends[i], w->number[i]);
        return;
    }
    memcpy(to, w->bytes[i], size);
    memmove(w->bytes[i], w->bytes[i] + size, w->size[i] - size);
    w->size[i] -= size;
    const struct engine *e = ends[i];
    bool open = e->links.conns[w->number[i]]->state == CONN_OPEN;
    bool fine = engine_rx(ends[i], w->number[i], size);
    /* A dial may be refused; an open connection never violates the protocol. */
    assert_true(fine || !open || lies);
}

static void wire_turn(struct wire *w)
{
    if (!w->used) return;
    if (!w->made && (w->up[0] || w->up[1])) {
        if (dice(3) == 0) answer_call(w);
        return;
    }
    int i = (int)dice(2);
    if (w->up[i]) send_some(w, i);
    if (w->up[i]) receive_some(w, i);
    /* An end that closed, or a cut, is noticed after the bytes are read, or
     * together with their loss. */
    bool ended = w->cut || !w->up[1 - i];
    if (w->up[i] && ended && (w->size[i] == 0 || dice(4) == 0) && dice(3) == 0)
        close_end(w, i);
    if (faults && dice(400) == 0) w->cut = true;
    if (w->cut && dice(2) == 0) w->size[i] = 0;
    if (w->up[0] || w->up[1]) return;
    free(w->bytes[0]);
    free(w->bytes[1]);
    *w = (struct wire){.used = false};
}

void pair_turn(void)
{
    now += dice(2000) * 1000;
    int i = (int)dice(2);
    ends[i]->links.now = now;
    if (dice(50) == 0) engine_tick(ends[i], now);
    message_progress(boxes[i]);
    for (int w = 0; w < WIRES; w++) wire_turn(&wires[w]);
    if (!asks[i].used || dice(5)) return;
    asks[i].used = false;
    if (faults && dice(4) == 0) return;
    message_dial_requested(boxes[i], ids[1 - i], asks[i].dials, asks[i].heard);
}

void pair_cut(void)
{
    for (int w = 0; w < WIRES; w++) wires[w].cut = true;
}
