/* test_master_report.c - tests of the master's log lines. */
#include "../../../src/master/watch/master_report.h"

#include <stdarg.h>
#include <setjmp.h>
#include <cmocka.h>

#include <string.h>

static struct master_report report;
static char line[REPORT_SIZE];

static bool gone(enum master_note_kind kind, uint32_t rank, uint32_t pid)
{
    struct master_peer p = {.state = PEER_DEAD, .rank = rank};
    p.info.pid = pid;
    struct master_note note = {.kind = kind, .peer = &p, .reason = "was bad"};
    return master_report_note(&report, &note, line);
}

static const char *view(uint32_t old_epoch, uint32_t epoch, uint32_t old_size,
                        uint32_t size, uint32_t joined)
{
    struct master_note note = {.kind = NOTE_VIEW,
                               .old_epoch = old_epoch,
                               .epoch = epoch,
                               .old_size = old_size,
                               .size = size,
                               .joined = joined,
                               .took = 400000};
    return master_report_note(&report, &note, line) ? line : "";
}

static void test_views(void **state)
{
    (void)state;
    memset(&report, 0, sizeof report);
    assert_string_equal(view(0, 1, 0, 4, 4), "first view: epoch 1, 4 ranks");
    assert_string_equal(view(1, 9, 3, 5, 2),
                        "2 ranks joined, epoch 9, 5 ranks");
    assert_string_equal(view(1, 9, 3, 3, 0), "");
}

static void test_other_tensors(void **state)
{
    (void)state;
    memset(&report, 0, sizeof report);
    assert_true(gone(NOTE_DIFFERS, 3, 44));
    assert_string_equal(line, "refused: was bad");
}

static void test_departures(void **state)
{
    (void)state;
    memset(&report, 0, sizeof report);
    assert_false(gone(NOTE_LOST, 2, 1234));
    assert_string_equal(view(7, 8, 4, 3, 0),
                        "rank 2 (pid 1234) lost, epoch 7 -> 8, 4 -> 3 ranks, "
                        "recovered in 0.4 ms");
    gone(NOTE_LEFT, 1, 77);
    assert_string_equal(view(8, 9, 3, 2, 0),
                        "rank 1 (pid 77) left, epoch 8 -> 9, 3 -> 2 ranks");
    gone(NOTE_LOST, 2, 5);
    gone(NOTE_LOST, 1, 6);
    assert_string_equal(view(7, 8, 4, 2, 0),
                        "ranks 1, 2 lost, epoch 7 -> 8, 4 -> 2 ranks, "
                        "recovered in 0.4 ms");
    gone(NOTE_LOST, 3, 5);
    gone(NOTE_LEFT, 0, 6);
    assert_string_equal(view(7, 8, 4, 3, 1),
                        "rank 3 (pid 5) lost, rank 0 (pid 6) left, 1 rank "
                        "joined, epoch 7 -> 8, 4 -> 3 ranks, recovered in "
                        "0.4 ms");
    gone(NOTE_LOST, 0, 5);
    assert_string_equal(view(7, 8, 1, 0, 0),
                        "rank 0 (pid 5) lost, epoch 7 -> 8, 1 -> 0 ranks");
}

static void test_many_departures_fit_a_line(void **state)
{
    (void)state;
    memset(&report, 0, sizeof report);
    for (uint32_t i = 0; i < 100; i++) gone(NOTE_LOST, 4095 - i, i);
    assert_non_null(strstr(view(7, 8, 4096, 3996, 0), " and 84 more lost, "));
    assert_memory_equal(line, "ranks 4080, 4081,", 17);
}

static void test_evictions_and_aborts(void **state)
{
    (void)state;
    memset(&report, 0, sizeof report);
    assert_true(gone(NOTE_EVICTED, 2, 9));
    assert_string_equal(line, "rank 2 (pid 9) evicted: was bad");
    struct master_peer p = {.state = PEER_REGISTERED, .info.pid = 3};
    struct master_note note = {.kind = NOTE_ABORTED, .peer = &p, .code = -4};
    assert_true(master_report_note(&report, &note, line));
    assert_string_equal(line, "newcomer (pid 3) aborted the run with code -4");
    assert_false(gone(NOTE_EVICTED, 2, 9));
    gone(NOTE_LOST, 2, 9);
    assert_string_equal(view(7, 8, 1, 0, 0), "");
    note.kind = NOTE_REGISTERED; /* a new run */
    assert_false(master_report_note(&report, &note, line));
    assert_string_equal(view(0, 10, 0, 1, 1), "first view: epoch 10, 1 rank");
}

static void test_who_is_waited_for(void **state)
{
    (void)state;
    struct master_peer p = {.state = PEER_MEMBER, .rank = 2, .info.pid = 9};
    struct master_note note = {.kind = NOTE_SILENT,
                               .peer = &p,
                               .took = 3100 * PCCL_MS,
                               .reason = "a debugger holds it"};
    assert_true(master_report_note(&report, &note, line));
    assert_string_equal(line, "rank 2 (pid 9) has been silent for 3.1 s and is "
                              "waited for: a debugger holds it");
    note.kind = NOTE_HEARD;
    note.took = 7200 * PCCL_MS;
    assert_true(master_report_note(&report, &note, line));
    assert_string_equal(line, "rank 2 (pid 9) is heard again after 7.2 s");
}

static void test_no_ring(void **state)
{
    (void)state;
    struct master_peer a = {
        .state = PEER_MEMBER, .rank = 1, .info = {.pid = 7}};
    struct master_peer b = {
        .state = PEER_MEMBER, .rank = 4, .info = {.pid = 9}};
    struct master_note note = {
        .kind = NOTE_NO_RING, .peer = &a, .other = &b, .more = 2};
    assert_true(master_report_note(&report, &note, line));
    assert_string_equal(line, "no ring connects all peers: rank 1 (pid 7) and "
                              "rank 4 (pid 9) cannot reach each other, nor can "
                              "2 more pairs");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_views),
        cmocka_unit_test(test_departures),
        cmocka_unit_test(test_other_tensors),
        cmocka_unit_test(test_many_departures_fit_a_line),
        cmocka_unit_test(test_evictions_and_aborts),
        cmocka_unit_test(test_who_is_waited_for),
        cmocka_unit_test(test_no_ring),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
