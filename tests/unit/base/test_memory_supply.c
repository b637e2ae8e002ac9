/* test_memory_supply.c - tests what this host and its control groups say of the
 * memory that is left, from files in place of theirs. */
#include "../unit.h"

#include "../../../src/base/memory_supply.h"

#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static char root[] = "/tmp/pccl_supply_XXXXXX";

/* With the folders above it. */
static void put(const char *name, const char *text)
{
    char path[256];
    int size = snprintf(path, sizeof path, "%s/%s", root, name);
    assert_in_range(size, 1, (int)sizeof path - 1);
    for (char *at = path + strlen(root) + 1; (at = strchr(at, '/')); at++) {
        *at = '\0';
        (void)mkdir(path, 0700);
        *at = '/';
    }
    FILE *out = fopen(path, "we");
    assert_non_null(out);
    assert_true(fputs(text, out) >= 0);
    assert_int_equal(fclose(out), 0);
}

static int begin(void **state)
{
    (void)state;
    (void)snprintf(root, sizeof root, "%s", "/tmp/pccl_supply_XXXXXX");
    return mkdtemp(root) ? 0 : -1;
}

static int take_away(const char *path, const struct stat *st, int kind,
                     struct FTW *at)
{
    (void)st;
    (void)kind;
    (void)at;
    return remove(path);
}

static int end(void **state)
{
    (void)state;
    return nftw(root, take_away, 8, FTW_DEPTH | FTW_PHYS);
}

static void put_host(void)
{
    put("proc/meminfo", "MemTotal:       9000 kB\nMemFree:        100 kB\n"
                        "MemAvailable:   4000 kB\nSwapFree:       1000 kB\n");
}

static void test_nothing_is_known(void **state)
{
    (void)state;
    assert_true(memory_supply(root) == UINT64_MAX);
    assert_false(memory_is_counted(root));
    put("proc/meminfo", "nothing\n");
    put("proc/self/cgroup", "0::/a\n1:memory:\nbad\n");
    assert_true(memory_supply(root) == UINT64_MAX);
}

static void test_the_host(void **state)
{
    (void)state;
    put_host();
    assert_true(memory_supply(root) == 5000 * 1024);
    put("proc/self/cgroup", "0::/\n");
    put("sys/fs/cgroup/memory.max", "max\n");
    assert_true(memory_supply(root) == 5000 * 1024);
    put("proc/sys/vm/overcommit_memory", "0\n");
    assert_false(memory_is_counted(root));
    put("proc/sys/vm/overcommit_memory", "2\n");
    assert_true(memory_is_counted(root));
}

/* A group has no more than the one above it; what files take can be dropped. */
static void test_groups(void **state)
{
    (void)state;
    put_host();
    put("proc/self/cgroup", "3:cpu:/x\n0::/a/b\n");
    put("sys/fs/cgroup/a/b/memory.max", "3000000\n");
    put("sys/fs/cgroup/a/b/memory.current", "1000000\n");
    assert_true(memory_supply(root) == 2000000 + 1000 * 1024);
    put("sys/fs/cgroup/a/memory.max", "2000000\n");
    put("sys/fs/cgroup/a/memory.current", "1500000\n");
    assert_true(memory_supply(root) == 500000 + 1000 * 1024);
    put("sys/fs/cgroup/a/memory.stat",
        "anon 7\ninactive_file 3000\nactive_file 200\n");
    assert_true(memory_supply(root) == 503200 + 1000 * 1024);
    put("sys/fs/cgroup/a/memory.current", "9500000\n");
    assert_true(memory_supply(root) == 3200 + 1000 * 1024);
}

/* The names of the first version; its limit is a large number where there is
 * none. The folder of the group may not be seen in a container. */
static void test_groups_of_the_first_version(void **state)
{
    (void)state;
    put_host();
    put("proc/self/cgroup", "4:memory:/hidden\n0::/\n");
    put("sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n");
    put("sys/fs/cgroup/memory/memory.usage_in_bytes", "100\n");
    assert_true(memory_supply(root) == 5000 * 1024);
    put("sys/fs/cgroup/memory/memory.limit_in_bytes", "1000100\n");
    assert_true(memory_supply(root) == 1000000 + 1000 * 1024);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_nothing_is_known, begin, end),
        cmocka_unit_test_setup_teardown(test_the_host, begin, end),
        cmocka_unit_test_setup_teardown(test_groups, begin, end),
        cmocka_unit_test_setup_teardown(test_groups_of_the_first_version, begin,
                                        end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
