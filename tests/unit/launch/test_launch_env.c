/* test_launch_env.c - tests of a rank's environment and of the table of
 * variables. */
#include "../../../src/base/env.h"
#include "../../../src/launch/rank_env.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define TEXT(literal) (char *)(uintptr_t)(literal)

static char *const inherited[] = {
    TEXT("HOME=/root"),           TEXT("PMI_FD=9"),
    TEXT("PMIX_RANK=4"),          TEXT("PMI_PORT=h:1"),
    TEXT("PCCL_RANK=7"),          TEXT("PCCL_MASTER=old:1"),
    TEXT("PCCL_JOIN=1"),          TEXT("RANK=9"),
    TEXT("WORLD_SIZE=9"),         TEXT("OVERRIDDEN=a"),
    TEXT("LD_LIBRARY_PATH=/old"), NULL};

static struct app app = {.ranks = 4};

static char **build(struct options *options, const char *library_path,
                    bool newcomer)
{
    options->apps = &app;
    struct rank_env facts = {.inherited = inherited,
                             .options = options,
                             .app = &app,
                             .master = "127.0.0.1:5",
                             .library_path = library_path,
                             .index = 3,
                             .local = 1,
                             .local_count = 2,
                             .newcomer = newcomer};
    return rank_env_build(&facts);
}

static void assert_env(char *const *env, const char *name, const char *value)
{
    const char *got = rank_env_get(env, name);
    if (got == NULL && value == NULL) return;
    if (got == NULL || value == NULL || strcmp(got, value) != 0)
        fail_msg("%s is %s, not %s", name, got ? got : "unset",
                 value ? value : "unset");
}

static void test_all(void **state)
{
    (void)state;
    struct options options = {.rank_count = 4, .universe = "9"};
    char **env = build(&options, "/ours", false);
    assert_env(env, "PMI_APPNUM", "0");
    assert_env(env, "PMI_UNIVERSE_SIZE", "9");
    static const char *const ranks[] = {"PCCL_RANK", "PMI_RANK",
                                        "PMI_ID",    "OMPI_COMM_WORLD_RANK",
                                        "RANK",      "MV2_COMM_WORLD_RANK"};
    static const char *const local_ranks[] = {"MPI_LOCALRANKID",
                                              "OMPI_COMM_WORLD_LOCAL_RANK",
                                              "OMPI_COMM_WORLD_NODE_RANK",
                                              "MV2_COMM_WORLD_LOCAL_RANK",
                                              "LOCAL_RANK",
                                              "PMI_LOCAL_RANK"};
    static const char *const sizes[] = {"PCCL_WORLD_SIZE", "PMI_SIZE",
                                        "OMPI_COMM_WORLD_SIZE", "WORLD_SIZE",
                                        "MV2_COMM_WORLD_SIZE"};
    static const char *const local_sizes[] = {
        "MPI_LOCALNRANKS", "OMPI_COMM_WORLD_LOCAL_SIZE", "PMI_LOCAL_SIZE",
        "LOCAL_WORLD_SIZE"};
    for (size_t i = 0; i < ARRAY_COUNT(local_ranks); i++)
        assert_env(env, local_ranks[i], "1");
    for (size_t i = 0; i < ARRAY_COUNT(local_sizes); i++)
        assert_env(env, local_sizes[i], "2");
    for (size_t i = 0; i < ARRAY_COUNT(ranks); i++)
        assert_env(env, ranks[i], "3");
    for (size_t i = 0; i < ARRAY_COUNT(sizes); i++)
        assert_env(env, sizes[i], "4");
    assert_env(env, "HOME", "/root");
    assert_env(env, "PCCL_MASTER", "127.0.0.1:5");
    assert_env(env, "PCCL_ON_FAILURE", "abort");
    assert_env(env, "LD_LIBRARY_PATH", "/ours:/old");
    assert_env(env, "PMI_FD", NULL);
    assert_env(env, "PMI_PORT", NULL);
    assert_env(env, "PMIX_RANK", NULL);
    assert_env(env, "PCCL_JOIN", NULL);
    assert_env(env, "PCCL_RESTART", "0");
    assert_env(env, "PCCL_DEADLINE", NULL);
    rank_env_free(env);
}

static void test_newcomers(void **state)
{
    (void)state;
    struct options join = {.rank_count = 4,
                           .join = true,
                           .elastic = true,
                           .shrink = true,
                           .deadline = "1.5"};
    char **env = build(&join, NULL, true);
    static const char *const unset[] = {"PCCL_RANK",
                                        "PCCL_WORLD_SIZE",
                                        "RANK",
                                        "WORLD_SIZE",
                                        "PMI_RANK",
                                        "PMI_SIZE",
                                        "PMI_ID",
                                        "OMPI_COMM_WORLD_RANK",
                                        "OMPI_COMM_WORLD_SIZE"};
    for (size_t i = 0; i < ARRAY_COUNT(unset); i++)
        assert_env(env, unset[i], NULL);
    assert_env(env, "PCCL_JOIN", "1");
    assert_env(env, "PMI_UNIVERSE_SIZE", NULL);
    assert_env(env, "LOCAL_RANK", "1");
    assert_env(env, "MPI_LOCALNRANKS", "2");
    assert_env(env, "PCCL_ON_FAILURE", "shrink");
    assert_env(env, "PCCL_DEADLINE", "1.5");
    assert_env(env, "LD_LIBRARY_PATH", "/old");
    rank_env_free(env);

    struct options respawn = {.rank_count = 4, .elastic = true};
    env = build(&respawn, NULL, true);
    assert_env(env, "PCCL_JOIN", "1");
    assert_env(env, "PCCL_RANK", NULL);
    assert_env(env, "PCCL_ON_FAILURE", "return");
    rank_env_free(env);
}

static void test_settings(void **state)
{
    (void)state;
    char *global[] = {TEXT("OVERRIDDEN=b"), TEXT("PCCL_ON_FAILURE=return")};
    char *local[] = {TEXT("OVERRIDDEN=c"), TEXT("LD_LIBRARY_PATH=")};
    struct options options = {.rank_count = 4,
                              .settings = {global, ARRAY_COUNT(global)}};
    app.settings = (struct env_list){local, ARRAY_COUNT(local)};
    char **env = build(&options, "/ours", false);
    assert_env(env, "OVERRIDDEN", "c");
    assert_env(env, "PCCL_ON_FAILURE", "return");
    assert_env(env, "LD_LIBRARY_PATH", "/ours");
    rank_env_free(env);
    app.settings.count = 0;
}

/* -genvnone, -genvlist and variables of a single program. */
static void test_filters(void **state)
{
    (void)state;
    struct options options = {.rank_count = 4, .pass = ""};
    char **env = build(&options, NULL, false);
    assert_env(env, "OVERRIDDEN", NULL);
    assert_env(env, "HOME", "/root");
    assert_env(env, "PCCL_MASTER", "127.0.0.1:5");
    rank_env_free(env);
    options.pass = "OTHER,OVERRIDDEN";
    env = build(&options, NULL, false);
    assert_env(env, "OVERRIDDEN", "a");
    assert_env(env, "LD_LIBRARY_PATH", NULL);
    rank_env_free(env);
    app.pass = ENV_ALL;
    env = build(&options, NULL, false);
    assert_env(env, "LD_LIBRARY_PATH", "/old");
    rank_env_free(env);
    app.pass = NULL;
}

static int warned;

static void on_unknown(const char *name)
{
    assert_string_equal(name, "PCCL_MASTRE");
    warned++;
}

static void test_unknown(void **state)
{
    (void)state;
    setenv("PCCL_MASTER", "x", 1);
    setenv("PCCL_JOIN", "1", 1);
    setenv("PCCL", "not ours", 1);
    env_warn_unknown(on_unknown);
    assert_int_equal(warned, 0);
    setenv("PCCL_MASTRE", "x", 1);
    env_warn_unknown(on_unknown);
    assert_int_equal(warned, 1);
    assert_true(env_is_known("PCCL_DEADLINE=3"));
    assert_false(env_is_known("PCCL_DEADLIN"));
    assert_false(env_is_known("PCCL_DEADLINES"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_all),      cmocka_unit_test(test_newcomers),
        cmocka_unit_test(test_settings), cmocka_unit_test(test_filters),
        cmocka_unit_test(test_unknown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
