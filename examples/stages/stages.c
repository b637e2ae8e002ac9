/* stages.c - a transformer whose layers are spread over stages.
 *
 *   pccl-master -n 5 --elastic stages --stages 2 FILE
 *   pccl-master --join HOST:PORT -n 1 stages --stages 2 FILE
 *   stages --alone --stages 2 FILE
 *
 * The first ranks (--trainers) lead micro-batches through the stages; the
 * others are the workers of the stages, in turn. README.md explains it. */
#include "stage_run.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static void report(const struct stage_run *run, const struct stage_tally *t)
{
    uint64_t ids[SEATS_MOST];
    const size_t trainers = stage_run_list(run, TRAINER, ids);
    if (trainers == 0 || run->own != ids[0]) return;
    printf("step %" PRId64 " members %zu workers %zu trainers %zu loss %.6f "
           "seconds %.3f moved %.0f for %.0f tokens\n",
           run->step, run->seat_count, run->seat_count - trainers, trainers,
           t->loss / run->args.batch, now() - run->begin, run->tally.moved,
           run->tally.tokens);
}

/* All tries of a step, until every stage has all samples. */
static void one_step(struct stage_run *run)
{
    bool anew = true;
    for (;;) {
        struct stage_tally tally = {0};
        if (run->role == TRAINER) {
            stage_route_step(run, anew, &tally);
        } else {
            tally.incomplete = !stage_work_serve(run);
            stage_work_tell(run, &tally);
        }
        stage_run_agree(run, &tally);
        run->tally.moved += tally.moved;
        run->tally.tokens += tally.tokens;
        anew = stage_run_sit_closer(run);
        if (tally.incomplete == 0) {
            if (run->role != TRAINER) stage_work_update(run);
            run->step++;
            report(run, &tally);
            return;
        }
        if (anew && run->role != TRAINER) stage_work_forget(run);
        uint64_t ids[SEATS_MOST];
        for (int s = TRAINER; s < run->args.stages; s++) {
            if (stage_run_list(run, s, ids) > 0) continue;
            if (s != TRAINER)
                stage_fail("stage %d has no worker left: its weights are gone",
                           s);
            return; /* the step begins again with the next trainer */
        }
    }
}

static void train(struct stage_run *run)
{
    stage_run_begin(run);
    while (run->step < run->args.steps) {
        if (!stage_run_sit(run)) continue;
        if (!(run->begin > 0)) run->begin = now();
        one_step(run);
    }
    stage_run_end(run);
}

/* ------------------------------------------------------------ one process */

struct alone {
    struct stage_run *run;
    struct stage_part parts[STAGES_MOST];
    float *in[STAGES_MOST + 1], *gradient[STAGES_MOST];
};

/* Without a subspace the model is computed as a whole: another way to the same
 * numbers. */
static double alone_batch(struct alone *a, const unsigned char *const *texts,
                          size_t n, bool trains)
{
    struct gpt *gpt = &a->run->gpt;
    const int last = a->run->args.stages - 1;
    if (a->run->args.subspace == 0)
        return trains ? gpt_gradient(gpt, texts, n) : gpt_loss(gpt, texts, n);
    for (int s = 0; s < last; s++)
        stage_part_forward(&a->parts[s], texts, n, a->in[s], a->in[s + 1]);
    if (!trains) return stage_part_loss(&a->parts[last], texts, n, a->in[last]);
    double loss = stage_part_finish(&a->parts[last], texts, n, a->in[last],
                                    last ? a->gradient[last - 1] : NULL);
    for (int s = last - 1; s >= 0; s--)
        stage_part_backward(&a->parts[s], texts, n, a->in[s], a->gradient[s],
                            s ? a->gradient[s - 1] : NULL);
    return loss;
}

static double alone_loss(struct alone *a, bool trains)
{
    const struct stage_run *run = a->run;
    const struct stage_args *args = &run->args;
    const unsigned char *texts[MICRO_MOST];
    const int count = trains ? args->batch : args->held;
    double loss = 0;
    size_t n = 0;
    for (int i = 0; i < count; i++) {
        texts[n++] = trains ? gpt_text_sample(&run->text, (uint64_t)args->seed,
                                              run->step, i)
                            : gpt_text_held(&run->text, i, args->held);
        if (n < (size_t)args->micro && i + 1 < count) continue;
        loss += alone_batch(a, texts, n, trains);
        n = 0;
    }
    return loss / count;
}

static void alone_update(struct alone *a)
{
    for (int s = 0; s < a->run->args.stages; s++) {
        struct stage_part *part = &a->parts[s];
        float *mean = stage_allocate(part->count, sizeof *mean);
        stage_part_pack(part, mean);
        for (size_t i = 0; i < part->count; i++)
            mean[i] /= (float)a->run->args.batch;
        stage_check(a->run, stage_part_update(part, mean), "the update");
        free(mean);
    }
    stage_part_clear(&a->parts[0]);
}

static void train_alone(struct stage_run *run)
{
    const struct stage_args *args = &run->args;
    const struct gpt_shape shape = {(size_t)args->layers, (size_t)args->heads,
                                    (size_t)args->width, (size_t)args->context};
    struct alone a = {.run = run};
    const size_t numbers = (size_t)args->micro * shape.context * shape.width;
    if (!gpt_text_load(&run->text, args->path, shape.context)) exit(1);
    if (!gpt_create(&run->gpt, shape, (size_t)args->micro,
                    (uint64_t)args->seed))
        stage_fail("out of memory");
    for (int s = 0; s < args->stages; s++) {
        a.in[s] = stage_allocate(numbers, sizeof(float));
        a.gradient[s] = stage_allocate(numbers, sizeof(float));
        if (!stage_part_create(&a.parts[s], &run->gpt, (size_t)args->stages,
                               (size_t)s, (size_t)args->subspace,
                               (uint64_t)args->seed, args->rate))
            stage_fail("out of memory");
    }
    while (run->step < args->steps) {
        if (run->step % args->every == 0 && args->held > 0)
            printf("held %d loss %.6f\n", (int)run->step,
                   alone_loss(&a, false));
        const double loss = alone_loss(&a, true);
        alone_update(&a);
        run->step++;
        printf("step %" PRId64 " loss %.6f\n", run->step, loss);
    }
    for (int s = 0; s < args->stages; s++) {
        stage_part_free(&a.parts[s]);
        free(a.in[s]);
        free(a.gradient[s]);
    }
    gpt_free(&run->gpt);
    gpt_text_free(&run->text);
}

int main(int argc, char **argv)
{
    static struct stage_run run;
    if (!stage_args_parse(&run.args, argc, argv)) return 2;
    if (run.args.alone)
        train_alone(&run);
    else
        train(&run);
    return 0;
}
