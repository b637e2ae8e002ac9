/* unequal.c - members of different speeds make each step together: a step ends
 * when the group has enough samples of it, whoever made them, and a gradient
 * counts by its samples. A step takes target / (sum of all speeds), and nobody
 * waits for the slowest member.
 *
 *   pccl-master -n 3 unequal --speeds 1,1,8 --target 90 --steps 20
 *
 * The member launched as rank i makes the i-th number of samples (the last one
 * for those beyond) per --unit microseconds. It fits a line to points that each
 * member draws for itself. --die RANK:STEP kills a member; a lone survivor
 * discards its steps until a newcomer has come (with --min-ranks 2 of
 * pccl-master it waits for one). */
#include <pccl_loop.h>

#include <inttypes.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { WEIGHTS = 2 };

struct run {
    pcclComm_t *comm;
    pcclLoop_t loop;
    double speed; /* samples per unit */
    double unit;  /* seconds */
    uint64_t target, steps;
    int64_t die_rank, die_step; /* who kills itself, and when; -2: nobody */
    uint64_t step;              /* shared, like the weights */
    float w[WEIGHTS];
    uint64_t random, made; /* of this member */
};

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

/* In [-1, 1). */
static float draw(struct run *r)
{
    r->random = r->random * 6364136223846793005u + 1442695040888963407u;
    return (float)(r->random >> 40) / (float)(1 << 23) - 1;
}

/* One sample: a point of y = 3 x - 1, with noise. It takes the time that the
 * member's speed says; a real one would compute. */
static void train_one(struct run *r, float *gradient)
{
    double took = r->unit / r->speed;
    struct timespec t = {.tv_sec = (time_t)took,
                         .tv_nsec = (long)(fmod(took, 1) * 1e9)};
    float x = draw(r), y = 3 * x - 1 + draw(r) / 10;
    float error = r->w[0] * x + r->w[1] - y;
    gradient[0] += error * x;
    gradient[1] += error;
    r->made++;
    (void)nanosleep(&t, NULL);
}

/* Until the group has the samples of the step: its gradient, and how many it
 * made of them. */
static pcclResult_t accumulate(struct run *r, float *gradient,
                               uint64_t *samples)
{
    pcclResult_t rc;
    pcclProgress_t p = {.size = sizeof p};
    *samples = 0;
    gradient[0] = gradient[1] = 0;
    do {
        train_one(r, gradient);
        rc = pcclReportProgress(r->comm, r->step, ++*samples, r->target);
        if (rc == pcclSuccess) rc = pcclGetProgress(r->comm, &p);
    } while (rc == pcclSuccess && !p.reached);
    for (int i = 0; i < WEIGHTS; i++) gradient[i] /= (float)*samples;
    /* Without a coordinator nobody counts; the collective tells the rest. */
    return rc == pcclMasterConnectionFailed ? pcclSuccess : rc;
}

static pcclResult_t run_step(struct run *r, int launched)
{
    float gradient[WEIGHTS + 1];
    uint64_t samples;
    double began = now();
    pcclResult_t rc = pcclLoopBegin(&r->loop);
    if (launched == r->die_rank && (int64_t)r->step == r->die_step)
        (void)raise(SIGKILL);
    if (rc == pcclSuccess) rc = accumulate(r, gradient, &samples);
    if (rc == pcclSuccess)
        rc = pcclLoopMean(&r->loop, gradient, WEIGHTS, (float)samples);
    if (rc == pcclTooFewPeers) return pcclSuccess; /* the step is discarded */
    if (rc != pcclSuccess) return rc;
    for (int i = 0; i < WEIGHTS; i++) r->w[i] -= gradient[i] / 2;
    int rank = 0;
    (void)pcclGetAttribute(r->comm, PCCL_ATTRIBUTE_RANK, &rank);
    if (rank == 0)
        printf("step %" PRIu64 ": %.0f samples of %u members in %.3f s, "
               "y = %.3f x %+.3f\n",
               r->step, (double)gradient[WEIGHTS], r->loop.members,
               now() - began, (double)r->w[0], (double)r->w[1]);
    r->step++;
    return pcclSuccess;
}

static double nth_speed(const char *list, int n)
{
    while (n-- > 0 && strchr(list, ',')) list = strchr(list, ',') + 1;
    return strtod(list, NULL);
}

static void parse(struct run *r, int argc, char **argv, const char **speeds)
{
    for (int i = 1; i + 1 < argc; i += 2) {
        if (strcmp(argv[i], "--speeds") == 0) *speeds = argv[i + 1];
        if (strcmp(argv[i], "--target") == 0)
            r->target = strtoull(argv[i + 1], NULL, 10);
        if (strcmp(argv[i], "--steps") == 0)
            r->steps = strtoull(argv[i + 1], NULL, 10);
        const char *step = strchr(argv[i + 1], ':');
        if (strcmp(argv[i], "--die") == 0 && step) {
            r->die_rank = strtoll(argv[i + 1], NULL, 10);
            r->die_step = strtoll(step + 1, NULL, 10);
        }
        if (strcmp(argv[i], "--unit") == 0)
            r->unit = strtod(argv[i + 1], NULL) / 1e6;
    }
}

int main(int argc, char **argv)
{
    struct run r = {.unit = 0.01, .target = 90, .steps = 20, .die_rank = -2};
    const char *speeds = "1,1,8";
    char why[256] = "";
    int launched = 0;
    parse(&r, argc, argv, &speeds);
    pcclTensorInfo_t infos[] = {
        {"w", r.w, WEIGHTS, pcclFloat, pcclDeviceCpu, false},
        {"step", &r.step, 1, pcclUint64, pcclDeviceCpu, false}};
    pcclSharedState_t state = {.count = 2, .infos = infos};
    pcclResult_t rc = pcclInit();
    if (!rc) rc = pcclConnectFromEnv(NULL, &r.comm);
    if (!rc)
        rc = pcclGetAttribute(r.comm, PCCL_ATTRIBUTE_LAUNCH_RANK, &launched);
    r.speed = nth_speed(speeds, launched);
    if (r.speed <= 0 || r.target == 0) {
        fprintf(stderr, "unequal: speeds and the target are above 0\n");
        return 2;
    }
    r.random = (uint64_t)launched + 1;
    r.loop = (pcclLoop_t){.comm = r.comm, .state = &state};
    double began = now();
    while (!rc && r.step < r.steps) rc = run_step(&r, launched);
    if (!rc)
        printf("launched as %d: %" PRIu64 " samples, %.1f a second; y = %a x "
               "%+a\n",
               launched, r.made, (double)r.made / (now() - began),
               (double)r.w[0], (double)r.w[1]);
    if (r.comm) (void)pcclGetLastError(r.comm, why, sizeof why);
    if (rc) fprintf(stderr, "unequal: %s %s\n", pcclGetErrorString(rc), why);
    if (r.comm) (void)pcclDestroyCommunicator(r.comm);
    return rc != pcclSuccess;
}
