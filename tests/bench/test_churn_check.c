/* test_churn_check.c - the checker of pccl-bench churn: a true story passes,
 * and each lie in it is found. */
#include "../../src/bench/churn.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>
#include <dirent.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { LIVES = 3, FAULTS = LIVES };

static const uint32_t ns[LIVES] = {12, 13, 14};

/* The lie in the story: one field of a line, or the line itself. */
struct lie {
    uint32_t life; /* or FAULTS */
    char tag;
    int nth; /* of the lines with this tag; -1: no lie */
    int field;
    uint64_t value;
    enum { CHANGED, LEFT_OUT, GARBLED, CUT, MIDDLE_CUT } how;
    const char *found; /* in the text of the violation */
};

static struct {
    char folder[64];
    struct churn_history h[LIVES + 1];
    const struct lie *lie;
    int seen;
    uint64_t now;
    bool evicts; /* the third member is stopped, not killed */
} story;

/* A history is open for appending; Linux then writes to no other place. */
static void garble(uint32_t life, off_t at)
{
    char path[80];
    char byte;
    snprintf(path, sizeof path, "%s/%u.hist", story.folder, ns[life]);
    int fd = open(path, O_RDWR);
    assert_int_equal(pread(fd, &byte, 1, at), 1);
    byte ^= 1;
    assert_int_equal(pwrite(fd, &byte, 1, at), 1);
    close(fd);
}

static void emit(uint32_t life, char tag, const uint64_t *v, uint32_t count)
{
    uint64_t copy[CHURN_FIELDS];
    const struct lie *l = story.lie;
    memcpy(copy, v, count * sizeof *v);
    if (l->life == life && l->tag == tag && story.seen++ == l->nth) {
        if (l->how == CHANGED) copy[l->field] = l->value;
        if (l->how == LEFT_OUT) story.h[life].lines++;
        if (l->how == LEFT_OUT) return;
        churn_write(&story.h[life], tag, copy, count, NULL);
        off_t end = lseek(story.h[life].fd, 0, SEEK_END);
        if (l->how == GARBLED) garble(life, end - 14);
        if (l->how == CUT || l->how == MIDDLE_CUT)
            assert_int_equal(ftruncate(story.h[life].fd, end - 5), 0);
        if (l->how == CUT) story.h[life].fd = open("/dev/null", O_WRONLY);
        return;
    }
    churn_write(&story.h[life], tag, copy, count, NULL);
}

#define EMIT(life, tag, ...)                                                   \
    emit((life), (tag), (const uint64_t[]){__VA_ARGS__},                       \
         sizeof((const uint64_t[]){__VA_ARGS__}) / sizeof(uint64_t))

static uint64_t tick(void)
{
    return story.now += 1000;
}

static void operation(uint32_t life, uint64_t result, uint64_t step,
                      uint64_t op, uint64_t attempt, uint64_t epoch)
{
    uint64_t members = epoch == 1 ? 3 : 2;
    uint64_t begun = tick();
    bool well = result == pcclSuccess;
    EMIT(life, 'O', begun, tick(), result, step, op, attempt, epoch,
         well ? members : 0, well ? (1u << members) - 1 : 0, well ? 77 + op : 0,
         4096);
}

static void sync_all(uint32_t lives, uint64_t step)
{
    for (uint32_t i = 0; i < lives; i++)
        EMIT(i, 'S', tick(), tick(), 0, step, step + 1, 1000 + step, 0,
             step > 0);
}

/* It learns of it in its third operation, has results of others all the same,
 * and joins anew. */
static void tell_eviction(void)
{
    operation(2, pcclSuccess, 1, 1, 0, 1);
    operation(2, pcclMasterConnectionFailed, 1, 2, 0, 1);
    EMIT(2, 'G', tick());
    operation(2, pcclMasterConnectionFailed, 1, 3, 0, 1);
    operation(2, pcclSuccess, 1, 4, 0, 1);
    EMIT(2, 'J', tick(), tick(), 0);
    emit(2, 'V', (uint64_t[]){tick(), 9, 0, 1, 14}, 5);
    EMIT(2, 'E', tick());
}

/* Three members make two steps. In the second the last one is killed when its
 * first operation has succeeded; the survivors repeat the rest. */
static void tell(const struct lie *lie)
{
    story.lie = lie;
    story.seen = 0;
    story.now = 1000000;
    EMIT(FAULTS, 'C', 1000000000,
         1u << (story.evicts ? CHURN_STOP : CHURN_KILL));
    for (uint32_t i = 0; i < LIVES; i++) {
        EMIT(i, 'B', tick(), ns[i], 0, 100 + i);
        EMIT(i, 'J', tick(), tick(), 0);
        emit(i, 'V', (uint64_t[]){tick(), 1, i, 3, 12, 13, 14}, 7);
    }
    sync_all(3, 0);
    for (uint32_t i = 0; i < LIVES; i++)
        for (uint64_t op = 0; op < CHURN_OPS; op++)
            operation(i, 0, 0, op, 0, 1);
    sync_all(3, 1);
    for (uint32_t i = 0; i < LIVES; i++) operation(i, 0, 1, 0, 0, 1);
    EMIT(FAULTS, 'F', tick(), tick() + (story.evicts ? 2000000000 : 0),
         story.evicts ? CHURN_STOP : CHURN_KILL, 14, 0);
    if (!story.evicts) EMIT(FAULTS, 'D', tick(), 14, 9, 1);
    for (uint32_t i = 0; i < 2; i++)
        for (uint64_t op = 1; op < CHURN_OPS; op++)
            operation(i, pcclRankConnectionLost, 1, op, 0, 1);
    if (story.evicts) tell_eviction();
    for (uint32_t i = 0; i < 2; i++)
        emit(i, 'V', (uint64_t[]){tick(), 2, i, 2, 12, 13}, 6);
    for (uint32_t i = 0; i < 2; i++)
        for (uint64_t op = 1; op < CHURN_OPS; op++)
            operation(i, 0, 1, op, 1, 2);
    sync_all(2, 2);
    for (uint32_t i = 0; i < 2; i++) {
        for (uint64_t op = 0; op < CHURN_OPS; op++)
            operation(i, 0, 2, op, 0, 2);
        EMIT(i, 'E', tick());
    }
}

static void open_story(void)
{
    snprintf(story.folder, sizeof story.folder, "/tmp/churn-check.XXXXXX");
    assert_non_null(mkdtemp(story.folder));
    for (uint32_t i = 0; i < LIVES; i++) {
        char name[16];
        snprintf(name, sizeof name, "%u", ns[i]);
        assert_true(churn_history_open(&story.h[i], story.folder, name));
    }
    assert_true(churn_history_open(&story.h[FAULTS], story.folder, "faults"));
}

static void close_story(void)
{
    DIR *dir = opendir(story.folder);
    assert_non_null(dir);
    for (const struct dirent *d; (d = readdir(dir));) {
        char path[400];
        snprintf(path, sizeof path, "%s/%s", story.folder, d->d_name);
        if (d->d_name[0] != '.') assert_int_equal(unlink(path), 0);
    }
    (void)closedir(dir);
    assert_int_equal(rmdir(story.folder), 0);
    for (uint32_t i = 0; i <= LIVES; i++) close(story.h[i].fd);
}

static struct churn_totals totals;

static void check(const struct lie *lie)
{
    memset(&totals, 0, sizeof totals);
    open_story();
    tell(lie);
    churn_check(story.folder, &totals);
    churn_require(totals.wanted, &totals);
    close_story();
    for (int k = 0; k < CHURN_FAULTS; k++) free(totals.stalls[k].v);
}

static const struct lie truth = {.nth = -1};

static void test_a_true_story_passes(void **state)
{
    (void)state;
    check(&truth);
    if (totals.violations) print_error("%s\n", totals.texts[0]);
    assert_int_equal(totals.violations, 0);
    assert_int_equal(totals.histories, 3);
    assert_int_equal(totals.operations, 8 + 8 + 8);
    assert_int_equal(totals.agreed, 7);
    assert_int_equal(totals.epochs, 2);
    assert_int_equal(totals.sums, 24 + 3 + 14 + 16);
    assert_int_equal(totals.faults[CHURN_KILL], 1);
    assert_int_equal(totals.stalls[CHURN_KILL].count, 0);
}

/* An evicted member is no survivor, also when it is back. */
static void test_an_eviction_has_a_reason(void **state)
{
    (void)state;
    story.evicts = true;
    check(&truth);
    if (totals.violations) print_error("%s\n", totals.texts[0]);
    assert_int_equal(totals.violations, 0);
    assert_int_equal(totals.evictions, 1);
    /* Another one was stopped; or it was for too short a time. */
    const struct lie other = {FAULTS, 'F', 0, 3, 13, CHANGED, ""};
    check(&other);
    assert_non_null(strstr(totals.texts[0], "evicted for no reason"));
    const struct lie brief = {FAULTS, 'F', 0, 1, 2000000, CHANGED, ""};
    check(&brief);
    assert_non_null(strstr(totals.texts[0], "evicted for no reason"));
    story.evicts = false;
}

static void test_each_lie_is_found(void **state)
{
    (void)state;
    static const struct lie lies[] = {
        /* sums, contributors */
        {0, 'O', 3, 9, 1, CHANGED, "other bits or contributors"},
        {1, 'O', 3, 8, 5, CHANGED, "is not in its result"},
        {0, 'O', 3, 8, 3, CHANGED, "contributors are told"},
        {2, 'O', 3, 7, 2, CHANGED, "other bits or contributors"},
        {0, 'O', 25, 8, 7, CHANGED, "that are no members"},
        /* outcomes */
        {0, 'O', 9, 2, 0, CHANGED, "succeeded for 12.hist, failed for 13"},
        {0, 'O', 3, 0, 0, LEFT_OUT, "12.hist: line 7 is broken"},
        {0, 'O', 3, 3, 1, CHANGED, "operation of step 1 in step 0"},
        {0, 'O', 3, 4, 2, CHANGED, "operation 2 of step 0, twice"},
        {0, 'O', 3, 2, 8, CHANGED, "of step 0 only operations f7"},
        {0, 'O', 3, 6, 9, CHANGED, "of epoch 9 within epoch 1"},
        /* views */
        {1, 'V', 1, 1, 1, CHANGED, "epoch 1 after epoch 1"},
        {1, 'V', 0, 6, 26, CHANGED, "other members in epoch 1"},
        {1, 'V', 1, 5, 25, CHANGED, "is no member of its epoch 2"},
        /* state */
        {1, 'S', 1, 5, 9, CHANGED, "other content in revision 2"},
        {1, 'S', 1, 6, 9, CHANGED, "received 9 bytes"},
        {1, 'S', 1, 3, 7, CHANGED, "step 7 follows step 0"},
        {1, 'J', 0, 2, 6, CHANGED, "refused for no reason"},
        /* files */
        {1, 'S', 1, 0, 0, GARBLED, "13.hist: line 12 is broken"},
        {1, 'S', 1, 0, 0, MIDDLE_CUT, "13.hist: line 12 is broken"},
        {1, 'E', 0, 0, 0, GARBLED, "is broken"},
        {FAULTS, 'D', 0, 0, 0, CUT, "the last line is torn"},
        {FAULTS, 'D', 0, 3, 0, CHANGED, "process 14 ended with status 0x9"},
        {FAULTS, 'F', 0, 2, CHURN_JOIN, CHANGED, "no fault of the kind kill"},
        {FAULTS, 'C', 0, 1, 0, CHANGED, "a run without faults"},
    };
    for (size_t i = 0; i < sizeof lies / sizeof lies[0]; i++) {
        bool found = false;
        check(&lies[i]);
        for (uint64_t k = 0; k < totals.violations && k < CHURN_KEPT; k++)
            found |= strstr(totals.texts[k], lies[i].found) != NULL;
        if (!found)
            print_error("lie %zu (%s): %llu violations, %s\n", i, lies[i].found,
                        (unsigned long long)totals.violations, totals.texts[0]);
        assert_true(found);
    }
}

/* Only the last line of a process that was killed may be torn. */
static void test_a_torn_last_line(void **state)
{
    (void)state;
    const struct lie torn = {2, 'O', 8, 0, 0, CUT, ""};
    check(&torn);
    assert_int_equal(totals.violations, 0);
    /* It may not lack a line that others rely on, either. */
    const struct lie early = {1, 'O', 8, 0, 0, CUT, ""};
    check(&early);
    assert_true(totals.violations > 0);
}

static void test_empty_histories(void **state)
{
    (void)state;
    memset(&totals, 0, sizeof totals);
    open_story();
    churn_check(story.folder, &totals);
    assert_true(totals.violations >= 2);
    uint64_t before = totals.violations;
    churn_require(totals.wanted, &totals);
    assert_true(totals.violations > before);
    close_story();
    memset(&totals, 0, sizeof totals);
    assert_false(churn_check_all("/nowhere", &totals));
}

/* ------------------------------------------------------------------- sums */

static void add_up(const struct churn_op *o, const uint32_t *who,
                   uint32_t count, uint64_t *sum)
{
    static uint64_t one[CHURN_SMALL / 8];
    memset(sum, 0, o->count * 8);
    for (uint32_t k = 0; k < count; k++) {
        churn_fill(o, who[k], false, one);
        for (size_t i = 0; i < o->count; i++) sum[i] += one[i];
    }
}

static void test_sums_tell_their_contributors(void **state)
{
    (void)state;
    static uint64_t sum[CHURN_SMALL / 8];
    const uint32_t all[] = {12, 25, 14, 23};
    const uint32_t other[] = {12, 25, 14, 35}; /* its successor in the slot */
    const uint32_t twice[] = {12, 25, 14, 14};
    struct churn_op o = {.step = 5,
                         .op = 3,
                         .type = pcclUint64,
                         .size = 8,
                         .count = 3000,
                         .redop = pcclSum};
    uint32_t set;
    bool over = false;
    add_up(&o, all, 4, sum);
    assert_true(churn_holds(&o, all, 4, sum, &set, &over));
    assert_int_equal(set, 1 << 0 | 1 << 1 | 1 << 2 | 1 << 11);
    assert_false(churn_holds(&o, all, 3, sum, &set, &over));
    assert_false(churn_holds(&o, other, 4, sum, &set, &over));
    sum[2999]++;
    assert_false(churn_holds(&o, all, 4, sum, &set, &over));
    add_up(&o, twice, 4, sum);
    assert_false(churn_holds(&o, twice, 4, sum, &set, &over));
    add_up(&o, all, 4, sum);
    o.step++; /* the sum of another step */
    assert_false(churn_holds(&o, all, 4, sum, &set, &over));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_true_story_passes),
        cmocka_unit_test(test_an_eviction_has_a_reason),
        cmocka_unit_test(test_each_lie_is_found),
        cmocka_unit_test(test_a_torn_last_line),
        cmocka_unit_test(test_empty_histories),
        cmocka_unit_test(test_sums_tell_their_contributors),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
