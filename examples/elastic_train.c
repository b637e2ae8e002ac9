/* elastic_train.c - train_text.c that also takes in new processes.
 *
 *     pccl-master -n 4 --elastic elastic_train FILE
 *     pccl-master --join HOST:PORT -n 2 elastic_train FILE     (any time later)
 *
 * What it adds to train_text.c is share_state() and admit_newcomers().
 *
 * Who calls what when newcomers come: they wait in MPI_Init until the members
 * call PCCL_Update_topology; both calls return at the same point, with the
 * same world. So the next thing that either does must be the same, and it is:
 * share_state(), after which all are at the top of the loop with equal step,
 * weights and momentum. The oldest member is always rank 0, so what is shared
 * is what the members have. When the job begins it is the start weights. */
#include "train_args.h"

#include <mpi.h>
#include <mpi_pccl.h>
#include <stdio.h>

/* One broadcast, not three: it happens for everybody or for nobody, so a
 * newcomer never has half a state, even if rank 0 dies in the middle. */
static void share_state(struct model *model)
{
    MPI_Bcast(model->state, (int)model->state_size, MPI_BYTE, 0,
              MPI_COMM_WORLD);
}

static void admit_newcomers(struct model *model)
{
    int pending = 0; /* the same on every rank */
    PCCL_Are_peers_pending(MPI_COMM_WORLD, &pending);
    if (!pending) return;
    PCCL_Update_topology(MPI_COMM_WORLD);
    share_state(model);
}

static float train(const struct train_args *args, const struct text *text,
                   struct model *model, int first_rank)
{
    float loss = 0;
    double start = MPI_Wtime();
    while (model->state->step < args->steps) {
        int rank, world;
        MPI_Comm_rank(MPI_COMM_WORLD, &rank);
        MPI_Comm_size(MPI_COMM_WORLD, &world);
        train_die(args, first_rank, model->state->step);

        model_gradient(model, text, args->batch, rank, world);
        MPI_Allreduce(MPI_IN_PLACE, model->sums, (int)model->sums_count,
                      MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
        loss = model_update(model);

        MPI_Comm_rank(MPI_COMM_WORLD, &rank);
        MPI_Comm_size(MPI_COMM_WORLD, &world);
        train_report(rank, world, model->state->step, loss,
                     MPI_Wtime() - start);
        admit_newcomers(model);
    }
    return loss;
}

int main(int argc, char **argv)
{
    struct train_args args;
    struct text text;
    struct model model;
    if (!train_args_parse(&args, argc, argv)) return 2;
    if (!text_load(&text, args.path)) return 1;
    if (!model_create(&model, (size_t)args.hidden)) {
        fprintf(stderr, "out of memory\n");
        return 1;
    }
    MPI_Init(&argc, &argv);
    share_state(&model);
    int rank, world;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &world);
    train_begin(rank, world, &model);

    float loss = train(&args, &text, &model, rank);

    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &world);
    train_done(rank, world, loss, &model);
    model_free(&model);
    text_free(&text);
    MPI_Finalize();
    return 0;
}
