/* test_wire_members.c - tests lists of members in messages: an entry says how
 * it differs from the one before it, in one form. */
#include "../unit.h"

#include "../../../src/base/wire.h"

static uint8_t frame[WIRE_FRAME_MAX];
static struct wire_store store;

/* Bytes of a list of members in a message. */
static size_t members_size(const struct wire_member *list, uint32_t count)
{
    struct wire_msg m = {.type = WIRE_OFFERS}, got;
    size_t used = 0, without = wire_encode(&m, frame);
    m.member_count = count;
    m.members = list;
    size_t size = wire_encode(&m, frame);
    assert_int_equal(wire_decode(frame, size, &store, &got, &used), WIRE_OK);
    assert_int_equal(got.member_count, count);
    assert_memory_equal(got.members, list, count * sizeof *list);
    return size - without;
}

static void test_members_differ_little(void **state)
{
    (void)state;
    static struct wire_member list[4];
    for (uint32_t i = 0; i < 4; i++) {
        memset(&list[i], 0, sizeof list[i]);
        list[i].id = UINT64_MAX - 9 + 3 * i; /* also beyond the last number */
        list[i].host = 1ull << 60;
        list[i].hint = (int32_t)(i + 5);
        list[i].pid = 70000 - 9 * i;
        list[i].addr = (struct wire_addr){4, {10, 1, 2, 3}, (uint16_t)(9 * i)};
    }
    size_t first = members_size(list, 1);
    assert_int_equal(members_size(list, 4), first + 3 * 7);
    list[2].addr.ip[3] = 4;
    assert_int_equal(members_size(list, 4), first + 3 * 7 + 2 * 5);
    list[2].addr.ip[15] = 1;
    assert_int_equal(members_size(list, 4), first + 3 * 7 + 17 + 5);
    list[2].addr = list[1].addr;
    list[2].host++;
    assert_int_equal(members_size(list, 4), first + 3 * 7 + 2 * 8);
    list[2].host--;
    list[2].id += 0x8000; /* too far; from there the next one is near */
    assert_int_equal(members_size(list, 4), first + 3 * 7 + 6);
    list[2].id -= 0x8000;
    list[2].hint = INT32_MAX;
    assert_int_equal(members_size(list, 4), first + 3 * 7 + 2 * 4);
    list[3].hint = INT32_MIN;
    assert_int_equal(members_size(list, 4), first + 3 * 7 + 4);
    list[0].pid = UINT32_MAX;
    list[1].pid = 0; /* not near: the numbers have an end */
    members_size(list, 4);
}

/* An entry has one form only; bytes that say the same otherwise are refused. */
static void test_members_have_one_form(void **state)
{
    (void)state;
    struct wire_member list[2] = {{.id = 1}, {.id = 1}};
    struct wire_msg m = {.type = WIRE_OFFERS, .member_count = 2}, got;
    size_t used = 0;
    m.members = list;
    size_t size = wire_encode(&m, frame);
    /* The last entry: marks, id, hint, pid, port. */
    uint8_t *last = frame + size - (1 + 2 + 4 + 2 + 2);
    assert_int_equal(*last, 1 + 2 + 8 + 16);
    *last |= 128;
    assert_int_equal(wire_decode(frame, size, &store, &got, &used), WIRE_BAD);
    for (unsigned marks = 0; marks < 256; marks++) {
        /* Of the right size, as zeros fill it: only one is an entry. */
        wire_encode(&m, frame);
        *last = (uint8_t)marks;
        for (size_t more = 0; more < 64; more++) {
            size_t body = size - WIRE_HEADER_SIZE + more;
            if (more > 0) frame[size + more - 1] = 0;
            frame[6] = (uint8_t)(body >> 8);
            frame[7] = (uint8_t)body;
            if (marks != (1 + 2 + 8 + 16) || more > 0)
                assert_int_not_equal(
                    wire_decode(frame, size + more, &store, &got, &used),
                    WIRE_OK);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_members_differ_little),
        cmocka_unit_test(test_members_have_one_form),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
