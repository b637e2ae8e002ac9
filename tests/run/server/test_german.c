/* test_german.c - PCCL_DEADLINE=2.5 (from german.sh) in a program that has set
 * its user's locale, a German one: the C library reads and prints a comma then,
 * and this one a point. A coordinator and a member read it too, and would warn
 * in the log that german.sh looks at. */
#include "../../../src/base/env.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <locale.h>
#include <pccl.h>
#include <stdlib.h>

static int set_locale(void **state)
{
    (void)state;
    return setlocale(LC_ALL, "") ? 0 : -1;
}

static void locale_is_german(void **state)
{
    (void)state;
    char *end;
    assert_string_equal(localeconv()->decimal_point, ",");
    (void)strtod("2.5", &end);
    assert_string_equal(end, ".5");
}

static void warn(const char *text)
{
    fail_msg("'%s' is not understood", text);
}

static void variable(void **state)
{
    (void)state;
    assert_int_equal(env_seconds_ns("PCCL_DEADLINE", warn), 2500000000);
}

static void member(void **state)
{
    (void)state;
    pcclCommCreateParams_t params = {0};
    pcclMasterInstance_t *master;
    pcclComm_t *comm;
    ccoip_socket_address_t *at = &params.master_address;
    assert_int_equal(pcclInit(), pcclSuccess);
    assert_int_equal(pcclParseAddress("127.0.0.1", 0, at), pcclSuccess);
    assert_int_equal(pcclCreateMaster(*at, &master), pcclSuccess);
    assert_int_equal(pcclRunMaster(master), pcclSuccess);
    assert_int_equal(pcclGetMasterPort(master, &at->port), pcclSuccess);
    assert_int_equal(pcclCreateCommunicator(&params, &comm), pcclSuccess);
    assert_int_equal(pcclConnect(comm), pcclSuccess);
    assert_int_equal(pcclDestroyCommunicator(comm), pcclSuccess);
    assert_int_equal(pcclDestroyMaster(master), pcclSuccess);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(locale_is_german),
        cmocka_unit_test(variable),
        cmocka_unit_test(member),
    };
    return cmocka_run_group_tests_name("base/german", tests, set_locale, NULL);
}
