/* test_train_local.c - the calls of pccl_train.h that do not communicate:
 * optimizers against their formulas in double, clipping, lists of state, and
 * what wrong arguments get. */
#include "pccl_train.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>
#include <fenv.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { COUNT = 7 * 5 + 3 };

static const pcclTrainTensor_t two[] = {{"matrix", 7, 5}, {"bias", 1, 3}};

static const pcclOptimizerOptions_t adam = {.size = sizeof adam,
                                            .kind = pcclOptimizerAdamW,
                                            .rate = 0.01F,
                                            .momentum = 0.9F,
                                            .beta2 = 0.99F,
                                            .epsilon = 1e-8F,
                                            .decay = 0.1F};
static const pcclOptimizerOptions_t nesterov = {.size = sizeof nesterov,
                                                .kind = pcclOptimizerNesterov,
                                                .rate = 0.1F,
                                                .momentum = 0.9F};
static const pcclDilocoOptions_t diloco = {
    .size = sizeof diloco, .rate = 0.7F, .momentum = 0.9F, .stat_count = 2};
static const pcclPowerSgdOptions_t sgd = {
    .size = sizeof sgd, .rank = 1, .seed = 1};

static float gradient(int step, int i)
{
    return (float)((step * 37 + i * 11) % 19 - 9) / 9;
}

/* The text must have the word. */
static void refused(pcclResult_t got, pcclResult_t want, const char *word)
{
    char text[256];
    assert_int_equal(got, want);
    assert_int_equal(pcclTrainGetLastError(text, sizeof text), pcclSuccess);
    if (!strstr(text, word)) fail_msg("'%s' is not in '%s'", word, text);
}

/* -------------------------------------------------------------- optimizers */

static void in_double(double *w, double *m, double *v, int step, int i,
                      const pcclOptimizerOptions_t *o)
{
    const double g = (double)gradient(step, i), rate = (double)o->rate;
    const double b1 = (double)o->momentum, b2 = (double)o->beta2;
    if (o->kind == pcclOptimizerNesterov) {
        *m = b1 * *m + g;
        *w -= rate * (g + b1 * *m);
        return;
    }
    *m = b1 * *m + (1 - b1) * g;
    *v = b2 * *v + (1 - b2) * g * g;
    double first = *m / (1 - pow(b1, step + 1));
    double second = *v / (1 - pow(b2, step + 1));
    *w -= rate *
          (first / (sqrt(second) + (double)o->epsilon) + (double)o->decay * *w);
}

static void check_optimizer(const pcclOptimizerOptions_t *options)
{
    static double w[COUNT], m[COUNT], v[COUNT];
    float weights[COUNT], gradients[COUNT];
    float *const at[] = {weights, weights + 35};
    const float *const by[] = {gradients, gradients + 35};
    pcclOptimizer_t *o = NULL;
    assert_int_equal(pcclOptimizerCreate(two, 2, options, &o), pcclSuccess);
    for (int i = 0; i < COUNT; i++) {
        w[i] = (double)(weights[i] = (float)i / 10);
        m[i] = v[i] = 0;
    }
    for (int step = 0; step < 50; step++) {
        if (step == 25) fesetround(FE_DOWNWARD); /* makes no difference */
        for (int i = 0; i < COUNT; i++) {
            gradients[i] = gradient(step, i);
            in_double(&w[i], &m[i], &v[i], step, i, options);
        }
        assert_int_equal(pcclOptimizerStep(o, at, by), pcclSuccess);
    }
    fesetround(FE_TONEAREST);
    for (int i = 0; i < COUNT; i++)
        assert_true(fabs(w[i] - (double)weights[i]) < 2e-6 * (1 + fabs(w[i])));
    refused(pcclOptimizerSetRate(o, NAN), pcclInvalidArgument, "rate");
    assert_int_equal(pcclOptimizerSetRate(o, 0), pcclSuccess);
    assert_int_equal(pcclOptimizerStep(o, at, by), pcclSuccess);
    for (int i = 0; i < COUNT; i++)
        assert_true(fabs(w[i] - (double)weights[i]) < 2e-6 * (1 + fabs(w[i])));
    assert_int_equal(pcclOptimizerDestroy(o), pcclSuccess);
}

static void test_optimizers(void **state)
{
    (void)state;
    check_optimizer(&adam);
    check_optimizer(&nesterov);
    assert_int_equal(pcclOptimizerDestroy(NULL), pcclSuccess);
}

/* An optimizer that takes over the state of another one goes on as that. */
static void test_state_is_all(void **state)
{
    (void)state;
    float weights[2][COUNT] = {{0}}, gradients[COUNT];
    pcclTensorInfo_t infos[2][8];
    pcclOptimizer_t *o[2];
    for (int n = 0; n < 2; n++) {
        size_t count = 0;
        assert_int_equal(pcclOptimizerCreate(two, 2, &adam, &o[n]),
                         pcclSuccess);
        assert_int_equal(pcclOptimizerListState(o[n], NULL, 0, &count),
                         pcclSuccess);
        assert_int_equal(count, 7);
        refused(pcclOptimizerListState(o[n], infos[n], 3, &count),
                pcclInvalidArgument, "room for 3 tensors, not 7");
        assert_int_equal(pcclOptimizerListState(o[n], infos[n], 8, &count),
                         pcclSuccess);
    }
    assert_string_equal(infos[0][1].name, "optimizer.first.matrix");
    for (int step = 0; step < 20; step++) {
        for (int i = 0; i < COUNT; i++) gradients[i] = gradient(step, i);
        const float *const by[] = {gradients, gradients + 35};
        for (int n = 0; n < 2; n++) {
            float *const at[] = {weights[n], weights[n] + 35};
            if (n == 0 || step >= 10)
                assert_int_equal(pcclOptimizerStep(o[n], at, by), pcclSuccess);
        }
        if (step != 9) continue;
        memcpy(weights[1], weights[0], sizeof weights[0]);
        for (int i = 0; i < 7; i++) {
            size_t each = infos[0][i].datatype == pcclFloat ? 4 : 8;
            memcpy(infos[1][i].data, infos[0][i].data,
                   infos[0][i].count * each);
        }
    }
    assert_memory_equal(weights[1], weights[0], sizeof weights[0]);
    for (int n = 0; n < 2; n++)
        assert_int_equal(pcclOptimizerDestroy(o[n]), pcclSuccess);
}

/* ---------------------------------------------------------------- clipping */

static void test_clip(void **state)
{
    (void)state;
    float x[COUNT], norm;
    float *const at[] = {x, x + 35};
    for (int i = 0; i < COUNT; i++) x[i] = 0;
    x[3] = 3;
    x[36] = -4;
    assert_int_equal(pcclClip(two, 2, at, 6, &norm), pcclSuccess);
    assert_true(norm == 5 && x[3] == 3 && x[36] == -4);
    assert_int_equal(pcclClipStage(two, 2, at, 4, true, &norm), pcclSuccess);
    assert_true(fabsf(x[3] - 1.5F) < 1e-6F && fabsf(x[36] + 2) < 1e-6F);
    assert_int_equal(pcclClipStage(two, 2, at, 4, false, NULL), pcclSuccess);
    assert_true(fabsf(x[3] - 0.3F) < 1e-6F && fabsf(x[36] + 0.4F) < 1e-6F);
    x[36] = 3e38F; /* its square is no float */
    x[3] = 3e38F;
    assert_int_equal(pcclClip(two, 2, at, 1, NULL), pcclSuccess);
    assert_true(fabsf(x[3] - sqrtf(0.5F)) < 1e-6F);
    x[1] = INFINITY;
    refused(pcclClip(two, 2, at, 1, &norm), pcclOperationFailed, "not finite");
    assert_true(isinf(norm) && fabsf(x[3] - sqrtf(0.5F)) < 1e-6F);
    refused(pcclClip(two, 2, at, 0, NULL), pcclInvalidArgument, "limit");
    refused(pcclClip(two, 0, at, 1, NULL), pcclInvalidArgument, "list");
    refused(pcclClip(two, 2, NULL, 1, NULL), pcclInvalidArgument, "gradients");
    refused(pcclClipStage(two, 2, at, 0, false, NULL), pcclInvalidArgument,
            "stages is 0");
}

/* --------------------------------------------------------- wrong arguments */

static void test_lists(void **state)
{
    (void)state;
    pcclOptimizer_t *o = NULL;
    const pcclTrainTensor_t wrong[][2] = {
        {{"a", 2, 2}, {"a", 1, 3}},
        {{"a", 2, 2}, {NULL, 1, 3}},
        {{"a", 2, 2}, {"", 1, 3}},
        {{"a", 2, 2}, {"b", 0, 3}},
        {{"a", 2, 2}, {"b", SIZE_MAX / 2, 3}},
    };
    static const char *const words[] = {"named 'a'", "no name", "no name",
                                        "no elements: 0 x 3", "too large"};
    for (size_t i = 0; i < 5; i++)
        refused(pcclOptimizerCreate(wrong[i], 2, &adam, &o),
                pcclInvalidArgument, words[i]);
    refused(pcclOptimizerCreate(two, 0, &adam, &o), pcclInvalidArgument,
            "no tensors");
    refused(pcclOptimizerCreate(NULL, 2, &adam, &o), pcclInvalidArgument,
            "tensors is NULL");
    refused(pcclOptimizerCreate(two, 2, NULL, &o), pcclInvalidArgument,
            "options is NULL");
    refused(pcclOptimizerCreate(two, 2, &adam, NULL), pcclInvalidArgument,
            "result is NULL");
    assert_null(o);
    char name[1000], text[1000];
    memset(name, 'n', sizeof name - 1);
    name[sizeof name - 1] = '\0';
    name[1] = '\n';
    const pcclTrainTensor_t twice[] = {{name, 1, 1}, {name, 1, 1}};
    refused(pcclOptimizerCreate(twice, 2, &adam, &o), pcclInvalidArgument, "n");
    assert_int_equal(pcclTrainGetLastError(text, sizeof text), pcclSuccess);
    assert_in_range(strlen(text), 1, 255);
    assert_null(strchr(text, '\n'));
    assert_int_equal(pcclTrainGetLastError(NULL, 5), pcclInvalidArgument);
    char little[4];
    assert_int_equal(pcclTrainGetLastError(little, sizeof little), pcclSuccess);
    assert_int_equal(strlen(little), 3);
}

static void test_optimizer_options(void **state)
{
    (void)state;
    pcclOptimizer_t *o = NULL;
    pcclOptimizerOptions_t wrong[7];
    static const char *const words[] = {"size",    "kind",  "rate", "momentum",
                                        "epsilon", "decay", "name"};
    for (int i = 0; i < 7; i++) wrong[i] = adam;
    wrong[0].size--;
    memset(&wrong[1].kind, 0x7f, sizeof wrong[1].kind);
    wrong[2].rate = -1;
    wrong[3].momentum = 1;
    wrong[4].epsilon = 0;
    wrong[5].decay = INFINITY;
    wrong[6].name = "";
    for (int i = 0; i < 7; i++)
        refused(pcclOptimizerCreate(two, 2, &wrong[i], &o), pcclInvalidArgument,
                words[i]);
    assert_int_equal(pcclOptimizerCreate(two, 2, &adam, &o), pcclSuccess);
    float x[COUNT] = {0};
    float *const holes[] = {x, NULL};
    refused(pcclOptimizerStep(o, holes, (const float *const *)holes),
            pcclInvalidArgument, "tensor 'bias' is NULL");
    refused(pcclOptimizerStep(NULL, holes, (const float *const *)holes),
            pcclInvalidArgument, "optimizer is NULL");
    assert_int_equal(pcclOptimizerDestroy(o), pcclSuccess);
}

static void test_diloco_usage(void **state)
{
    (void)state;
    float x[COUNT] = {0}, stats[2] = {0};
    const float *const at[] = {x, x + 35};
    pcclDiloco_t *d = NULL;
    pcclDilocoOptions_t wrong = diloco;
    wrong.momentum = NAN;
    refused(pcclDilocoCreate(two, 2, at, &wrong, &d), pcclInvalidArgument,
            "momentum");
    refused(pcclDilocoCreate(two, 2, NULL, &diloco, &d), pcclInvalidArgument,
            "NULL");
    assert_int_equal(pcclDilocoCreate(two, 2, at, &diloco, &d), pcclSuccess);
    refused(pcclDilocoLaunch(d, (pcclComm_t *)x), pcclInvalidUsage, "taken");
    refused(pcclDilocoLand(d, NULL), pcclInvalidUsage, "launched");
    refused(pcclDilocoApply(d), pcclInvalidUsage, "landed");
    refused(pcclDilocoTake(d, at, NULL, 1), pcclInvalidArgument, "stats");
    refused(pcclDilocoTake(d, at, stats, -1), pcclInvalidArgument, "weight");
    assert_int_equal(pcclDilocoTake(d, at, stats, 1), pcclSuccess);
    refused(pcclDilocoTake(d, at, stats, 1), pcclInvalidUsage, "not launched");
    refused(pcclDilocoLaunch(d, NULL), pcclInvalidArgument, "comm");
    pcclDilocoProgress_t progress = {.size = 8};
    refused(pcclDilocoGetProgress(d, &progress), pcclInvalidArgument, "size");
    progress.size = sizeof progress;
    assert_int_equal(pcclDilocoGetProgress(d, &progress), pcclSuccess);
    assert_true(progress.begun == 1 && progress.step == 0);
    /* One that is not connected: what was taken is dropped. */
    pcclCommCreateParams_t params = {.peer_group = 1};
    pcclComm_t *comm = NULL;
    assert_int_equal(pcclInit(), pcclSuccess);
    assert_int_equal(pcclCreateCommunicator(&params, &comm), pcclSuccess);
    refused(pcclDilocoLaunch(d, comm), pcclInvalidUsage, "launching the sum");
    float *const own[] = {x, x + 35};
    refused(pcclDilocoStep(d, own, stats, 1, comm, NULL), pcclInvalidUsage,
            "launching the sum");
    assert_int_equal(pcclDilocoGetProgress(d, &progress), pcclSuccess);
    assert_true(progress.begun == 0);
    assert_int_equal(pcclDestroyCommunicator(comm), pcclSuccess);
    assert_int_equal(pcclDilocoDestroy(d), pcclSuccess);
    assert_int_equal(pcclDilocoDestroy(NULL), pcclSuccess);
}

static void test_powersgd_usage(void **state)
{
    (void)state;
    float x[COUNT] = {0}, *error = x;
    float *const at[] = {x, x + 35}, *const holes[] = {NULL, x};
    pcclPowerSgd_t *s = NULL;
    pcclPowerSgdOptions_t wrong = sgd;
    wrong.rank = 0;
    refused(pcclPowerSgdCreate(two, 2, &wrong, &s), pcclInvalidArgument,
            "rank is 0");
    wrong.rank = 6;
    refused(pcclPowerSgdCreate(two, 2, &wrong, &s), pcclInvalidArgument,
            "no tensor has a smaller side above 5");
    assert_int_equal(pcclPowerSgdCreate(two, 2, &sgd, &s), pcclSuccess);
    refused(pcclPowerSgdReduce(s, at, 1, NULL, NULL), pcclInvalidArgument,
            "comm");
    refused(pcclPowerSgdReduce(s, holes, 1, (pcclComm_t *)x, NULL),
            pcclInvalidArgument, "'matrix' is NULL");
    refused(pcclPowerSgdReduce(s, at, NAN, (pcclComm_t *)x, NULL),
            pcclInvalidArgument, "weight");
    refused(pcclPowerSgdGetError(s, 2, &error), pcclInvalidArgument,
            "tensor 2 of 2");
    assert_int_equal(pcclPowerSgdGetError(s, 1, &error), pcclSuccess);
    assert_null(error);
    assert_int_equal(pcclPowerSgdDestroy(s), pcclSuccess);
    assert_int_equal(pcclPowerSgdDestroy(NULL), pcclSuccess);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_optimizers),
        cmocka_unit_test(test_state_is_all),
        cmocka_unit_test(test_clip),
        cmocka_unit_test(test_lists),
        cmocka_unit_test(test_optimizer_options),
        cmocka_unit_test(test_diloco_usage),
        cmocka_unit_test(test_powersgd_usage),
    };
    return cmocka_run_group_tests_name("train/local", tests, NULL, NULL);
}
