/* powersgd.c - gradients of low rank, with error feedback. */
#include "product.h"
#include "train.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* A compressed tensor. P and Q lie in the vectors of the two sums. */
struct low_rank {
    const struct train_tensor *tensor;
    size_t index;  /* of the tensor */
    float *error;  /* E */
    float *backup; /* M, then E' until both sums have succeeded */
    float *q;      /* columns x rank, shared */
    size_t p_at, q_at;
    bool *dropped; /* columns of P that are 0 */
};

enum phase { NOTHING, SUMMING_P, SUMMING_Q };

struct pcclPowerSgd_t {
    struct train_tensors tensors;
    struct train_state state;
    size_t rank;
    uint64_t seed, steps;
    struct low_rank *matrices;
    size_t matrix_count;
    struct product_room *room;
    bool *compressed;      /* of each tensor */
    float *errors, *q_all; /* what the matrices point into */
    size_t q_count;
    bool *dropped;
    /* P of all matrices, weight, faults; Q of all, the other tensors, faults.
     */
    struct train_sum p, q;
    enum phase phase;    /* of a call that was cancelled, or timed out */
    bool idle;           /* this member has the weight 0 in it */
    size_t faulty;       /* the tensor that is not finite here, or none */
    uint64_t options[3]; /* of the digest: tensors, rank, seed */
};

static const size_t none = SIZE_MAX;

/* ----------------------------------------------------------------- creation */

static bool is_compressed(const struct train_tensor *t, size_t rank)
{
    if (t->rows == 1 || t->columns == 1) return false;
    return rank <= t->count / 2 / (t->rows + t->columns);
}

static pcclResult_t check_rank(const struct train_tensors *t, uint32_t rank)
{
    static const char function[] = "pcclPowerSgdCreate";
    if (rank == 0)
        return train_fail(pcclInvalidArgument, "%s: rank is 0", function);
    size_t widest = 0;
    for (size_t i = 0; i < t->count; i++) {
        const struct train_tensor *at = &t->list[i];
        size_t side = at->rows < at->columns ? at->rows : at->columns;
        if (side > widest) widest = side;
    }
    if (widest <= 1 || rank <= widest) return pcclSuccess;
    return train_fail(pcclInvalidArgument,
                      "%s: rank is %u, and no tensor has a smaller side above "
                      "%zu: none can be compressed",
                      function, rank, widest);
}

/* Column `column` of Q from the seed, uniform in [-1, 1). `age` is the number
 * of steps at which it is made. */
static void seed_column(const pcclPowerSgd_t *s, const struct low_rank *m,
                        size_t column, uint64_t age)
{
    uint64_t key = train_mix(s->seed ^ train_mix(m->index ^ train_mix(age)));
    for (size_t j = 0; j < m->tensor->columns; j++) {
        uint64_t bits = train_mix(key + j * s->rank + column) >> 40;
        m->q[j * s->rank + column] = (float)bits / (float)(1 << 23) - 1.0F;
    }
}

static void count_sizes(const pcclPowerSgd_t *s, size_t *errors, size_t *p,
                        size_t *q, size_t *riders)
{
    *errors = *p = *q = *riders = 0;
    for (size_t i = 0; i < s->tensors.count; i++) {
        const struct train_tensor *t = &s->tensors.list[i];
        if (!s->compressed[i]) {
            *riders += t->count;
            continue;
        }
        *errors += t->count;
        *p += t->rows * s->rank;
        *q += t->columns * s->rank;
    }
}

static struct product_room *create_room(const pcclPowerSgd_t *s)
{
    size_t rows = 0;
    for (size_t i = 0; i < s->tensors.count; i++) {
        if (s->compressed[i] && s->tensors.list[i].rows > rows)
            rows = s->tensors.list[i].rows;
    }
    return product_room_create(rows, rows > 0 ? s->rank : 0);
}

static void place(pcclPowerSgd_t *s, size_t errors)
{
    size_t error_at = 0, p_at = 0, q_at = 0, count = 0;
    for (size_t i = 0; i < s->tensors.count; i++) {
        if (!s->compressed[i]) continue;
        const struct train_tensor *t = &s->tensors.list[i];
        struct low_rank *m = &s->matrices[count];
        *m = (struct low_rank){.tensor = t,
                               .index = i,
                               .error = s->errors + error_at,
                               .backup = s->errors + errors + error_at,
                               .q = s->q_all + q_at,
                               .p_at = p_at,
                               .q_at = q_at,
                               .dropped = s->dropped + count * s->rank};
        for (size_t c = 0; c < s->rank; c++) seed_column(s, m, c, 0);
        error_at += t->count;
        p_at += t->rows * s->rank;
        q_at += t->columns * s->rank;
        count++;
    }
}

static bool list_state(pcclPowerSgd_t *s, const char *owner)
{
    if (!train_state_add(&s->state, owner, "steps", NULL, &s->steps, 1,
                         pcclUint64))
        return false;
    for (size_t i = 0; i < s->matrix_count; i++) {
        const struct low_rank *m = &s->matrices[i];
        if (!train_state_add(&s->state, owner, "q", m->tensor->name, m->q,
                             m->tensor->columns * s->rank, pcclFloat))
            return false;
    }
    return true;
}

static bool prepare_sum(pcclPowerSgd_t *s, struct train_sum *sum, size_t count,
                        uint64_t tag)
{
    static const char *const names[] = {"list of tensors", "rank", "seed"};
    sum->count = sum->exact = count;
    sum->tag = tag;
    for (size_t i = 0; i < 3; i++) {
        sum->arguments[i] = (pcclArgument_t){
            .name = names[i], .values = &s->options[i], .value_count = 1};
    }
    sum->arguments[3] =
        (pcclArgument_t){.name = "step", .values = &s->steps, .value_count = 1};
    sum->argument_count = 4;
    sum->send = train_vector(count);
    sum->recv = train_vector(count);
    return sum->send && sum->recv;
}

static pcclResult_t prepare(pcclPowerSgd_t *s,
                            const pcclPowerSgdOptions_t *options)
{
    size_t count = s->tensors.count, errors, p, riders;
    s->compressed = calloc(count, sizeof *s->compressed);
    if (!s->compressed) return train_no_memory();
    for (size_t i = 0; i < count; i++) {
        s->compressed[i] = is_compressed(&s->tensors.list[i], s->rank);
        s->matrix_count += s->compressed[i];
    }
    count_sizes(s, &errors, &p, &s->q_count, &riders);
    s->matrices = calloc(s->matrix_count + 1, sizeof *s->matrices);
    s->errors = train_vector(2 * errors);
    s->q_all = train_vector(s->q_count);
    s->room = create_room(s);
    s->dropped = calloc(s->matrix_count * s->rank + 1, sizeof *s->dropped);
    s->options[0] = s->tensors.digest;
    s->options[1] = s->rank;
    s->options[2] = s->seed;
    if (!s->room || !s->matrices || !s->errors || !s->q_all || !s->dropped ||
        !prepare_sum(s, &s->p, p + 2, options->tag) ||
        !prepare_sum(s, &s->q, s->q_count + riders + 1, options->tag))
        return train_no_memory();
    place(s, errors);
    if (!list_state(s, options->name ? options->name : "powersgd"))
        return train_no_memory();
    return pcclSuccess;
}

pcclResult_t pcclPowerSgdCreate(const pcclTrainTensor_t *tensors, size_t count,
                                const pcclPowerSgdOptions_t *options,
                                pcclPowerSgd_t **powersgd_out)
{
    static const char function[] = "pcclPowerSgdCreate";
    if (!powersgd_out) return train_null(function, "the result");
    pcclResult_t rc =
        train_options(options, options ? options->size : 0, sizeof *options,
                      options ? options->name : NULL, function);
    if (rc != pcclSuccess) return rc;
    pcclPowerSgd_t *s = calloc(1, sizeof *s);
    if (!s) return train_no_memory();
    s->rank = options->rank;
    s->seed = options->seed;
    rc = train_tensors_create(&s->tensors, tensors, count);
    if (rc == pcclSuccess) rc = check_rank(&s->tensors, options->rank);
    if (rc == pcclSuccess) rc = prepare(s, options);
    if (rc == pcclSuccess)
        *powersgd_out = s;
    else
        (void)pcclPowerSgdDestroy(s);
    return rc;
}

pcclResult_t pcclPowerSgdDestroy(pcclPowerSgd_t *powersgd)
{
    pcclPowerSgd_t *s = powersgd;
    if (!s) return pcclSuccess;
    train_tensors_free(&s->tensors);
    train_state_free(&s->state);
    product_room_free(s->room);
    free(s->matrices);
    free(s->compressed);
    free(s->errors);
    free(s->q_all);
    free(s->dropped);
    free(s->p.members);
    free(s->q.members);
    free(s->p.send);
    free(s->p.recv);
    free(s->q.send);
    free(s->q.recv);
    free(s);
    return pcclSuccess;
}

/* ---------------------------------------------------------------- first sum */

static void add(float *to, const float *a, const float *b, size_t count)
{
    for (size_t i = 0; i < count; i++) to[i] = a[i] + b[i];
}

static struct product_in by_rows(const float *x, size_t columns)
{
    return (struct product_in){x, columns, 1};
}

static struct product_in by_columns(const float *x, size_t columns)
{
    return (struct product_in){x, 1, columns};
}

/* M = E + G in the backups; the first tensor that is not finite. */
static size_t take_gradients(pcclPowerSgd_t *s, float *const *gradients)
{
    for (size_t i = 0; i < s->tensors.count; i++) {
        if (!s->compressed[i] &&
            !train_finite(gradients[i], s->tensors.list[i].count))
            return i;
    }
    for (size_t i = 0; i < s->matrix_count; i++) {
        struct low_rank *m = &s->matrices[i];
        add(m->backup, m->error, gradients[m->index], m->tensor->count);
        if (!train_finite(m->backup, m->tensor->count)) return m->index;
    }
    return none;
}

/* Fills in what this member adds to P. */
static void project(pcclPowerSgd_t *s, float weight)
{
    float *send = s->p.send;
    for (size_t i = 0; i < s->matrix_count; i++) {
        const struct low_rank *m = &s->matrices[i];
        const struct train_tensor *t = m->tensor;
        product(s->room, send + m->p_at, by_rows(m->backup, t->columns),
                by_rows(m->q, s->rank), t->rows, t->columns, s->rank,
                PRODUCT_SET);
    }
    train_scale(send, s->p.count - 2, weight);
}

static void begin(pcclPowerSgd_t *s, float *const *gradients, float weight)
{
    float *send = s->p.send;
    s->idle = weight == 0;
    s->faulty = s->idle ? none : take_gradients(s, gradients);
    if (s->idle || s->faulty != none)
        memset(send, 0, s->p.count * sizeof *send);
    else
        project(s, weight);
    send[s->p.count - 2] = s->faulty != none ? 0 : weight;
    send[s->p.count - 1] = s->faulty != none;
}

/* --------------------------------------------------------------- second sum */

/* All members have the same sums, and so come to the same end. */
static pcclResult_t check_sum(const pcclPowerSgd_t *s,
                              const struct train_sum *sum)
{
    const float faults = sum->recv[sum->count - 1];
    if (faults != 0 && s->faulty != none)
        return train_fail(pcclOperationFailed,
                          "tensor '%.60s' is not finite, with its error",
                          s->tensors.list[s->faulty].name);
    if (faults != 0)
        return train_fail(pcclOperationFailed,
                          "%.0f of %u members have gradients that are not "
                          "finite",
                          (double)faults, sum->info.local_world_size);
    if (!train_finite(sum->recv, sum->count))
        return train_fail(pcclOperationFailed,
                          "a sum over the members is too large");
    return pcclSuccess;
}

/* This member's Q' and E'. */
static void feed_back(pcclPowerSgd_t *s)
{
    for (size_t i = 0; i < s->matrix_count; i++) {
        struct low_rank *m = &s->matrices[i];
        const struct train_tensor *t = m->tensor;
        const float *p = s->p.recv + m->p_at;
        float *own = s->q.send + m->q_at;
        product(s->room, own, by_columns(m->backup, t->columns),
                by_rows(p, s->rank), t->columns, t->rows, s->rank, PRODUCT_SET);
        product(s->room, m->backup, by_rows(p, s->rank),
                by_columns(own, s->rank), t->rows, s->rank, t->columns,
                PRODUCT_SUBTRACT);
        if (!train_finite(m->backup, t->count)) s->faulty = m->index;
    }
}

static void add_riders(pcclPowerSgd_t *s, float *const *gradients)
{
    float *to = s->q.send + s->q_count;
    for (size_t i = 0; i < s->tensors.count; i++) {
        if (s->compressed[i]) continue;
        memcpy(to, gradients[i], s->tensors.list[i].count * sizeof *to);
        to += s->tensors.list[i].count;
    }
}

/* The members' P, orthonormal, and what this one adds to Q. */
static void proceed(pcclPowerSgd_t *s, float *const *gradients, float weight)
{
    float *send = s->q.send;
    for (size_t i = 0; i < s->matrix_count; i++) {
        struct low_rank *m = &s->matrices[i];
        orthonormalize(s->room, s->p.recv + m->p_at, m->tensor->rows, s->rank,
                       m->dropped);
    }
    if (s->idle) {
        memset(send, 0, s->q.count * sizeof *send);
        return;
    }
    feed_back(s);
    add_riders(s, gradients);
    train_scale(send, s->q.count - 1, weight);
    send[s->q.count - 1] = s->faulty != none;
}

/* --------------------------------------------------------------------- end */

static void spread_riders(const pcclPowerSgd_t *s, float *const *gradients)
{
    const float *from = s->q.recv + s->q_count;
    for (size_t i = 0; i < s->tensors.count; i++) {
        if (s->compressed[i]) continue;
        memcpy(gradients[i], from, s->tensors.list[i].count * sizeof *from);
        from += s->tensors.list[i].count;
    }
}

/* Both sums have succeeded on all members. */
static void commit(pcclPowerSgd_t *s, float *const *gradients)
{
    float *mean = s->q.recv;
    const float weights = s->p.recv[s->p.count - 2];
    for (size_t i = 0; i < s->q.count - 1; i++) mean[i] /= weights;
    for (size_t i = 0; i < s->matrix_count; i++) {
        const struct low_rank *m = &s->matrices[i];
        const struct train_tensor *t = m->tensor;
        product(s->room, gradients[m->index],
                by_rows(s->p.recv + m->p_at, s->rank),
                by_columns(mean + m->q_at, s->rank), t->rows, s->rank,
                t->columns, PRODUCT_SET);
    }
    spread_riders(s, gradients);
    memcpy(s->q_all, mean, s->q_count * sizeof *mean);
    s->steps++;
    for (size_t i = 0; i < s->matrix_count; i++) {
        struct low_rank *m = &s->matrices[i];
        /* A column of Q that is 0 would stay 0. */
        for (size_t c = 0; c < s->rank; c++) {
            if (m->dropped[c]) seed_column(s, m, c, s->steps);
        }
        if (s->idle) continue;
        float *error = m->error;
        m->error = m->backup;
        m->backup = error;
    }
}

static void clear(const pcclPowerSgd_t *s, float *const *gradients)
{
    for (size_t i = 0; i < s->tensors.count; i++)
        memset(gradients[i], 0, s->tensors.list[i].count * sizeof(float));
}

/* ------------------------------------------------------------------ phases */

/* A sum that a cancelled call has left in flight is awaited, not launched. */
static pcclResult_t run(pcclPowerSgd_t *s, struct train_sum *sum,
                        pcclComm_t *comm)
{
    pcclResult_t rc = pcclSuccess;
    if (!train_sum_in_flight(sum)) {
        uint64_t agreed[] = {s->options[0], s->options[1], s->options[2],
                             s->steps};
        sum->digest = train_digest(0, agreed, sizeof agreed);
        rc = train_sum_launch(sum, comm);
    }
    if (rc == pcclSuccess) rc = train_sum_await(sum);
    if (rc == pcclSuccess) rc = check_sum(s, sum);
    return rc;
}

static pcclResult_t reduce(pcclPowerSgd_t *s, float *const *gradients,
                           float weight, pcclComm_t *comm)
{
    pcclResult_t rc = pcclSuccess;
    if (s->phase == NOTHING) {
        begin(s, gradients, weight);
        s->phase = SUMMING_P;
    }
    if (s->phase == SUMMING_P) {
        rc = run(s, &s->p, comm);
        if (rc == pcclSuccess && s->p.recv[s->p.count - 2] == 0) {
            clear(s, gradients);
            s->phase = NOTHING;
            return pcclSuccess;
        }
        if (rc == pcclSuccess) {
            proceed(s, gradients, weight);
            s->phase = SUMMING_Q;
        }
    }
    if (rc == pcclSuccess && s->phase == SUMMING_Q) {
        rc = run(s, &s->q, comm);
        if (rc == pcclSuccess) commit(s, gradients);
    }
    if (rc != pcclCancelled && rc != pcclTimedOut) s->phase = NOTHING;
    return rc;
}

pcclResult_t pcclPowerSgdReduce(pcclPowerSgd_t *powersgd,
                                float *const *gradients, float weight,
                                pcclComm_t *comm, pcclReduceInfo_t *info)
{
    static const char function[] = "pcclPowerSgdReduce";
    pcclPowerSgd_t *s = powersgd;
    if (!s) return train_null(function, "powersgd");
    if (!comm) return train_null(function, "comm");
    pcclResult_t rc = train_tensors_data(
        &s->tensors, (const float *const *)gradients, function);
    if (rc != pcclSuccess) return rc;
    if (!(weight >= 0) || isinf(weight))
        return train_fail(pcclInvalidArgument,
                          "%s: the weight is negative or not finite", function);
    train_sum_turn(&s->p, comm);
    train_sum_turn(&s->q, comm);
    if (!train_sum_in_flight(&s->p) && !train_sum_in_flight(&s->q))
        s->phase = NOTHING;
    if (s->phase == NOTHING) s->p.info = s->q.info = (pcclReduceInfo_t){0};
    fenv_t saved;
    train_float_begin(&saved);
    rc = reduce(s, gradients, weight, comm);
    train_float_end(&saved);
    if (rc != pcclSuccess || !info) return rc;
    *info = s->p.info;
    info->tx_bytes += s->q.info.tx_bytes;
    info->rx_bytes += s->q.info.rx_bytes;
    return rc;
}

pcclResult_t pcclPowerSgdSetScope(pcclPowerSgd_t *powersgd,
                                  const uint64_t *members, size_t count)
{
    static const char function[] = "pcclPowerSgdSetScope";
    if (!powersgd) return train_null(function, "powersgd");
    if (powersgd->phase != NOTHING)
        return train_fail(pcclPendingAsyncOps, "%s: a sum is in flight",
                          function);
    pcclResult_t rc = train_sum_scope(&powersgd->p, members, count, function);
    if (rc == pcclSuccess)
        rc = train_sum_scope(&powersgd->q, members, count, function);
    return rc;
}

/* ------------------------------------------------------------- what there is
 */

pcclResult_t pcclPowerSgdListState(pcclPowerSgd_t *powersgd,
                                   pcclTensorInfo_t *infos, size_t capacity,
                                   size_t *count_out)
{
    static const char function[] = "pcclPowerSgdListState";
    if (!powersgd) return train_null(function, "powersgd");
    return train_state_list(&powersgd->state, infos, capacity, count_out,
                            function);
}

pcclResult_t pcclPowerSgdGetError(pcclPowerSgd_t *powersgd, size_t tensor,
                                  float **error_out)
{
    static const char function[] = "pcclPowerSgdGetError";
    if (!powersgd) return train_null(function, "powersgd");
    if (!error_out) return train_null(function, "error_out");
    if (tensor >= powersgd->tensors.count)
        return train_fail(pcclInvalidArgument, "%s: tensor %zu of %zu",
                          function, tensor, powersgd->tensors.count);
    *error_out = NULL;
    for (size_t i = 0; i < powersgd->matrix_count; i++) {
        const struct low_rank *m = &powersgd->matrices[i];
        if (m->index == tensor) *error_out = m->error;
    }
    return pcclSuccess;
}

pcclResult_t pcclPowerSgdGetInfo(const pcclPowerSgd_t *powersgd,
                                 pcclPowerSgdInfo_t *info)
{
    static const char function[] = "pcclPowerSgdGetInfo";
    const pcclPowerSgd_t *s = powersgd;
    if (!s) return train_null(function, "powersgd");
    if (!info) return train_null(function, "info");
    if (info->size < sizeof *info)
        return train_fail(pcclInvalidArgument, "%s: size is %zu, not %zu",
                          function, info->size, sizeof *info);
    *info = (pcclPowerSgdInfo_t){.size = sizeof *info,
                                 .steps = s->steps,
                                 .compressed = s->matrix_count,
                                 .elements = s->tensors.total,
                                 .sent = s->p.count + s->q.count};
    return pcclSuccess;
}
