/* test_bench.c - pccl-bench: its command line, its check of results, and that
 * a short run of each mode prints what it should. */
#include "../run/launch/run.h"
#include "../../src/bench/bench.h"
#include "../../src/bench/bench_data.h"

#include <stdlib.h>
#include <string.h>

static bool parse(const char *text, struct bench_options *o, char error[256])
{
    static char copy[256];
    char *argv[16] = {(char *)(uintptr_t) "pccl-bench"};
    int argc = 1;
    bool help;
    snprintf(copy, sizeof copy, "%s", text);
    for (char *w = strtok(copy, " "); w; w = strtok(NULL, " "))
        argv[argc++] = w;
    error[0] = '\0';
    return bench_parse(o, argc, argv, &help, error, 256);
}

static void test_command_line(void **state)
{
    (void)state;
    static const struct {
        const char *line, *error;
    } cases[] = {
        {"--nonsense", "unknown option '--nonsense'"},
        {"--sizes", "--sizes needs a value"},
        {"--sizes 8,x", "--sizes: 'x' is no list of sizes"},
        {"--sizes 8x", "--sizes: '8x' is no list of sizes"},
        {"--sizes -8", "'-8' is no list of sizes"},
        {"--sizes 999999999999999G", "is no list of sizes"},
        {"--op allreduce,nothing", "--op: 'nothing' is none of"},
        {"--op ,", "',' is no list of operations"},
        {"--types float,quad", "--types: 'quad' is none of"},
        {"--redop median", "--redop: 'median' is none of"},
        {"--transport pigeon", "--transport: 'pigeon' is none of"},
        {"--in-place --op bcast", "--in-place is for allreduce"},
        {"--quantize u8", "--quantize: 'u8' is none of u8-minmax"},
        {"--quantize u8-zps --op bcast", "--quantize is for allreduce"},
        {"--concurrent 0", "--concurrent needs a number from 1 to 256"},
        {"--pool 3x", "not '3x'"},
        {"--seconds 0", "--seconds needs a number above 0, not '0'"},
        {"recovery --ranks 1", "recovery takes at least 2 ranks"},
        {"nothing", "'nothing' is none of recovery, join, sync, latency"},
        {"--json more", "what is 'more' for?"},
    };
    struct bench_options o;
    char error[256];
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        assert_false(parse(cases[i].line, &o, error));
        assert_has(error, cases[i].error);
    }
    assert_true(parse("", &o, error));
    assert_true(o.check && !o.in_place && o.ranks == 2);
    assert_true(parse("recovery --stop --rounds 7", &o, error));
    assert_int_equal(o.ranks, 3);
    assert_int_equal(o.rounds, 7);
    assert_true(parse("--no-check --in-place --transport shm", &o, error));
    assert_true(!o.check && o.in_place);
    assert_string_equal(o.transport, "shm");
    assert_true(parse("--quantize i16-zps", &o, error));
    assert_int_equal(o.quantize.quantized_datatype, pcclInt16);
    assert_int_equal(o.quantize.algorithm, pcclQuantZeroPointScale);
    assert_false(o.check);
}

static void test_lists(void **state)
{
    (void)state;
    const char *text = "8,64K,3M,1G,0";
    const size_t want[] = {8, 64 << 10, 3 << 20, 1 << 30, 0};
    size_t size;
    for (size_t i = 0; i < 5; i++) {
        assert_true(bench_size(&text, &size));
        assert_int_equal(size, want[i]);
    }
    assert_false(bench_size(&text, &size));
    double times[] = {5, 1, 4, 2, 3};
    assert_true(bench_quantile(times, 5, 0.5) == 3);
    assert_true(bench_quantile(times, 5, 0) == 1);
    assert_true(bench_quantile(times, 5, 0.99) == 5);
}

/* Reduces in the plainest way what bench_fill() gave all ranks. */
static void add_floats(const struct bench_vector *v, float *sum)
{
    float *one = malloc(v->count * sizeof *one);
    assert_non_null(one);
    memset(sum, 0, v->count * sizeof *sum);
    for (int r = 0; r < v->ranks; r++) {
        struct bench_vector mine = *v;
        mine.rank = r;
        bench_fill(&mine, one);
        for (size_t i = 0; i < v->count; i++) sum[i] += one[i];
    }
    free(one);
}

static void test_wrong_elements_are_counted(void **state)
{
    (void)state;
    enum { COUNT = 10007 };
    struct bench_vector v = {.op = BENCH_ALLREDUCE,
                             .type = pcclFloat,
                             .redop = pcclSum,
                             .ranks = 5,
                             .count = COUNT,
                             .variant = 3};
    static float sum[COUNT];
    add_floats(&v, sum);
    assert_int_equal(bench_wrong(&v, sum), 0);
    sum[0] += 1;
    sum[7000] = 0.5f;
    sum[COUNT - 1] -= 1;
    assert_int_equal(bench_wrong(&v, sum), 3);
    /* The same bytes one element on are wrong nearly everywhere. */
    add_floats(&v, sum);
    memmove(sum, sum + 1, sizeof sum - sizeof sum[0]);
    assert_true(bench_wrong(&v, sum) > COUNT / 2);
}

static void test_blocks_know_their_places(void **state)
{
    (void)state;
    enum { RANKS = 3, BLOCK = 100 };
    uint16_t to[RANKS * BLOCK];
    uint16_t from[RANKS * BLOCK];
    struct bench_vector v = {.type = pcclUint16,
                             .redop = pcclSum,
                             .ranks = RANKS,
                             .count = RANKS * BLOCK};
    for (int k = 0; k < 2; k++) {
        v.op = k == 0 ? BENCH_ALLGATHER : BENCH_ALLTOALL;
        for (int r = 0; r < RANKS; r++) {
            struct bench_vector mine = v;
            mine.rank = r;
            if (v.op == BENCH_ALLGATHER) mine.count = BLOCK;
            bench_fill(&mine, from);
            const uint16_t *part = from + (v.op == BENCH_ALLTOALL ? BLOCK : 0);
            memcpy(to + r * BLOCK, part, BLOCK * sizeof *to);
        }
        v.rank = 1;
        assert_int_equal(bench_wrong(&v, to), 0);
        memcpy(to, to + BLOCK, BLOCK * sizeof *to);
        assert_true(bench_wrong(&v, to) > 0);
    }
}

/* ---------------------------------------------------------------- processes */

static void test_every_operation_and_type(void **state)
{
    (void)state;
    struct run run;
    RUN(&run, "-n", "3", run_helper, "--op",
        "allreduce,bcast,allgather,alltoall,barrier", "--sizes", "0,40K",
        "--types",
        "uint8,int8,uint16,int16,uint32,int32,uint64,int64,float16,"
        "bfloat16,float,double",
        "--seconds", "0.001", "--json");
    run_finish(&run);
    assert_int_equal(run.status, 0);
    assert_int_equal(count_lines(run.output), 4 * 12 * 2 + 1);
    assert_has(run.output, "\"op\":\"alltoall\",\"ranks\":3,\"size\":40959,");
    assert_has(run.output, "\"type\":\"bfloat16\",\"redop\":\"sum\"");
    assert_has_not(run.output, "\"wrong\":1");
    assert_has(run.output, "\"wrong\":0}");
    run_free(&run);
}

static void test_reductions(void **state)
{
    (void)state;
    static const char *const names[] = {"prod", "max", "min", "avg"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        struct run run;
        RUN(&run, "-n", "3", run_helper, "--redop", names[i], "--sizes", "999",
            "--types", "uint8,float16,bfloat16,float,double,int64", "--seconds",
            "0.001", "--concurrent", "5", "--in-place");
        run_finish(&run);
        assert_string_equal(run.errors, "");
        assert_int_equal(run.status, 0);
        static const char *const columns[] = {
            "#op",    "size", "count", "type",  "redop", "min",
            "median", "p99",  "algbw", "busbw", "#wrong"};
        for (size_t k = 0; k < sizeof columns / sizeof columns[0]; k++)
            assert_has(run.output, columns[k]);
        assert_has(run.output, names[i]);
        run_free(&run);
    }
}

static void test_ranks_of_its_own(void **state)
{
    (void)state;
    const char *master = run_master;
    struct run run;
    run_master = run_helper;
    RUN(&run, "--ranks", "2", "--sizes", "4K", "--seconds", "0.001", "--op",
        "sync,barrier", "--rounds", "2");
    run_finish(&run);
    assert_int_equal(run.status, 0);
    assert_has(run.output, "newcomer");
    assert_has(run.output, "# 2 ranks");
    run_free(&run);
    RUN(&run, "latency", "--ranks", "2", "--seconds", "0.001", "--json");
    run_finish(&run);
    assert_int_equal(run.status, 0);
    static const char *const calls[] = {"update", "pending", "launch", "await"};
    for (size_t i = 0; i < sizeof calls / sizeof calls[0]; i++) {
        char call[80];
        snprintf(call, sizeof call, "\"call\":\"%s\",\"before\":\"idle\"",
                 calls[i]);
        assert_has(run.output, call);
    }
    run_free(&run);
    RUN(&run, "recovery", "--ranks", "3", "--rounds", "1", "--sizes", "64K",
        "--json");
    run_finish(&run);
    assert_int_equal(run.status, 0);
    static const char *const parts[] = {"detect", "agree", "reconnect", "redo",
                                        "kill to next result"};
    for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++) {
        char part[80];
        snprintf(part, sizeof part,
                 "\"part\":\"%s\",\"rounds\":1,\"p50_ms\":", parts[i]);
        assert_has(run.output, part);
    }
    assert_has(run.output, "\"p99_ms\":");
    run_free(&run);
    RUN(&run, "join", "--ranks", "2", "--rounds", "1", "--sizes", "64K");
    run_finish(&run);
    run_master = master;
    assert_int_equal(run.status, 0);
    assert_has(run.output, "connect to first result");
    run_free(&run);
}

int main(int argc, char **argv)
{
    run_arguments(argc, argv);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_command_line),
        cmocka_unit_test(test_lists),
        cmocka_unit_test(test_wrong_elements_are_counted),
        cmocka_unit_test(test_blocks_know_their_places),
        cmocka_unit_test(test_every_operation_and_type),
        cmocka_unit_test(test_reductions),
        cmocka_unit_test(test_ranks_of_its_own),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
