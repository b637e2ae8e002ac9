/* test_decimal.c - numbers in options and environment variables, under a locale
 * whose decimal point is a comma. */
#include "../../../src/base/decimal.h"
#include "../../../src/base/env.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

/* What a German locale makes of the C library's function, in a machine that has
 * none: it ends at the point. The library under test finds this one. */
double strtod(const char *text, char **end)
{
    double value = 0;
    for (; *text >= '0' && *text <= '9'; text++)
        value = value * 10 + (*text - '0');
    if (end) *end = (char *)(size_t)text;
    return value;
}

static void parses(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        double value;
    } good[] = {{"3", 3},        {"2.5", 2.5},   {".5", .5},    {"7.", 7},
                {"1e3", 1000},   {"25E-1", 2.5}, {"1e+2", 100}, {"0", 0},
                {"0.001", .001}, {"1e-999", 0}};
    static const char *const bad[] = {"",    ".",   "x",    "-1",  "+1", "1,5",
                                      "1e",  "1e+", "2.5s", "0x1", " 1", "1 ",
                                      "nan", "inf", "1..2", "e5"};
    for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
        double value = -1;
        if (!decimal_parse(good[i].text, &value) || value != good[i].value)
            fail_msg("%s is %f", good[i].text, value);
    }
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        double value = -1;
        if (decimal_parse(bad[i], &value) || value != -1)
            fail_msg("'%s' is %f", bad[i], value);
    }
    double huge;
    assert_true(decimal_parse("1e999", &huge) && huge > 1e300);
}

static int warnings;

static void warn(const char *text)
{
    (void)text;
    warnings++;
}

static void environment(void **state)
{
    (void)state;
    setenv("PCCL_DEADLINE", "2.5", 1);
    assert_int_equal(env_seconds_ns("PCCL_DEADLINE", warn), 2500000000);
    setenv("PCCL_MASTER_PATIENCE", ".25", 1);
    assert_int_equal(env_seconds_ns("PCCL_MASTER_PATIENCE", warn), 250000000);
    assert_int_equal(warnings, 0);
    setenv("PCCL_DEADLINE", "2,5", 1);
    assert_int_equal(env_seconds_ns("PCCL_DEADLINE", warn), 0);
    setenv("PCCL_DEADLINE", "1e999", 1);
    assert_int_equal(env_seconds_ns("PCCL_DEADLINE", warn), 0);
    assert_int_equal(warnings, 2);
}

static void ranks(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        int32_t rank;
    } cases[] = {{"0", 0},   {"17", 17},  {"2147483647", 2147483647},
                 {"", -1},   {"-1", -1},  {"2147483648", -1},
                 {"1x", -1}, {"1.5", -1}, {" 1", -1}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        setenv("PCCL_RANK", cases[i].text, 1);
        assert_int_equal(env_rank(), cases[i].rank);
    }
    unsetenv("PCCL_RANK");
    assert_int_equal(env_rank(), -1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(parses),
        cmocka_unit_test(environment),
        cmocka_unit_test(ranks),
    };
    return cmocka_run_group_tests_name("base/decimal", tests, NULL, NULL);
}
