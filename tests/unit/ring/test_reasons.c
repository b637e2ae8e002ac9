/* test_reasons.c - each row of the tables and each limit has a reason and a
 * measurement, which tests/bench/NOTES.md has, and docs/tuning.md lists the
 * limits: test_reasons NOTES.md TUNING.md. */
#include "../unit.h"

#include "../../../src/ring/algorithm_table.h"

#include <stdio.h>
#include <stdlib.h>

static char *notes, *tuning;

static char *read_text(const char *path)
{
    enum { ROOM = 1 << 20 };
    FILE *file = fopen(path, "r");
    if (!file) fail_msg("%s cannot be read", path);
    char *text = malloc(ROOM);
    size_t size = text ? fread(text, 1, ROOM - 1, file) : 0;
    assert_true(size > 0 && size < ROOM - 1);
    text[size] = '\0';
    fclose(file);
    return text;
}

static void check(const char *name, const char *why, const char *measured)
{
    char row[80];
    if (!why || *why == '\0') fail_msg("%s has no reason", name);
    if (!measured) return;
    snprintf(row, sizeof row, "**%s**", measured);
    if (!strstr(notes, row)) fail_msg("%s: NOTES.md has no %s", name, row);
}

static void test_rows(void **state)
{
    (void)state;
    const struct choice *c;
    const struct detour *d;
    uint32_t i = 0;
    for (; (c = algorithm_row(i)) != NULL; i++)
        check(c->algorithm->name, c->why, c->measured);
    assert_true(i > 0);
    for (i = 0; (d = choose_row(i)) != NULL; i++)
        check("a row of choose.c", d->why, d->measured);
    assert_true(i > 0);
}

static void check_listed(const struct limit *l)
{
    char row[300];
    bool large = l->value % 1024 == 0 && strcmp(l->unit, "bytes") == 0;
    bool mega = large && l->value % (1 << 20) == 0;
    snprintf(row, sizeof row, "\n| `%s` | %d %s | %s |\n", l->name,
             (int)(l->value >> (mega    ? 20
                                : large ? 10
                                        : 0)),
             mega    ? "MiB"
             : large ? "KiB"
                     : l->unit,
             l->decides);
    if (!strstr(tuning, row)) fail_msg("tuning.md has no row:%s", row);
}

static void test_limits(void **state)
{
    (void)state;
    const struct limit *l, *other;
    uint32_t count = 0, rows = 0;
    for (; (l = limit_by_number(count)) != NULL; count++) {
        assert_non_null(l->measured);
        check(l->name, l->why, l->measured);
        check_listed(l);
        for (uint32_t i = 0; i < count; i++) {
            other = limit_by_number(i);
            assert_string_not_equal(l->name, other->name);
            assert_string_not_equal(l->decides, other->decides);
        }
    }
    assert_true(count > 0);
    const char *at = strstr(tuning, "| limit | ");
    const char *end = at ? strstr(at, "\n\n") : NULL;
    assert_non_null(end);
    while ((at = strstr(at, "\n| `")) != NULL && at < end) at++, rows++;
    assert_int_equal(rows, count);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_rows),
                                       cmocka_unit_test(test_limits)};
    if (argc != 3) return 1;
    notes = read_text(argv[1]);
    tuning = read_text(argv[2]);
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    free(notes);
    free(tuning);
    return failed;
}
