/* test_state.c - a member that moves shared state checks every number that
 * another member sends (rule S7). Engine 0 is real; the test speaks for 1 and 2
 * and sends what no honest member does. */
#include "../ring/engines.h"

#include "../../../src/elastic/state.h"
#include "../../../src/hash/hash.h"

enum { SELF = 10, LIAR = 11, HONEST = 12, SYNC = 7, BIG = 3 * FRAME_BODY_MAX };

static struct state_sync sync_state;
static struct state_list list;
static uint8_t tensor[3 * HASH_BLOCK_SIZE + 5];
static uint32_t overs;

static void on_over(void *user)
{
    (void)user;
    overs++;
}

static int begin(void **state)
{
    if (setup(state) != 0) return 1;
    for (uint32_t i = 1; i < WORLD; i++) mute[i][0] = deaf[i][0] = true;
    memset(&sync_state, 0, sizeof sync_state);
    state_init(&sync_state, &engines[0]->links, on_over, NULL);
    overs = 0;
    return 0;
}

static int finish(void **state)
{
    state_end(&sync_state);
    state_list_free(&list);
    return teardown(state);
}

/* This member has `tensor`; the master names holders first, then receivers. */
static void synchronize(const char *name, const struct state_orders *orders)
{
    struct state_tensor t = {.name = name,
                             .data = tensor,
                             .count = sizeof tensor,
                             .size = sizeof tensor,
                             .dtype = 0};
    assert_true(state_list_make(&list, &t, 1, 1));
    state_begin(&sync_state, &list, true);
    assert_true(state_parts(&sync_state, orders));
    settle();
}

/* The next frame of shared state that engine 0 has sent to a member. False:
 * none. */
static bool sent(uint32_t to, struct frame *f)
{
    do {
        size_t left = flying[to][0].size;
        if (left == 0) return false;
        assert_true(left >= FRAME_SIZE);
        assert_true(frame_decode(flying[to][0].bytes, f));
        size_t size = FRAME_SIZE + f->size;
        assert_true(left >= size);
        memmove(flying[to][0].bytes, flying[to][0].bytes + size, left - size);
        flying[to][0].size -= size;
    } while (f->type != FRAME_STATE_GET && f->type != FRAME_STATE_DATA);
    return true;
}

/* A member sends a header, and so many bytes of `body`. */
static void says(uint32_t from, const struct frame *f, const uint8_t *body)
{
    assert_true(flying[0][from].size + FRAME_SIZE + f->size <= FLYING_MAX);
    frame_encode(f, flying[0][from].bytes + flying[0][from].size);
    flying[0][from].size += FRAME_SIZE;
    if (body)
        memcpy(flying[0][from].bytes + flying[0][from].size, body, f->size);
    flying[0][from].size += f->size;
    settle();
}

/* It answers a question of the structure: so many bytes, of so many in all. */
static void answers(uint32_t from, const struct frame *question, uint32_t size,
                    uint32_t total, const uint8_t *body)
{
    struct frame f = *question;
    f.type = FRAME_STATE_DATA;
    f.size = size;
    f.index = total;
    says(from, &f, body + question->tag);
}

static struct state_orders differs_from(const uint64_t *holders, uint32_t count,
                                        uint64_t structure)
{
    return (struct state_orders){.id = SYNC,
                                 .structure = structure,
                                 .differs = true,
                                 .ids = holders,
                                 .holders = count,
                                 .count = count + 1};
}

/* ------------------------------------------------------------ the structure */

static void test_a_total_that_shrinks(void **state)
{
    (void)state;
    static const uint8_t names[BIG];
    struct state_orders orders =
        differs_from((uint64_t[]){LIAR, SELF}, 1, 0x5741);
    synchronize("a", &orders);
    struct frame f;
    assert_true(sent(1, &f));
    assert_int_equal(f.flags, STATE_NAMES);
    answers(1, &f, FRAME_BODY_MAX, BIG, names);
    assert_int_equal(sync_state.names_size, BIG);
    assert_true(sent(1, &f));
    assert_int_equal(f.tag, FRAME_BODY_MAX);
    /* "It has one byte", and 512 KiB behind that byte. */
    answers(1, &f, FRAME_BODY_MAX, 1, names);
    assert_int_equal(sync_state.names_size, BIG);
    assert_true(state_partner(&sync_state, LIAR)->bad);
    assert_int_equal(sync_state.outcome, STATE_OPEN);
}

static void test_a_total_that_grows(void **state)
{
    (void)state;
    static const uint8_t names[BIG];
    struct state_orders orders =
        differs_from((uint64_t[]){LIAR, SELF}, 1, 0x5741);
    synchronize("a", &orders);
    struct frame f;
    assert_true(sent(1, &f));
    answers(1, &f, FRAME_BODY_MAX, BIG, names);
    assert_true(sent(1, &f));
    answers(1, &f, FRAME_BODY_MAX, UINT32_MAX, names);
    assert_true(state_partner(&sync_state, LIAR)->bad);
}

static void test_totals_out_of_range(void **state)
{
    (void)state;
    static const uint8_t names[BIG];
    static const struct {
        uint32_t size, total;
    } lies[] = {{8, 0},
                {8, 7},
                {8, 9},
                {FRAME_BODY_MAX, STATE_NAMES_MAX + 1u},
                {FRAME_BODY_MAX, UINT32_MAX},
                {FRAME_BODY_MAX, FRAME_BODY_MAX - 1}};
    for (uint32_t i = 0; i < ARRAY_COUNT(lies); i++) {
        struct state_orders orders =
            differs_from((uint64_t[]){LIAR, SELF}, 1, 0x5741);
        orders.id = SYNC + i;
        synchronize("a", &orders);
        struct frame f;
        assert_true(sent(1, &f));
        answers(1, &f, lies[i].size, lies[i].total, names);
        assert_true(state_partner(&sync_state, LIAR)->bad);
        assert_int_equal(sync_state.names_got, 0);
        state_end(&sync_state);
        state_list_free(&list);
    }
}

/* The structure as the group has it, larger than one piece. */
static uint8_t *true_names(uint32_t *size, uint64_t *structure)
{
    static char name[STATE_NAME_MAX + 1];
    enum { TENSORS = 200 };
    static struct state_tensor t[TENSORS];
    struct state_list group;
    memset(name, 'x', STATE_NAME_MAX);
    for (uint32_t i = 0; i < TENSORS; i++) t[i].name = name;
    assert_true(state_list_make(&group, t, TENSORS, 1));
    uint8_t *names = malloc(group.names_size);
    assert_non_null(names);
    memcpy(names, group.names, group.names_size);
    *size = group.names_size;
    *structure = group.structure;
    state_list_free(&group);
    assert_true(*size > FRAME_BODY_MAX && *size < 2 * FRAME_BODY_MAX);
    return names;
}

/* All pieces of the structure are asked of one holder, so the one that lies is
 * known, and what it sent harms nobody's answer. */
static void test_an_honest_holder_answers_in_the_end(void **state)
{
    (void)state;
    uint32_t size;
    uint64_t structure;
    uint8_t *names = true_names(&size, &structure);
    static const uint8_t zeros[BIG];
    struct state_orders orders =
        differs_from((uint64_t[]){LIAR, HONEST, SELF}, 2, structure);
    synchronize("a", &orders);
    struct frame f;
    assert_true(sent(1, &f));
    assert_false(sent(2, &f));
    answers(1, &f, FRAME_BODY_MAX, BIG, zeros);
    assert_false(sent(2, &f)); /* the first one is asked on */
    assert_true(sent(1, &f));
    answers(1, &f, 0, BIG, zeros);
    assert_int_equal(overs, 0);
    for (uint32_t at = 0; at < size; at += FRAME_BODY_MAX) {
        assert_true(sent(2, &f));
        assert_int_equal(f.tag, at);
        uint32_t left = size - at;
        answers(2, &f, left < FRAME_BODY_MAX ? left : FRAME_BODY_MAX, size,
                names);
    }
    assert_int_equal(sync_state.outcome, STATE_EXPLAINED);
    assert_int_equal(overs, 1);
    free(names);
}

/* ------------------------------------------------------------ the questions */

/* Engine 0 answers a question. Returns the size of the answer's body. */
static uint32_t answer_to(uint8_t kind, uint32_t number, uint64_t offset,
                          uint32_t size)
{
    struct frame f = {.type = FRAME_STATE_GET,
                      .flags = kind,
                      .tag = offset,
                      .seq = number,
                      .index = size,
                      .digest = SYNC};
    says(1, &f, NULL);
    assert_true(sent(1, &f));
    assert_int_equal(f.type, FRAME_STATE_DATA);
    return f.size;
}

static void test_questions_out_of_range(void **state)
{
    (void)state;
    struct state_orders orders = {.id = SYNC,
                                  .ids = (uint64_t[]){SELF, LIAR},
                                  .holders = 1,
                                  .receivers = 1,
                                  .count = 2};
    synchronize("a", &orders);
    const uint32_t blocks = 8 * 4;
    const uint64_t bytes = sizeof tensor;
    assert_int_equal(answer_to(STATE_NAMES, 0, 0, FRAME_BODY_MAX),
                     list.names_size);
    assert_int_equal(answer_to(STATE_TENSORS, 0, 0, 8), 8);
    assert_int_equal(answer_to(STATE_BLOCKS, 0, 8, blocks - 8), blocks - 8);
    assert_int_equal(answer_to(STATE_BYTES, 0, bytes - 5, 5), 5);
    static const struct {
        uint8_t kind;
        uint32_t tensor;
        uint64_t offset;
        uint32_t size;
    } lies[] = {
        {STATE_NAMES, 0, 0, 0},
        {STATE_NAMES, 0, 0, FRAME_BODY_MAX + 1},
        {STATE_NAMES, 0, 0, UINT32_MAX},
        {STATE_NAMES, 0, UINT64_MAX, 1},
        {STATE_TENSORS, 0, 8, 8},
        {STATE_TENSORS, 0, 0, UINT32_MAX},
        {STATE_TENSORS, 0, UINT64_MAX - 7, 8},
        {STATE_BLOCKS, 1, 0, 8},
        {STATE_BLOCKS, UINT32_MAX, 0, 8},
        {STATE_BLOCKS, 0, 32, 8},
        {STATE_BLOCKS, 0, UINT64_MAX - 7, 16},
        {STATE_BYTES, 1, 0, 1},
        {STATE_BYTES, 0, sizeof tensor, 1},
        {STATE_BYTES, 0, sizeof tensor - 5, 6},
        {STATE_BYTES, 0, UINT64_MAX, 2},
        {STATE_BYTES, 0, 0, 0},
        {STATE_BYTES, 0, 0, UINT32_MAX},
        {STATE_KIND_COUNT, 0, 0, 5},
        {255, 0, 0, 5},
    };
    for (uint32_t i = 0; i < ARRAY_COUNT(lies); i++) {
        uint32_t size = answer_to(lies[i].kind, lies[i].tensor, lies[i].offset,
                                  lies[i].size);
        if (size != 0) fail_msg("question %u: %u bytes", i, size);
    }
}

/* More questions than there is room for: the rest is not answered. */
static void test_a_flood_of_questions(void **state)
{
    (void)state;
    struct state_orders orders = {.id = SYNC,
                                  .ids = (uint64_t[]){SELF, LIAR},
                                  .holders = 1,
                                  .receivers = 1,
                                  .count = 2};
    struct state_tensor t = {.name = "a", .data = tensor, .size = 1};
    assert_true(state_list_make(&list, &t, 1, 1));
    state_begin(&sync_state, &list, true);
    struct frame f = {.type = FRAME_STATE_GET, .index = 1, .digest = SYNC};
    for (uint32_t i = 0; i < 2 * STATE_UNEXPECTED_MAX; i++) says(1, &f, NULL);
    assert_int_equal(sync_state.unexpected_count, STATE_UNEXPECTED_MAX);
    assert_true(state_parts(&sync_state, &orders));
    assert_int_equal(sync_state.partners[0].todo_count, STATE_TODO_MAX);
    settle();
    for (uint32_t i = 0; i < STATE_TODO_MAX; i++) assert_true(sent(1, &f));
}

/* -------------------------------------------------------------- the content */

static struct state_orders receives_from(const uint64_t *peers,
                                         uint32_t holders)
{
    return (struct state_orders){.id = SYNC,
                                 .content = 0x1234,
                                 .receives = true,
                                 .ids = peers,
                                 .holders = holders,
                                 .receivers = 1,
                                 .count = holders + 1};
}

/* An answer to a question that was not asked, or a second one. */
static void test_answers_that_nobody_asked_for(void **state)
{
    (void)state;
    static const uint8_t body[FRAME_BODY_MAX];
    struct state_orders orders =
        receives_from((uint64_t[]){LIAR, HONEST, SELF}, 2);
    synchronize("a", &orders);
    struct frame question;
    assert_true(sent(1, &question));
    assert_int_equal(question.flags, STATE_TENSORS);
    struct frame f = {.type = FRAME_STATE_DATA, .digest = SYNC};
    for (uint32_t kind = 0; kind < 256; kind++) {
        f.flags = (uint8_t)kind;
        f.seq = kind % 2 ? UINT32_MAX : 0;
        f.tag = kind % 3 ? UINT64_MAX - 7 : 0;
        f.size = f.index = kind % 5 ? 16 : FRAME_BODY_MAX;
        says(1, &f, body);
        says(2, &f, body);
    }
    assert_int_equal(sync_state.names_got, 0);
    assert_false(state_partner(&sync_state, LIAR)->bad);
    /* Wrong hashes: the digest of the master is another one. */
    answers(1, &question, 8, 8, body);
    assert_true(state_partner(&sync_state, LIAR)->bad);
    assert_false(sync_state.hashes_known);
    answers(1, &question, 8, 8, body);
    assert_int_equal(state_partner(&sync_state, LIAR)->asked, 0);
    assert_int_equal(state_partner(&sync_state, HONEST)->asked, 1);
}

/* What the group has instead of `tensor`. */
static uint8_t elected[sizeof tensor];
static struct state_list elected_list;

/* This member is to receive other bytes than it has. */
static void lacks_what_was_elected(struct state_orders orders)
{
    for (uint32_t i = 0; i < sizeof elected; i++) {
        elected[i] = (uint8_t)(i / 7);
        tensor[i] = (uint8_t)~elected[i];
    }
    struct state_tensor t = {.name = "a",
                             .data = elected,
                             .count = sizeof elected,
                             .size = sizeof elected};
    assert_true(state_list_make(&elected_list, &t, 1, 1));
    orders.content = elected_list.content;
    synchronize("a", &orders);
    state_list_to_wire(&elected_list);
}

/* It is told the hashes by 1 and 2 until it asks for bytes. Returns whom it
 * asks. */
static uint32_t asks_on(struct frame *question)
{
    for (;;) {
        uint32_t to = sent(1, question) ? 1 : 2;
        if (to == 2) assert_true(sent(2, question));
        if (question->flags == STATE_BYTES) return to;
        answers(to, question, question->index, question->index,
                (const uint8_t *)(question->flags == STATE_TENSORS
                                      ? elected_list.hashes
                                      : elected_list.blocks));
    }
}

static uint32_t asks_for_bytes(struct frame *question)
{
    lacks_what_was_elected(receives_from((uint64_t[]){LIAR, HONEST, SELF}, 2));
    return asks_on(question);
}

static void has_what_was_elected(void)
{
    assert_int_equal(sync_state.outcome, STATE_RECEIVED);
    assert_memory_equal(tensor, elected, sizeof tensor);
    state_list_free(&elected_list);
}

/* Rule S7e: no holder can be reached, and a fellow has all that it tells. */
static void test_a_fellow_in_place_of_the_holder(void **state)
{
    (void)state;
    struct frame question, f;
    struct state_orders orders =
        receives_from((uint64_t[]){LIAR, HONEST, SELF}, 1);
    orders.receivers = 2;
    orders.count = 3;
    lacks_what_was_elected(orders);
    assert_true(sent(1, &question));
    assert_false(sent(2, &f));
    assert_int_equal(answer_to(STATE_TENSORS, 0, 0, 8), 0);
    mute[0][1] = true; /* it cannot be reached any more */
    answers(1, &question, 0, question.index, NULL);
    struct link *l = link_find(sync_state.links, LIAR, false);
    l->sought = l->failed = true;
    sync_state.links->now += sync_state.links->deadline / 128;
    state_tick(&sync_state);
    settle();
    assert_int_equal(sync_state.outcome, STATE_OPEN);
    assert_int_equal(asks_on(&f), 2);
    answers(2, &f, f.index, f.index, elected);
    has_what_was_elected();
}

/* ... and this member tells a fellow all that it knows. */
static void test_hashes_for_a_fellow(void **state)
{
    (void)state;
    struct frame f;
    struct state_orders orders =
        receives_from((uint64_t[]){LIAR, SELF, HONEST}, 1);
    orders.receivers = 2;
    orders.count = 3;
    lacks_what_was_elected(orders);
    assert_int_equal(asks_on(&f), 1);
    assert_int_equal(answer_to(STATE_NAMES, 0, 0, 8), 0);
    assert_int_equal(answer_to(STATE_TENSORS, 0, 0, 8), 8);
    assert_int_equal(answer_to(STATE_TENSORS, 0, 8, 8), 0);
    assert_int_equal(answer_to(STATE_BLOCKS, 0, 8, 24), 24);
    assert_int_equal(answer_to(STATE_BLOCKS, 0, 8, 32), 0);
    assert_int_equal(answer_to(STATE_BLOCKS, 1, 0, 8), 0);
    assert_int_equal(answer_to(STATE_BYTES, 0, 0, 8), 0);
    assert_memory_equal(sync_state.theirs, elected_list.blocks, 32);
    assert_memory_equal(sync_state.names, elected_list.hashes, 8);
    answers(1, &f, f.index, f.index, elected);
    has_what_was_elected();
}

/* A block that fails its check is asked of the other holder, and no other
 * one. */
static void test_a_wrong_block(void **state)
{
    (void)state;
    struct frame f;
    uint32_t liar = asks_for_bytes(&f);
    assert_int_equal(f.index, sizeof elected);
    elected[HASH_BLOCK_SIZE] ^= 1;
    answers(liar, &f, f.index, f.index, elected);
    elected[HASH_BLOCK_SIZE] ^= 1;
    assert_int_equal(sync_state.outcome, STATE_OPEN);
    assert_true(state_partner(&sync_state, ids[liar])->bad);
    assert_true(sent(3 - liar, &f));
    assert_int_equal(f.tag, HASH_BLOCK_SIZE);
    assert_int_equal(f.index, HASH_BLOCK_SIZE);
    answers(3 - liar, &f, f.index, f.index, elected);
    has_what_was_elected();
}

/* A holder is slow, and is asked for less in the same place: what it says to
 * the first question is no answer to the second one. */
static void test_a_late_answer(void **state)
{
    (void)state;
    struct frame first, f;
    uint32_t slow = asks_for_bytes(&first);
    struct links *links = &engines[0]->links;
    links->now += links->deadline;
    state_tick(&sync_state);
    settle();
    assert_true(sent(3 - slow, &f));
    assert_int_equal(f.index, first.index);
    elected[0] ^= 1;
    answers(3 - slow, &f, f.index, f.index, elected);
    elected[0] ^= 1;
    links->now += links->deadline / 8;
    state_tick(&sync_state);
    settle();
    assert_true(sent(slow, &f));
    assert_int_equal(f.tag, 0);
    assert_int_equal(f.index, HASH_BLOCK_SIZE);
    answers(slow, &first, first.index, first.index, elected);
    assert_false(state_partner(&sync_state, ids[slow])->bad);
    answers(slow, &f, f.index, f.index, elected);
    has_what_was_elected();
}

/* A holder has no memory for a piece: another one is asked, and when that one
 * has none either, both are again after a while. */
static void test_an_empty_answer(void **state)
{
    (void)state;
    struct frame f;
    uint32_t first = asks_for_bytes(&f);
    struct links *links = &engines[0]->links;
    answers(first, &f, 0, f.index, elected);
    assert_false(sent(first, &f));
    assert_true(sent(3 - first, &f));
    answers(3 - first, &f, 0, f.index, elected);
    assert_false(sent(1, &f) || sent(2, &f));
    links->now += links->deadline / 256;
    state_tick(&sync_state);
    settle();
    for (uint32_t to = 1; to <= 2; to++)
        while (sent(to, &f)) answers(to, &f, f.index, f.index, elected);
    has_what_was_elected();
}

/* A list that names this member twice makes it no partner of itself. */
static void test_orders_that_repeat_ids(void **state)
{
    (void)state;
    struct state_orders orders =
        receives_from((uint64_t[]){SELF, LIAR, LIAR, SELF}, 3);
    synchronize("a", &orders);
    assert_null(state_partner(&sync_state, SELF));
    struct frame f;
    assert_true(sent(1, &f));
    assert_false(sent(1, &f));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_a_total_that_shrinks, begin,
                                        finish),
        cmocka_unit_test_setup_teardown(test_a_total_that_grows, begin, finish),
        cmocka_unit_test_setup_teardown(test_totals_out_of_range, begin,
                                        finish),
        cmocka_unit_test_setup_teardown(
            test_an_honest_holder_answers_in_the_end, begin, finish),
        cmocka_unit_test_setup_teardown(test_questions_out_of_range, begin,
                                        finish),
        cmocka_unit_test_setup_teardown(test_a_flood_of_questions, begin,
                                        finish),
        cmocka_unit_test_setup_teardown(test_answers_that_nobody_asked_for,
                                        begin, finish),
        cmocka_unit_test_setup_teardown(test_a_fellow_in_place_of_the_holder,
                                        begin, finish),
        cmocka_unit_test_setup_teardown(test_hashes_for_a_fellow, begin,
                                        finish),
        cmocka_unit_test_setup_teardown(test_a_wrong_block, begin, finish),
        cmocka_unit_test_setup_teardown(test_a_late_answer, begin, finish),
        cmocka_unit_test_setup_teardown(test_an_empty_answer, begin, finish),
        cmocka_unit_test_setup_teardown(test_orders_that_repeat_ids, begin,
                                        finish),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
