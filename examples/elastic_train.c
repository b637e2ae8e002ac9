/* elastic_train.c - train_text.c that also admits new processes.
 *
 *     pccl-master -n 4 --elastic elastic_train FILE
 *     pccl-master --join HOST:PORT -n 2 elastic_train FILE     (while it runs)
 *
 *     pccl-master -n 4 --elastic --restart 5 elastic_train --checkpoint DIR
 * FILE
 *
 * It adds to train_text.c a list of the shared state and two calls at the top
 * of the loop. The third line also goes on when all ranks have died.
 *
 * Order of calls for newcomers: they wait in MPI_Init until the members call
 * PCCL_Update_topology; both calls return at the same point, with the same
 * world. So both must continue with the same call: share_state(). A newcomer
 * receives weights, momentum and step there, from all members at once. Other
 * members receive nothing if their state is equal; otherwise the program prints
 * a line.
 *
 * A lone survivor has no mean of several to apply. It discards the step, and
 * waits for company: with --min-ranks 2 of pccl-master in PCCL_Update_topology,
 * else it tries again until somebody has joined. */
#include "train_args.h"

#include <mpi.h>
#include <mpi_pccl.h>
#include <stdio.h>

static PCCL_Shared_state *list_state(struct model *model)
{
    PCCL_Shared_state *state;
    MPI_Count count = (MPI_Count)model->count;
    PCCL_State_create(&state);
    PCCL_State_add(state, "step", &model->state->step, 1, MPI_INT64_T);
    PCCL_State_add(state, "weights", model->weights, count, MPI_FLOAT);
    PCCL_State_add(state, "momentum", model->momentum, count, MPI_FLOAT);
    return state;
}

/* Returns the number of bytes that this process received. */
static long long share_state(PCCL_Shared_state *state)
{
    MPI_Count received = 0;
    PCCL_Sync_shared_state(MPI_COMM_WORLD, state, PCCL_SYNC_POPULAR, &received);
    return (long long)received;
}

static void admit_newcomers(void)
{
    int pending = 0; /* the same on every rank */
    PCCL_Are_peers_pending(MPI_COMM_WORLD, &pending);
    if (pending) PCCL_Update_topology(MPI_COMM_WORLD);
}

/* What the newest checkpoint has, if there is one. */
static void resume(const struct train_args *args, PCCL_Shared_state *state,
                   const struct model *model)
{
    int found = 0;
    if (!args->checkpoint) return;
    PCCL_Load_state(MPI_COMM_WORLD, state, args->checkpoint, NULL, &found);
    if (!found) return;
    int rank;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    printf("rank %d: resumes after step %lld\n", rank,
           (long long)model->state->step);
}

/* A failure does not end the training: the library prints it. */
static void save(const struct train_args *args, const PCCL_Shared_state *state,
                 int64_t step)
{
    if (args->checkpoint && step % args->save_every == 0)
        (void)PCCL_Save_state(MPI_COMM_WORLD, state, args->checkpoint, 0);
}

static float train(const struct train_args *args, const struct text *text,
                   struct model *model, PCCL_Shared_state *state,
                   int first_rank)
{
    float loss = 0;
    bool accompanied = false;
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
        accompanied |= before > 1;
        bool alone = accompanied && world == 1;
        if (alone && before > 1)
            printf("rank %d: alone in step %lld: discards it\n", rank,
                   (long long)model->state->step);
        if (!alone) {
            loss = model_update(model);
            train_report(rank, world, model->state->step, loss,
                         MPI_Wtime() - start);
        }
        admit_newcomers();
        long long lacked = share_state(state);
        if (lacked > 0)
            printf("rank %d: lacked %lld bytes after step %lld\n", rank, lacked,
                   (long long)model->state->step);
        save(args, state, model->state->step);
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
    PCCL_Shared_state *state = list_state(&model);
    resume(&args, state, &model);
    long long lacked = share_state(state);
    int rank, world;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &world);
    printf("rank %d: received %lld bytes at the start\n", rank, lacked);
    train_begin(rank, world, &model);

    float loss = train(&args, &text, &model, state, rank);

    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &world);
    train_done(rank, world, loss, &model);
    PCCL_State_free(&state);
    model_free(&model);
    text_free(&text);
    MPI_Finalize();
    return 0;
}
