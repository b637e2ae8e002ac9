/* test_drain.c - a process learns by PCCL_DRAIN_SIGNAL that it is to leave. */
#include <pccl.h>

#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>

#include <cmocka.h>

static volatile sig_atomic_t handled;

static void on_signal(int number)
{
    handled = number;
}

static void test_request(void **state)
{
    (void)state;
    bool requested = true;
    setenv("PCCL_DRAIN_SIGNAL", "SIGUSR2", 1);
    signal(SIGUSR2, on_signal);
    assert_int_equal(pcclInit(), pcclSuccess);
    assert_int_equal(pcclDrainRequested(NULL), pcclInvalidArgument);
    assert_int_equal(pcclDrainRequested(&requested), pcclSuccess);
    assert_false(requested);
    raise(SIGUSR2);
    assert_int_equal(handled, SIGUSR2); /* the program's handler runs, too */
    assert_int_equal(pcclDrainRequested(&requested), pcclSuccess);
    assert_true(requested);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_request)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
