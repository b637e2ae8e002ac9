/* test_ettr_check.c - the checker of pccl-bench ettr: two true histories give
 * the figures that they were written for, and each lie in them is found. */
#include "../../src/bench/ettr.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>
#include <dirent.h>
#include <math.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define SECOND UINT64_C(1000000000)

enum lie {
    NONE,
    NO_FAULT,     /* none was written */
    FEWER_FAULTS, /* than planned */
    OTHER_FAULT,  /* in the run without */
    NO_END,       /* a member's last line is missing */
    NO_WINDOW,    /* the launcher's last line is missing */
    TORN,         /* a line is cut in two */
    NO_FILE,      /* of one member */
    WRONG_SUM,    /* a member saw it */
    TWO_SUMS,     /* of one step */
    NO_STEP,      /* in the run with faults */
    BAD_END,      /* a process failed */
    EVICTED,      /* no lie: a member had a sum that the others repeated */
};

static char root[64];

static void write_member(const char *folder, uint32_t n, enum lie lie,
                         bool faulty, bool killed)
{
    char name[16];
    struct churn_history h;
    snprintf(name, sizeof name, "%u", n);
    assert_true(churn_history_open(&h, folder, name));
    CHURN_WRITE(&h, 'B', 1, n, 0, 77);
    /* A step in each half second; the fault at 4.9 s takes a second. */
    for (uint64_t step = 1; step <= 22 && lie != NO_STEP; step++) {
        uint64_t at = 10 * SECOND + step * SECOND / 2;
        uint64_t set = step == 7 && n == 12 && lie == TWO_SUMS ? 6 : 7;
        if (step == 7 && n != 14 && lie == EVICTED) set = 3;
        if (faulty && step >= 10) at += SECOND;
        if (killed && step == 10) break;
        CHURN_WRITE(&h, 'T', at, step, set);
    }
    const uint64_t at = 20 * SECOND;
    if (lie == WRONG_SUM && n == 12) churn_write(&h, 'X', &at, 1, "the sum");
    if (!killed && !(lie == NO_END && n == 12)) CHURN_WRITE(&h, 'E', at);
    close(h.fd);
}

static void write_run(const char *name, bool faulty, enum lie lie)
{
    char folder[100];
    char path[120];
    struct churn_history h;
    snprintf(folder, sizeof folder, "%s/%s", root, name);
    assert_int_equal(mkdir(folder, 0700), 0);
    assert_true(churn_history_open(&h, folder, "faults"));
    CHURN_WRITE(&h, 'C', SECOND, faulty);
    for (uint32_t n = 12; n < 15; n++)
        write_member(folder, n, faulty ? lie : NONE, faulty, faulty && n == 14);
    if (faulty ? lie != NO_FAULT : lie == OTHER_FAULT)
        CHURN_WRITE(&h, 'F', 14 * SECOND + 9 * SECOND / 10, 15 * SECOND,
                    CHURN_KILL, 14, 0);
    if (faulty) CHURN_WRITE(&h, 'D', 15 * SECOND, 14, SIGKILL, 1);
    if (faulty && lie == BAD_END) CHURN_WRITE(&h, 'D', 15 * SECOND, 13, 9, 0);
    CHURN_WRITE(&h, 'D', 21 * SECOND, 12, 0, 1);
    if (!faulty || lie != NO_WINDOW)
        CHURN_WRITE(&h, 'W', 10 * SECOND, 20 * SECOND,
                    faulty && lie != NO_FAULT ? 1 + (lie == FEWER_FAULTS) : 0);
    close(h.fd);
    snprintf(path, sizeof path, "%s/12.hist", folder);
    struct stat st;
    if (faulty && lie == NO_FILE) assert_int_equal(unlink(path), 0);
    if (faulty && lie == TORN) {
        assert_int_equal(stat(path, &st), 0);
        assert_int_equal(truncate(path, st.st_size - 40), 0);
    }
}

static void remove_run(const char *name)
{
    char folder[100];
    char path[400];
    snprintf(folder, sizeof folder, "%s/%s", root, name);
    DIR *dir = opendir(folder);
    assert_non_null(dir);
    for (const struct dirent *d; (d = readdir(dir));) {
        snprintf(path, sizeof path, "%s/%s", folder, d->d_name);
        if (d->d_name[0] != '.') assert_int_equal(unlink(path), 0);
    }
    closedir(dir);
    assert_int_equal(rmdir(folder), 0);
}

static struct churn_totals totals;

static void judge(enum lie lie, struct ettr_figures *f)
{
    memset(&totals, 0, sizeof totals);
    *f = (struct ettr_figures){.faults = 0};
    snprintf(root, sizeof root, "/tmp/pccl-ettr-test.XXXXXX");
    assert_non_null(mkdtemp(root));
    write_run("faulty", true, lie);
    write_run("faultless", false, lie);
    ettr_check(root, f, &totals);
    remove_run("faulty");
    remove_run("faultless");
    assert_int_equal(rmdir(root), 0);
}

static void tells_the_figures(void **state)
{
    struct ettr_figures f;
    (void)state;
    judge(NONE, &f);
    if (totals.violations) print_error("%s\n", totals.texts[0]);
    assert_int_equal(totals.violations, 0);
    assert_int_equal(f.faults, 1);
    assert_true(fabs(f.seconds - 10) < 1e-9);
    assert_int_equal(f.faultless, 19); /* 0.5 ... 9.5 s */
    assert_int_equal(f.steps, 17);
    assert_int_equal(f.lost.count, 1);
    assert_true(fabs(f.lost.v[0] - 1) < 1e-9);
    free(f.lost.v);
}

static void finds_lies(void **state)
{
    static const struct {
        enum lie lie;
        const char *text;
    } lies[] = {
        {NO_FAULT, "a run without faults"},
        {FEWER_FAULTS, "1 faults, and not 2"},
        {OTHER_FAULT, "faultless: has faults"},
        {NO_END, "faulty/12.hist is truncated"},
        {NO_WINDOW, "faulty/faults.hist is truncated"},
        {TORN, "faulty/12.hist is truncated"},
        {NO_FILE, "faulty: 12.hist is missing"},
        {WRONG_SUM, "faulty/12.hist: the sum"},
        {TWO_SUMS, "faulty: two sums of step 7"},
        {NO_STEP, "faulty: no step"},
        {BAD_END, "faulty: process 13 ended with status 9"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof lies / sizeof lies[0]; i++) {
        struct ettr_figures f;
        bool found = false;
        judge(lies[i].lie, &f);
        for (uint64_t k = 0; k < totals.violations && k < CHURN_KEPT; k++)
            found |= strcmp(totals.texts[k], lies[i].text) == 0;
        if (!found) print_error("not found: %s\n", lies[i].text);
        assert_true(found);
        free(f.lost.v);
    }
}

static void an_evicted_member_may_have_had_a_sum(void **state)
{
    struct ettr_figures f;
    (void)state;
    judge(EVICTED, &f);
    assert_int_equal(totals.violations, 0);
    free(f.lost.v);
}

static void needs_histories(void **state)
{
    struct ettr_figures f = {.faults = 0};
    (void)state;
    memset(&totals, 0, sizeof totals);
    ettr_check("/nowhere", &f, &totals);
    assert_true(totals.violations > 0);
    free(f.lost.v);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(tells_the_figures),
        cmocka_unit_test(finds_lies),
        cmocka_unit_test(an_evicted_member_may_have_had_a_sum),
        cmocka_unit_test(needs_histories),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
