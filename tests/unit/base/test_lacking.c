/* test_lacking.c - tests that what cannot be made is named, with the limit that
 * is in the way. Links with --wrap=getrlimit. */
#include "../unit.h"

#include "../../../src/base/lacking.h"

#include <sys/resource.h>

int __real_getrlimit(__rlimit_resource_t resource, struct rlimit *limit);
int __wrap_getrlimit(__rlimit_resource_t resource, struct rlimit *limit);

static rlim_t processes, memory = RLIM_INFINITY;

int __wrap_getrlimit(__rlimit_resource_t resource, struct rlimit *limit)
{
    if (resource == RLIMIT_NOFILE) return __real_getrlimit(resource, limit);
    limit->rlim_max = RLIM_INFINITY;
    limit->rlim_cur = resource == RLIMIT_NPROC ? processes : memory;
    return 0;
}

static void expect(enum lacking lacking, const char *text)
{
    char found[256];
    lacking_text(found, sizeof found, "it", lacking);
    assert_string_equal(found, text);
}

static void test_limits(void **state)
{
    (void)state;
    processes = 17;
    expect(LACKING_MEMORY, "out of memory or descriptors");
    expect(LACKING_THREAD, "no thread for it (ulimit -u, which is 17 here, or "
                           "the control group)");
    expect(LACKING_PROCESS, "no process for it (ulimit -u, which is 17 here, "
                            "or the control group)");
    processes = RLIM_INFINITY;
    expect(LACKING_THREAD, "out of memory or descriptors");
    expect(LACKING_PROCESS, "no process for it (the control group)");
    memory = 4096;
    expect(LACKING_THREAD, "no memory for it (ulimit -v, which is 4 KiB here)");
    expect(LACKING_PROCESS, "no process for it (the control group)");
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_limits)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
