/* test_frame.c - headers between peers. */
#include "../unit.h"

#include "../../../src/link/frame.h"

static struct frame example(uint8_t type)
{
    struct frame f = {.type = type,
                      .flags = FLAG_CLEAN,
                      .epoch = 0x01020304,
                      .tag = UINT64_MAX - 1,
                      .seq = 5,
                      .index = 6,
                      .digest = 0x1122334455667788,
                      .scope = 0x99aabbccddeeff00};
    if (type == FRAME_HELLO || type == FRAME_RELAY) f.size = FRAME_HELLO_SIZE;
    if (type == FRAME_DATA) f.size = FRAME_BODY_MAX;
    return f;
}

static void test_round_trip(void **state)
{
    (void)state;
    for (uint8_t type = FRAME_HELLO; type < FRAME_TYPE_COUNT; type++) {
        struct frame f = example(type), got;
        uint8_t bytes[FRAME_SIZE];
        frame_encode(&f, bytes);
        assert_true(frame_decode(bytes, &got));
        assert_int_equal(got.type, type);
        assert_int_equal(got.flags, f.flags);
        assert_int_equal(got.epoch, f.epoch);
        assert_true(got.tag == f.tag && got.digest == f.digest);
        assert_true(got.scope == f.scope);
        assert_int_equal(got.seq, f.seq);
        assert_int_equal(got.index, f.index);
        assert_int_equal(got.size, f.size);
    }
}

static bool has_body(uint8_t type)
{
    return type == FRAME_DATA || type == FRAME_MESSAGE || type == FRAME_RNDV ||
           type == FRAME_STATE_DATA || type == FRAME_PROBE;
}

static void test_bodies_are_bounded(void **state)
{
    (void)state;
    for (uint8_t type = 0; type < 16; type++) {
        struct frame f = example(type), got;
        uint8_t bytes[FRAME_SIZE];
        f.size = FRAME_BODY_MAX + 1;
        frame_encode(&f, bytes);
        assert_false(frame_decode(bytes, &got));
        f.size = 1;
        frame_encode(&f, bytes);
        assert_true(frame_decode(bytes, &got) == has_body(type));
    }
}

static void test_corrupted_start(void **state)
{
    (void)state;
    for (unsigned at = 0; at < FRAME_SIZE; at++) {
        for (unsigned x = 1; x < 256; x++) {
            struct frame f = example(FRAME_READY), got;
            uint8_t bytes[FRAME_SIZE];
            frame_encode(&f, bytes);
            bytes[at] = (uint8_t)(bytes[at] ^ x);
            bool good = frame_decode(bytes, &got);
            if (at < 2 || at >= FRAME_SIZE - 4) assert_false(good);
            if (good) assert_true(got.size <= FRAME_BODY_MAX);
        }
    }
}

static void test_another_number(void **state)
{
    (void)state;
    struct frame f = example(FRAME_DATA);
    uint8_t bytes[FRAME_SIZE], want[FRAME_SIZE];
    frame_encode(&f, bytes);
    f.seq = 0x01020304;
    frame_encode(&f, want);
    frame_renumber(bytes, f.seq);
    assert_memory_equal(bytes, want, FRAME_SIZE);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_round_trip),
        cmocka_unit_test(test_bodies_are_bounded),
        cmocka_unit_test(test_corrupted_start),
        cmocka_unit_test(test_another_number),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
