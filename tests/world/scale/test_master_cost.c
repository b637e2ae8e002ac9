/* test_master_cost.c - no event costs the coordinator more than linear time in
 * what is in flight or in the number of members, nor keeps its loop for longer
 * than 10 ms. It compares executed blocks (cost.h) and no clocks. */
#include "../../unit/unit.h"

#include "master_play.h"

static const char *const events[COST_EVENTS_MAX] = {
    [WIRE_HELLO] = "HELLO",
    [WIRE_VOTE] = "VOTE",
    [WIRE_SUSPECT] = "SUSPECT",
    [WIRE_REFRESH] = "REFRESH",
    [WIRE_FLUSHED] = "FLUSHED",
    [WIRE_REPLY] = "REPLY",
    [WIRE_READY] = "READY",
    [WIRE_LEAVE] = "LEAVE",
    [WIRE_ABORT] = "ABORT",
    [WIRE_SYNC] = "SYNC",
    [WIRE_SYNCED] = "SYNCED",
    [WIRE_MEASURED] = "MEASURED",
    [WIRE_BLOCKED] = "BLOCKED",
    [WIRE_HEARTBEAT] = "HEARTBEAT",
    [WIRE_RESULT] = "RESULT",
    [WIRE_DIAL_REQUEST] = "DIAL_REQUEST",
    [WIRE_WAITING] = "WAITING",
    [WIRE_STATUS_GET] = "STATUS_GET",
    [WIRE_SAMPLES] = "SAMPLES",
    [WIRE_OFFER] = "OFFER",
    [WIRE_OFFERS_GET] = "OFFERS_GET",
    [WIRE_RELAY] = "RELAY",
    [WIRE_PARTIAL] = "PARTIAL",
    [ROW_EVENTS + MASTER_CONNECTED] = "connected",
    [ROW_EVENTS + MASTER_CLOSED] = "connection lost",
    [ROW_EVENTS + MASTER_EXPELLED] = "expelled",
    [ROW_EVENTS + MASTER_TICK] = "tick",
    [ROW_EVENTS + MASTER_QUORUM] = "quorum",
    [ROW_EVENTS + MASTER_EVIDENCE] = "evidence",
    [ROW_EVENTS + MASTER_SLEPT] = "slept",
    [ROW_STATUS_TEXT] = "status, text",
    [ROW_STATUS_JSON] = "status, JSON",
    [ROW_METRICS] = "metrics",
};

static const struct crowd few = {.members = 40,
                                 .groups = 1,
                                 .newcomers = 4,
                                 .ops = 2,
                                 .waits = 4,
                                 .tags = 1,
                                 .cuts = 0,
                                 .listed = 8};

/* Partial all-reduces are for fewer members: columns of their own. */
static void all(const struct crowd *c)
{
    play_begin(c);
    play_reports(c);
    if (c->members == few.members) play_partial(c);
    play_sync(c);
    play_votes(c);
    play_loss(c);
    play_end(c);
}

static void members(uint32_t size)
{
    struct crowd c = few;
    c.members = size;
    all(&c);
}

static void newcomers(uint32_t size)
{
    struct crowd c = few;
    c.newcomers = size;
    all(&c);
}

static void groups(uint32_t size)
{
    struct crowd c = few;
    c.members = 400;
    c.groups = size;
    all(&c);
}

static void ops(uint32_t size)
{
    struct crowd c = few;
    c.members = 64;
    c.ops = size;
    all(&c);
}

static void averages(const struct crowd *c)
{
    play_begin(c);
    play_partial(c);
    play_end(c);
}

static void averaged(uint32_t size)
{
    struct crowd c = few;
    c.members = size;
    averages(&c);
}

static void tags(uint32_t size)
{
    struct crowd c = few;
    c.members = 16;
    c.tags = size;
    averages(&c);
}

static void waits(uint32_t size)
{
    struct crowd c = few;
    c.members = 100;
    c.waits = size;
    all(&c);
}

static const struct cost_column columns[] = {
    {"members", {40, 400, 4000}, true, members},
    {"newcomers", {20, 200, 2000}, true, newcomers},
    {"groups", {2, 20, 200}, false, groups},
    {"operations", {2, 20, 200}, false, ops},
    {"averaged", {10, 100, 1000}, false, averaged},
    {"tags", {1, 8, 64}, true, tags},
    {"waits", {2, 8, 24}, true, waits},
};

static const char scopes[] =
    "a scope is a set of n bits, as members send it: n scopes";
static const char lines[] = "it has some lines for each member";
static const char maps[] =
    "a map has of each part a set of members, as the members need it";

static const struct cost_excuse excuses[] = {
    {"FLUSHED", "members", 40, true, scopes},
    {"FLUSHED", "newcomers", 20, false, scopes},
    {"REPLY", "members", 20, false, scopes},
    {"READY", "members", 20, false, scopes},
    {"status, text", "members", 0, true, lines},
    {"status, JSON", "members", 0, true, lines},
    {"metrics", "members", 0, true, lines},
    {"PARTIAL", "averaged", 30, false, maps},
    {"tick", "averaged", 100, true, "each member gets a map"},
};

static void test_costs(void **state)
{
    (void)state;
    const struct cost_table t = {
        .events = events,
        .columns = columns,
        .column_count = sizeof columns / sizeof columns[0],
        .excuses = excuses,
        .excuse_count = sizeof excuses / sizeof excuses[0]};
    assert_true(cost_table(&t));
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_costs)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
