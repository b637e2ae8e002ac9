/* test_message.c - tests of messages and rendezvous transfers between two
 * members that post, send, expect and cancel at any moment, over connections
 * that break (pair.h). Messages arrive once and in order, and transfers
 * complete. */
#include "pair.h"

#include "../../../include/pccl.h"
#include "../install_view.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { SEEDS = 1500, POSTS = 60, BULKS = 6 };

/* ------------------------------------------------------------ the programs */

struct side {
    struct engine *e;
    uint32_t posted, got;
    uint32_t lost;
    /* Transfers that this side receives; number k has key k and a size by k. */
    uint8_t *sink[BULKS];
    bool expected[BULKS], sent[BULKS], received[BULKS], done[BULKS];
    int result;
};

static struct side sides[2];
enum { LONGEST = 6 * RNDV_PIECE + 1 };

static uint8_t source[BULKS][LONGEST + 1]; /* the same for all seeds */

static size_t bulk_size(uint32_t k)
{
    static const size_t sizes[] = {0, 1, 100, 300000, LONGEST, RNDV_PIECE};
    return sizes[k % ARRAY_COUNT(sizes)];
}

static void start(uint64_t seed)
{
    pair_start(seed);
    memset(sides, 0, sizeof sides);
    for (int i = 0; i < 2; i++) {
        struct side *s = &sides[i];
        s->e = ends[i];
        for (uint32_t k = 0; k < BULKS; k++) {
            s->sink[k] = calloc(1, bulk_size(k) + 1);
            assert_non_null(s->sink[k]);
        }
    }
}

static void stop(void)
{
    pair_stop();
    for (int i = 0; i < 2; i++) {
        for (uint32_t k = 0; k < BULKS; k++) free(sides[i].sink[k]);
    }
}

static size_t body_size(uint32_t number)
{
    return number % 7 == 0 ? 20000 : number * 13 % 300;
}

static void post(int i)
{
    struct side *s = &sides[i];
    static uint8_t body[20000];
    uint32_t number = s->posted;
    memset(body, (int)(number * 3 + (uint32_t)i), body_size(number));
    int rc = message_post(boxes[i], ids[1 - i], &number, sizeof number, body,
                          body_size(number));
    if (rc == pcclSuccess)
        s->posted++;
    else
        assert_int_equal(rc, pcclPendingAsyncOps);
}

static void take_message(struct side *s, const struct message_block *block)
{
    uint32_t number;
    int other = s == &sides[0] ? 1 : 0;
    assert_int_equal(block->head, sizeof number);
    memcpy(&number, block->bytes, sizeof number);
    assert_int_equal(number, s->got);
    size_t size = block->size - block->head;
    assert_int_equal(size, body_size(number));
    bool right = true;
    for (size_t b = 0; b < size; b++)
        right &= block->bytes[block->head + b] ==
                 (uint8_t)(number * 3 + (uint32_t)other);
    assert_true(right);
    s->got++;
}

static bool take(int i)
{
    struct side *s = &sides[i];
    struct message_event *event = message_take(boxes[i]);
    if (!event) return false;
    assert_int_equal(event->member, ids[1 - i]);
    assert_int_equal(s->lost, 0); /* no event follows the loss */
    uint64_t k = event->key;
    if (event->kind == EVENT_MESSAGE)
        take_message(s, (struct message_block *)event);
    if (event->kind == EVENT_SENT) {
        assert_true(k < BULKS && s->sent[k] && !s->done[k]);
        if (event->result != pcclSuccess)
            assert_int_equal(event->result, s->result);
        s->done[k] = true;
    }
    if (event->kind == EVENT_RECEIVED) {
        assert_true(k < BULKS && s->expected[k] && !s->received[k]);
        /* memcmp, because assert_memory_equal takes a hundred times as long */
        if (event->result == pcclSuccess)
            assert_int_equal(
                memcmp(s->sink[k], source[k], bulk_size((uint32_t)k)), 0);
        else
            assert_int_equal(event->result, s->result);
        s->received[k] = true;
    }
    s->lost += event->kind == EVENT_LOST;
    message_release(boxes[i], event);
    return true;
}

static void cancel(int i, uint32_t k)
{
    struct side *s = &sides[i];
    if (message_cancel_recv(boxes[i], ids[1 - i], k) != pcclSuccess) return;
    memset(s->sink[k], 0, bulk_size(k));
    s->expected[k] = false;
}

/* The memory belongs to the program again: no data still to be sent, or sent
 * again, are in it. */
static void withdraw(int i, uint32_t k)
{
    struct side *s = &sides[i];
    int rc = message_cancel_send(boxes[i], ids[1 - i], k);
    if (rc == pcclPendingAsyncOps) return;
    if (rc == pcclInvalidUsage) return; /* its event is queued */
    assert_int_equal(rc, pcclSuccess);
    s->sent[k] = false;
    const struct p2p_link *l = p2p_link_find(boxes[i], ids[1 - i], false);
    for (uint32_t n = 0; n < l->count; n++) {
        const struct message_item *item =
            &l->items[(l->first + n) & (l->capacity - 1)];
        uint64_t lent = item->frame.type == FRAME_CMA ? item->frame.digest : 0;
        for (size_t at = 0; at < bulk_size(k); at += RNDV_PIECE) {
            assert_ptr_not_equal(item->body, source[k] + at);
            assert_int_not_equal(lent, (uintptr_t)(source[k] + at));
        }
    }
}

static void act(int i)
{
    struct side *s = &sides[i];
    uint32_t k = dice(BULKS);
    switch (dice(9)) {
    case 0:
    case 1:
        if (s->posted < POSTS) post(i);
        break;
    case 2:
        if (s->sent[k]) break;
        s->sent[k] = true;
        assert_int_equal(
            message_send_rndv(boxes[i], ids[1 - i], k, source[k], bulk_size(k)),
            pcclSuccess);
        break;
    case 3:
        if (s->expected[k]) break;
        s->expected[k] = true;
        assert_int_equal(message_recv_rndv(boxes[i], ids[1 - i], k, s->sink[k],
                                           bulk_size(k)),
                         pcclSuccess);
        break;
    case 4:
        if (s->expected[k] && faults && dice(4) == 0) cancel(i, k);
        break;
    case 5:
        if (s->sent[k] && faults && dice(4) == 0) withdraw(i, k);
        break;
    default:
        (void)take(i);
    }
}

static bool complete(const struct side *s, const struct side *other)
{
    if (s->got < other->posted) return false;
    for (int k = 0; k < BULKS; k++) {
        if (!s->received[k] || !s->done[k]) return false;
    }
    return true;
}

/* Including cancelled ones. */
static void nothing_is_left_of_transfers(void)
{
    for (int i = 0; i < 2; i++) {
        const struct p2p_link *l = p2p_link_find(boxes[i], ids[1 - i], false);
        assert_int_equal(l->sends.count, 0);
        assert_int_equal(l->expects.count, 0);
        assert_int_equal(l->expected.count, 0);
        assert_null(l->running);
    }
}

/* Once no fault and no cancellation happens any more, all that was begun
 * completes: earlier cancellations have not removed a wrong expectation. */
static void finish(void)
{
    faults = false;
    for (int i = 0; i < 2; i++) {
        while (sides[i].posted < POSTS) {
            post(i);
            for (int n = 0; n < 50; n++) pair_turn();
            while (take(1 - i) || take(i)) continue;
        }
    }
    for (long n = 0; n < 400000; n++) {
        if (complete(&sides[0], &sides[1]) && complete(&sides[1], &sides[0])) {
            nothing_is_left_of_transfers();
            return;
        }
        pair_turn();
        act((int)dice(2));
    }
    fail_msg("no progress");
}

static void run(uint64_t seed, bool lose)
{
    fetching = seed % 3;
    start(seed);
    faults = true;
    pair_install((int)dice(2));
    int late = sides[0].e->links.view->size ? 1 : 0;
    uint32_t length = 200 + dice(1500);
    for (uint32_t n = 0; n < length; n++) {
        if (n == 20) pair_install(late);
        if (n > 20 || sides[1 - late].e->links.view->size > 0)
            act(n > 20 ? (int)dice(2) : 1 - late);
        pair_turn();
    }
    if (!lose) {
        finish();
        stop();
        return;
    }
    int i = (int)dice(2);
    sides[i].result = pcclRankConnectionLost;
    while (take(i)) continue;
    install_view(sides[i].e, 2, &members[i], 1, 0);
    message_lose(boxes[i], ids[1 - i]);
    message_lose(boxes[i], ids[1 - i]);
    assert_int_equal(message_post(boxes[i], ids[1 - i], "x", 1, NULL, 0),
                     pcclRankConnectionLost);
    for (int n = 0; n < 20000 && sides[i].lost == 0; n++) {
        pair_turn();
        (void)take(i);
    }
    assert_int_equal(sides[i].lost, 1);
    for (int k = 0; k < BULKS; k++) {
        assert_int_equal(sides[i].sent[k], sides[i].done[k]);
        assert_int_equal(sides[i].expected[k], sides[i].received[k]);
    }
    assert_null(message_take(boxes[i]));
    stop();
}

static void nothing_is_lost_or_doubled(void **unused)
{
    (void)unused;
    for (uint64_t seed = 1; seed <= SEEDS; seed++) run(seed, false);
}

static void walls_hurt_nothing(void **unused)
{
    (void)unused;
    asked = 0;
    for (uint64_t seed = 0; seed < SEEDS / 3; seed++) {
        wall = (int)(seed % 2);
        unanswered = seed / 2 % 2;
        run(seed, seed % 5 == 4);
    }
    wall = -1;
    assert_true(asked > SEEDS / 10);
}

/* Only the side that cannot dial has messages to send, also after a cut. */
static void walls_are_passed_the_other_way(void **unused)
{
    (void)unused;
    fetching = FETCH_NEVER;
    for (uint64_t seed = 0; seed < 60; seed++) {
        wall = (int)(seed % 2);
        unanswered = seed / 2 % 2;
        start(seed);
        faults = true;
        for (int i = 0; i < 2; i++) pair_install(i);
        for (uint32_t count = 1; count <= 5; count++) {
            post(wall);
            for (int n = 0; n < 3000 && sides[1 - wall].got < count; n++) {
                pair_turn();
                (void)take(1 - wall);
            }
            assert_int_equal(sides[1 - wall].got, count);
            if (count % 2) pair_cut();
        }
        stop();
    }
    wall = -1;
}

/* A side requests a dial only if it cannot dial itself. Two simultaneous dials
 * may look like that to one of them. */
static void who_gets_through_does_not_ask(void **unused)
{
    (void)unused;
    fetching = FETCH_NEVER;
    wall = 2; /* there is none */
    asked = 0;
    start(1);
    for (int i = 0; i < 2; i++) pair_install(i);
    for (int n = 0; n < 3000; n++) {
        pair_turn();
        act((int)dice(2));
    }
    finish();
    stop();
    wall = -1;
    assert_true(asked <= 2);
}

/* A dial request older than the connection does not end it. */
static void an_old_request_is_ignored(void **unused)
{
    (void)unused;
    fetching = FETCH_NEVER;
    start(1);
    for (int i = 0; i < 2; i++) pair_install(i);
    post(0);
    for (int n = 0; n < 3000 && sides[1].got == 0; n++) {
        pair_turn();
        (void)take(1);
    }
    struct messages *m = boxes[0];
    const struct p2p_link *l = p2p_link_find(m, ids[1], false);
    assert_true(l->open);
    uint32_t dials = l->dials;
    assert_int_equal(dials, 1);
    message_dial_requested(m, ids[1], l->peer_dials, dials - 1);
    message_dial_requested(m, ids[1], l->peer_dials - 1, dials);
    message_dial_requested(m, 77, l->peer_dials, dials); /* a stranger */
    assert_true(l->open);
    assert_int_equal(l->dials, dials);
    message_dial_requested(m, ids[1], l->peer_dials,
                           dials); /* its connection is lost there */
    assert_false(l->open);
    assert_int_equal(l->dials, dials + 1);
    stop();
}

static void a_loss_ends_everything_once(void **unused)
{
    (void)unused;
    for (uint64_t seed = 1; seed <= SEEDS; seed++) run(seed, true);
}

static void a_full_queue_refuses_and_tells_of_room(void **unused)
{
    (void)unused;
    start(1);
    pair_install(0);
    pair_install(1);
    static uint8_t body[MESSAGE_MAX];
    int rc;
    uint32_t posted = 0;
    while ((rc = message_post(boxes[0], 2, NULL, 0, body, 60000)) ==
           pcclSuccess)
        posted++;
    assert_int_equal(rc, pcclPendingAsyncOps);
    assert_true(posted * 60000 > MESSAGE_QUEUE_BYTES / 2);
    for (int n = 0; n < 5000; n++) pair_turn();
    struct message_event *event = message_take(boxes[0]);
    assert_non_null(event);
    assert_int_equal(event->kind, EVENT_ROOM);
    /* The inbox is bounded: the sender keeps messages that do not fit. */
    for (int n = 0; n < 20000; n++) {
        (void)message_post(boxes[0], 2, NULL, 0, body, 60000);
        pair_turn();
    }
    const struct p2p_link *l = boxes[1]->table[1];
    assert_true(l->inbox_bytes >= MESSAGE_INBOX_BYTES);
    assert_true(l->inbox_bytes <= MESSAGE_INBOX_BYTES + MESSAGE_MAX);
    assert_int_equal(message_post(boxes[0], 2, NULL, 0, body, 60000),
                     pcclPendingAsyncOps);
    stop();
}

/* Large data by CMA, in pieces; a piece that cannot be read is sent. */
static void what_is_lent_is_fetched(void **unused)
{
    (void)unused;
    size_t size = 2 * (size_t)CMA_PIECE + 5;
    uint8_t *from = malloc(size), *to = calloc(1, size);
    assert_true(from && to);
    for (size_t i = 0; i < size; i++) from[i] = (uint8_t)(i * 31 >> 3);
    for (fetching = FETCH_ALWAYS; fetching <= FETCH_AT_TIMES; fetching++) {
        start(2);
        fetched = tries = 0;
        pair_install(0);
        pair_install(1);
        memset(to, 0, size);
        assert_int_equal(message_send_rndv(boxes[0], 2, 5, from, size),
                         pcclSuccess);
        assert_int_equal(message_recv_rndv(boxes[1], 1, 5, to, size),
                         pcclSuccess);
        struct message_event *events[2] = {NULL, NULL};
        for (int n = 0; n < 100000 && !(events[0] && events[1]); n++) {
            pair_turn();
            for (int i = 0; i < 2; i++)
                if (!events[i]) events[i] = message_take(boxes[i]);
        }
        if (fetching == FETCH_ALWAYS) assert_int_equal(fetched, 3);
        assert_int_equal(boxes[1]->table[1]->barred,
                         fetching == FETCH_AT_TIMES);
        for (int i = 0; i < 2; i++) {
            assert_non_null(events[i]);
            assert_int_equal(events[i]->result, pcclSuccess);
            message_release(boxes[i], events[i]);
        }
        assert_int_equal(memcmp(from, to, size), 0);
        stop();
    }
    fetching = FETCH_NEVER;
    free(from);
    free(to);
}

/* A member that answers an announcement without FLAG_CMA by CMA frames breaks
 * the protocol. Each of them was once answered by two frames of this end, which
 * a member that reads nothing could let grow without limit. */
static void who_lends_unasked_is_hung_up_on(void **unused)
{
    (void)unused;
    size_t size = MESSAGE_MAX + 1;
    uint8_t *from = calloc(1, size), *to = calloc(1, size);
    assert_true(from && to);
    start(3);
    lies = true;
    pair_install(0);
    pair_install(1);
    assert_int_equal(message_send_rndv(boxes[0], 2, 5, from, size),
                     pcclSuccess);
    assert_int_equal(message_recv_rndv(boxes[1], 1, 5, to, size), pcclSuccess);
    struct p2p_link *l = p2p_link_find(boxes[1], 1, false);
    assert_int_equal(l->count, 1);
    l->items[l->first].frame.flags |= FLAG_CMA; /* so the other end lies */
    for (int n = 0; n < 3000; n++) {
        pair_turn();
        assert_true(l->count <= 1);
    }
    assert_null(message_take(boxes[1]));
    assert_int_equal(l->expects.count, 1);
    stop();
    free(from);
    free(to);
}

static void sizes_must_agree(void **unused)
{
    (void)unused;
    char from[8] = "1234567", to[8];
    start(1);
    pair_install(0);
    pair_install(1);
    assert_int_equal(message_post(boxes[0], 1, NULL, 0, NULL, 0),
                     pcclInvalidArgument);
    assert_int_equal(message_send_rndv(boxes[0], 2, 5, from, 8), pcclSuccess);
    assert_int_equal(message_send_rndv(boxes[0], 2, 5, from, 8),
                     pcclInvalidArgument);
    assert_int_equal(message_recv_rndv(boxes[1], 1, 5, to, 7), pcclSuccess);
    for (int n = 0; n < 2000; n++) pair_turn();
    for (int i = 0; i < 2; i++) {
        struct message_event *event = message_take(boxes[i]);
        assert_non_null(event);
        assert_int_equal(event->result, pcclInvalidArgument);
        message_release(boxes[i], event);
    }
    stop();
}

/* More than a careful program posts, all of them before the sends. */
static void many_expects_wait_for_their_sends(void **unused)
{
    (void)unused;
    enum { COUNT = 70000 };
    static uint8_t from[COUNT], to[COUNT];
    start(1);
    pair_install(0);
    pair_install(1);
    for (uint32_t k = 0; k < COUNT; k++) {
        from[k] = (uint8_t)(k % 251);
        assert_int_equal(message_recv_rndv(boxes[1], 1, k, &to[k], 1),
                         pcclSuccess);
    }
    const struct p2p_link *l = p2p_link_find(boxes[0], 2, true);
    for (int n = 0; n < 400000 && l->expected.count < COUNT; n++) pair_turn();
    assert_int_equal(l->expected.count, COUNT);
    for (uint32_t k = 0; k < COUNT; k++)
        assert_int_equal(message_send_rndv(boxes[0], 2, k, &from[k], 1),
                         pcclSuccess);
    uint32_t ended[2] = {0, 0};
    for (int n = 0; n < 2000000 && ended[0] + ended[1] < 2 * COUNT; n++) {
        struct message_event *event;
        pair_turn();
        for (int i = 0; i < 2; i++) {
            while ((event = message_take(boxes[i]))) {
                assert_int_equal(event->result, pcclSuccess);
                message_release(boxes[i], event);
                ended[i]++;
            }
        }
    }
    assert_int_equal(ended[0], COUNT);
    assert_int_equal(ended[1], COUNT);
    assert_int_equal(memcmp(from, to, COUNT), 0);
    stop();
}

/* An expectation beyond the other end's limit is refused here. */
static void too_many_expects_are_refused(void **unused)
{
    (void)unused;
    uint8_t to;
    start(1);
    pair_install(0);
    struct p2p_link *l = p2p_link_find(boxes[0], 2, true);
    l->expects.count = EXPECTS_MAX; /* simulates a full list */
    assert_int_equal(message_recv_rndv(boxes[0], 2, 7, &to, 1),
                     pcclPendingAsyncOps);
    l->expects.count = 0;
    assert_int_equal(message_recv_rndv(boxes[0], 2, 7, &to, 1), pcclSuccess);
    stop();
}

/* A loss before the program's first call is reported later. */
static void an_early_loss_is_told(void **unused)
{
    (void)unused;
    start(1);
    pair_install(0);
    install_view(sides[0].e, 2, members, 1, 0);
    message_lose(boxes[0], ids[1]);
    struct message_event *event = message_take(boxes[0]);
    assert_non_null(event);
    assert_int_equal(event->kind, EVENT_LOST);
    assert_int_equal(event->member, ids[1]);
    message_release(boxes[0], event);
    assert_null(message_take(boxes[0]));
    stop();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sizes_must_agree),
        cmocka_unit_test(an_early_loss_is_told),
        cmocka_unit_test(many_expects_wait_for_their_sends),
        cmocka_unit_test(too_many_expects_are_refused),
        cmocka_unit_test(what_is_lent_is_fetched),
        cmocka_unit_test(who_lends_unasked_is_hung_up_on),
        cmocka_unit_test(a_full_queue_refuses_and_tells_of_room),
        cmocka_unit_test(nothing_is_lost_or_doubled),
        cmocka_unit_test(walls_hurt_nothing),
        cmocka_unit_test(walls_are_passed_the_other_way),
        cmocka_unit_test(who_gets_through_does_not_ask),
        cmocka_unit_test(an_old_request_is_ignored),
        cmocka_unit_test(a_loss_ends_everything_once),
    };
    for (uint32_t k = 0; k < BULKS; k++)
        for (size_t b = 0; b < bulk_size(k); b++)
            source[k][b] = (uint8_t)(b * 7 + b / 251 + k);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
