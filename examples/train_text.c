/* train_text.c - a plain MPI program that trains a small language model.
 *
 * Data-parallel SGD: every process computes its part of the batch, the
 * gradients are summed, and all processes take the same step. It uses only MPI
 * and builds with the mpicc of any MPI:
 *
 *     mpicc -O3 -o train_text train_text.c train_args.c text_model.c -lm
 *
 * It also survives the loss of processes: it queries rank and size in every
 * step, and it divides by the summed number of samples, not by an assumed one.
 * `pccl-master --elastic=force` says that it does. */
#include "train_args.h"

#include <mpi.h>
#include <stdio.h>

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

        /* the world may have shrunk in the call above */
        int before = world;
        MPI_Comm_rank(MPI_COMM_WORLD, &rank);
        MPI_Comm_size(MPI_COMM_WORLD, &world);
        if (before > 1 && world == 1) {
            printf("rank %d: alone in step %lld, which it discards; nobody can "
                   "join this program, so it ends\n",
                   rank, (long long)model->state->step);
            break;
        }
        loss = model_update(model);
        train_report(rank, world, model->state->step, loss,
                     MPI_Wtime() - start);
    }
    return loss;
}

int main(int argc, char **argv)
{
    struct train_args args;
    struct text text;
    struct model model;
    if (!train_args_parse(&args, argc, argv)) return 2;
    if (args.checkpoint) {
        fprintf(stderr, "checkpoints are in elastic_train\n");
        return 2;
    }
    if (!text_load(&text, args.path)) return 1;
    if (!model_create(&model, (size_t)args.hidden)) {
        fprintf(stderr, "out of memory\n");
        return 1;
    }
    MPI_Init(&argc, &argv);
    int rank, world;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &world);
    train_begin(rank, world, &model);
    MPI_Bcast(model.weights, (int)model.count, MPI_FLOAT, 0, MPI_COMM_WORLD);

    float loss = train(&args, &text, &model, rank);

    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &world);
    train_done(rank, world, loss, &model);
    bool missing = model.state->step < args.steps;
    model_free(&model);
    text_free(&text);
    MPI_Finalize();
    return missing;
}
