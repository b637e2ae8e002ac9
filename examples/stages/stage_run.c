/* stage_run.c - see stage_run.h. */
#include "stage_run.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { TAG_SEATS = 1, TAG_TALLY = 2 };

_Noreturn void stage_fail(const char *format, ...)
{
    va_list args;
    va_start(args, format);
    fputs("stages: ", stderr);
    vfprintf(stderr, format, args);
    fputs("\n", stderr);
    va_end(args);
    exit(1);
}

void stage_check(const struct stage_run *run, pcclResult_t result,
                 const char *what)
{
    if (result == pcclSuccess) return;
    char detail[256] = "";
    (void)pcclTrainGetLastError(detail, sizeof detail);
    if (!*detail && run->comm)
        (void)pcclGetLastError(run->comm, detail, sizeof detail);
    stage_fail("%s: %s%s%s", what, pcclGetErrorString(result),
               *detail ? ": " : "", detail);
}

void *stage_allocate(size_t count, size_t size)
{
    void *memory = calloc(count ? count : 1, size);
    if (!memory) stage_fail("out of memory");
    return memory;
}

/* ---------------------------------------------------- beginning and end */

static void rest(long milliseconds)
{
    (void)nanosleep(
        &(struct timespec){milliseconds / 1000, milliseconds % 1000 * 1000000},
        NULL);
}

/* The master may start later than its members: see --patience. */
static void join(struct stage_run *run)
{
    pcclResult_t rc = pcclInit();
    if (!rc) rc = pcclConnectFromEnv(NULL, &run->comm);
    for (int i = 0;
         rc == pcclMasterConnectionFailed && i < 10 * run->args.patience; i++) {
        rest(100);
        (void)pcclDestroyCommunicator(run->comm);
        run->comm = NULL;
        rc = pcclConnectFromEnv(NULL, &run->comm);
    }
    stage_check(run, rc, "joining the run");
    stage_check(
        run,
        pcclGetAttribute(run->comm, PCCL_ATTRIBUTE_LAUNCH_RANK, &run->launched),
        "joining the run");
}

/* What it needs to be what it is. */
static void prepare(struct stage_run *run)
{
    const struct stage_args *args = &run->args;
    const struct gpt_shape shape = {(size_t)args->layers, (size_t)args->heads,
                                    (size_t)args->width, (size_t)args->context};
    if (run->role == TRAINER) {
        if (!gpt_text_load(&run->text, args->path, shape.context)) exit(1);
        stage_route_begin(run);
        return;
    }
    if (!gpt_create(&run->gpt, shape, (size_t)args->micro,
                    (uint64_t)args->seed) ||
        !stage_part_create(&run->part, &run->gpt, (size_t)args->stages,
                           (size_t)run->role, (size_t)args->subspace,
                           (uint64_t)args->seed, args->rate))
        stage_fail("out of memory");
    stage_work_begin(run);
}

void stage_run_begin(struct stage_run *run)
{
    const struct stage_args *args = &run->args;
    join(run);
    run->role = args->role;
    if (run->role == UNDECIDED && run->launched >= 0)
        run->role = run->launched < args->trainers
                        ? TRAINER
                        : (run->launched - args->trainers) % args->stages;
    if (run->role != UNDECIDED) prepare(run);
    run->info = (pcclTensorInfo_t){
        .name = "step", .data = &run->step, .count = 1, .datatype = pcclInt64};
    run->state = (pcclSharedState_t){.count = 1, .infos = &run->info};
    run->loop = (pcclLoop_t){.comm = run->comm, .state = &run->state};
    setvbuf(stdout, NULL, _IOLBF, 0);
}

/* FNV-1a of the trained weights: equal on all workers of a stage. */
static uint64_t digest(const struct stage_part *part)
{
    uint64_t sum = 14695981039346656037u;
    for (size_t i = 0; i < part->tensor_count; i++) {
        const unsigned char *at = (const unsigned char *)part->weights[i];
        const size_t count = part->tensors[i].rows * part->tensors[i].columns;
        for (size_t n = 0; n < count * sizeof(float); n++)
            sum = (sum ^ at[n]) * 1099511628211u;
    }
    return sum;
}

void stage_run_end(struct stage_run *run)
{
    if (run->role == TRAINER) {
        printf("trainer: done, step %" PRId64 "\n", run->step);
        stage_route_end(run);
        gpt_text_free(&run->text);
    } else {
        printf("worker of stage %d: done, step %" PRId64 ", weights %016" PRIx64
               "\n",
               run->role, run->step, digest(&run->part));
        stage_work_end(run);
    }
    stage_check(run, pcclDestroyCommunicator(run->comm), "leaving the run");
    if (run->role == TRAINER) return;
    stage_part_free(&run->part);
    gpt_free(&run->gpt);
}

/* --------------------------------------------------------------- members */

size_t stage_run_list(const struct stage_run *run, int stage, uint64_t *ids)
{
    size_t count = 0;
    for (size_t i = 0; i < run->seat_count; i++)
        if (run->seats[i].stage == stage) ids[count++] = run->seats[i].id;
    return count;
}

static int look(struct stage_run *run, pcclMember_t *members)
{
    int rank = 0, size = 0;
    stage_check(run,
                pcclGetView(run->comm, NULL, &rank, &size, members, SEATS_MOST),
                "pcclGetView");
    if (size > SEATS_MOST)
        stage_fail("%d members are more than %d", size, SEATS_MOST);
    run->own = members[rank].id;
    return size;
}

/* Newcomers that are nothing yet become what is missing: a trainer if there is
 * none, else a worker of the stage with the fewest. */
static void assign(struct stage_run *run)
{
    uint64_t ids[SEATS_MOST];
    for (size_t i = 0; i < run->seat_count; i++) {
        struct seat *s = &run->seats[i];
        int best = TRAINER;
        size_t least = stage_run_list(run, TRAINER, ids);
        if (s->stage != UNDECIDED) continue;
        const bool trains = least == 0;
        for (int stage = 0; !trains && stage < run->args.stages; stage++) {
            const size_t count = stage_run_list(run, stage, ids);
            if (best != TRAINER && count >= least) continue;
            best = stage;
            least = count;
        }
        s->stage = best;
        if (s->id != run->own) continue;
        run->role = best;
        prepare(run);
    }
}

/* Everybody says who it is. */
static void gather(struct stage_run *run)
{
    pcclMember_t members[SEATS_MOST];
    pcclResult_t rc;
    do {
        const int size = look(run, members);
        struct seat mine = {run->own, run->role, run->ready};
        pcclCollective_t all = {.size = sizeof all,
                                .kind = pcclKindAllGather,
                                .tag = TAG_SEATS,
                                .sendbuf = &mine,
                                .recvbuf = run->seats,
                                .count = sizeof mine};
        run->seat_count = (size_t)size;
        rc = pcclCollective(&all, run->comm, NULL);
    } while (rc == pcclRankConnectionLost);
    stage_check(run, rc, "taking seats");
    (void)stage_run_sit_closer(run); /* who was lost after the gathering */
    assign(run);
}

bool stage_run_sit_closer(struct stage_run *run)
{
    pcclMember_t members[SEATS_MOST];
    const int size = look(run, members);
    bool trainer = false;
    size_t kept = 0;
    for (size_t i = 0; i < run->seat_count; i++) {
        bool there = false;
        for (int n = 0; n < size; n++)
            there = there || members[n].id == run->seats[i].id;
        if (there)
            run->seats[kept++] = run->seats[i];
        else
            trainer = trainer || run->seats[i].stage == TRAINER;
    }
    run->seat_count = kept;
    return trainer;
}

/* The newcomers of a stage get its state from the first worker that has it. */
static void hand_over(struct stage_run *run, int stage)
{
    uint64_t giver = 0;
    for (size_t i = 0; i < run->seat_count; i++) {
        const struct seat *s = &run->seats[i];
        if (s->stage == stage && s->ready && !giver) giver = s->id;
    }
    for (size_t i = 0; i < run->seat_count; i++) {
        struct seat *s = &run->seats[i];
        if (s->stage != stage || s->ready) continue;
        if (giver && run->own == giver) stage_work_give(run, s->id);
        if (giver && run->own == s->id) stage_work_get(run, giver);
        s->ready = 1;
    }
}

/* Fewer workers than --min asks for at this step. */
static bool is_short(const struct stage_run *run)
{
    uint64_t ids[SEATS_MOST];
    const size_t trainers = stage_run_list(run, TRAINER, ids);
    return run->step >= run->args.min_step &&
           run->seat_count - trainers < (size_t)run->args.min;
}

bool stage_run_sit(struct stage_run *run)
{
    uint64_t ids[SEATS_MOST];
    stage_check(run, pcclLoopBegin(&run->loop), "admitting newcomers");
    gather(run);
    for (int stage = TRAINER; stage < run->args.stages; stage++) {
        bool ready = stage == TRAINER || run->step == 0;
        for (size_t i = 0; i < run->seat_count; i++)
            ready =
                ready || (run->seats[i].stage == stage && run->seats[i].ready);
        if (!ready)
            stage_fail("stage %d has no worker left: its weights are gone",
                       stage);
        if (stage_run_list(run, stage, ids) > 0) continue;
        rest(20); /* a trainer, or at first a worker, is still to come */
        return false;
    }
    for (int stage = 0; stage < run->args.stages; stage++)
        hand_over(run, stage);
    run->ready = true;
    if (is_short(run)) rest(20);
    return !is_short(run);
}

void stage_run_agree(struct stage_run *run, struct stage_tally *mine)
{
    const pcclReduceDescriptor_t sum = {.count = sizeof *mine / sizeof(double),
                                        .op = pcclSum,
                                        .tag = TAG_TALLY,
                                        .src_descriptor.datatype = pcclDouble};
    struct stage_tally all;
    pcclResult_t rc;
    do rc = pcclAllReduce(mine, &all, &sum, run->comm, NULL);
    while (rc == pcclRankConnectionLost);
    stage_check(run, rc, "agreeing on the step");
    *mine = all;
}
