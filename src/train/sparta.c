/* sparta.c - averages of a part of the parameters, another part each time. */
#include "train.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { PARTS_MAX = 256 }; /* of pcclAllReducePartial */

struct pcclSparta_t {
    struct train_tensors tensors;
    struct train_state state;
    size_t parts, stat_count;
    uint64_t every, seed;
    uint64_t steps;       /* shared */
    uint64_t options[4];  /* of the digest: tensors, parts, every, seed */
    struct train_sum sum; /* values, statistics, members that have some */
    size_t room;          /* for values */
    /* With a deadline: the round under way, instead of the sum. */
    uint32_t deadline_ms;
    bool in_flight;
    pcclPartialOp_t handle;
    /* What has come of the last round: without a deadline all or nothing. */
    pcclPartialPart_t coverage[PARTS_MAX];
    size_t coverage_count;
    pcclSpartaInfo_t info;
};

/* The weight of a member that has nothing to give, where a weight must be above
 * 0: beside that of another member it vanishes. */
static const double nothing = 1e-30;

static bool is_missing(const pcclPartialPart_t *part)
{
    return part->contributors == 0 || part->weight < 0.5;
}

/* ---------------------------------------------------------------- selection */

/* Blocks of `parts` elements that follow each other have one element in each
 * part: which, is a rotation by a hash. So parts are disjoint, a part has the
 * same size for all seeds, and nothing is stored. */
struct sparta_part {
    uint64_t key; /* of a tensor in K rounds */
    size_t parts, number;
};

static size_t element_of(const struct sparta_part *p, size_t block)
{
    size_t turn = (size_t)(train_mix(p->key + block) % p->parts);
    size_t place =
        p->number >= turn ? p->number - turn : p->number + p->parts - turn;
    return block * p->parts + place;
}

static struct sparta_part part_of(const pcclSparta_t *s, size_t tensor)
{
    uint64_t round = s->steps / s->every, cycle = round / s->parts;
    return (struct sparta_part){
        .key = train_mix(s->seed ^ train_mix(tensor ^ train_mix(cycle))),
        .parts = s->parts,
        .number = (size_t)(round % s->parts)};
}

static size_t blocks_of(size_t count, size_t parts)
{
    return count / parts + (count % parts != 0);
}

/* Copies the elements of this round out of the weights. Returns their number.
 */
static size_t gather(const pcclSparta_t *s, float *to,
                     const float *const *weights)
{
    size_t count = 0;
    for (size_t i = 0; i < s->tensors.count; i++) {
        const size_t size = s->tensors.list[i].count;
        const struct sparta_part part = part_of(s, i);
        for (size_t b = 0; b < blocks_of(size, s->parts); b++) {
            size_t at = element_of(&part, b);
            if (at < size) to[count++] = weights[i][at];
        }
    }
    return count;
}

/* Whether element number `at` of the round has its mean in sum.recv. The calls
 * of a round ask in ascending order; *part is 0 at first. */
static bool is_covered(const pcclSparta_t *s, size_t at, size_t *part)
{
    while (*part < s->coverage_count) {
        const pcclPartialPart_t *p = &s->coverage[*part];
        if (at < p->begin + p->count) return !is_missing(p);
        (*part)++;
    }
    return false;
}

/* The means of the round into the weights, and behind them the statistics. */
static void scatter(pcclSparta_t *s, float *const *weights, float *stats)
{
    const float *mean = s->sum.recv;
    size_t from = 0, part = 0, averaged = 0;
    for (size_t i = 0; i < s->tensors.count; i++) {
        const size_t size = s->tensors.list[i].count;
        const struct sparta_part chosen = part_of(s, i);
        for (size_t b = 0; b < blocks_of(size, s->parts); b++) {
            size_t at = element_of(&chosen, b);
            if (at >= size) continue;
            const bool covered = is_covered(s, from, &part);
            if (covered) weights[i][at] = mean[from];
            averaged += covered;
            from++;
        }
    }
    s->info.chosen = from;
    s->info.averaged = averaged;
    for (size_t i = 0; i < s->stat_count; i++, from++) {
        if (is_covered(s, from, &part)) stats[i] = mean[from];
    }
}

/* ----------------------------------------------------------------- creation */

static void describe(pcclSparta_t *s)
{
    static const char *const names[] = {"list of tensors", "parts", "every",
                                        "seed"};
    for (size_t i = 0; i < 4; i++) {
        s->sum.arguments[i] = (pcclArgument_t){
            .name = names[i], .values = &s->options[i], .value_count = 1};
    }
    s->sum.arguments[4] =
        (pcclArgument_t){.name = "step", .values = &s->steps, .value_count = 1};
    s->sum.argument_count = 5;
}

static pcclResult_t prepare(pcclSparta_t *s, const pcclSpartaOptions_t *options)
{
    for (size_t i = 0; i < s->tensors.count; i++)
        s->room += blocks_of(s->tensors.list[i].count, s->parts);
    const char *name = options->name ? options->name : "sparta";
    s->sum.tag = options->tag;
    s->sum.send = train_vector(s->room + s->stat_count + 1);
    s->sum.recv = train_vector(s->room + s->stat_count + 1);
    s->options[0] = s->tensors.digest;
    s->options[1] = s->parts;
    s->options[2] = s->every;
    s->options[3] = s->seed;
    if (!s->sum.send || !s->sum.recv ||
        !train_state_add(&s->state, name, "steps", NULL, &s->steps, 1,
                         pcclUint64))
        return train_no_memory();
    describe(s);
    return pcclSuccess;
}

pcclResult_t pcclSpartaCreate(const pcclTrainTensor_t *tensors, size_t count,
                              const pcclSpartaOptions_t *options,
                              pcclSparta_t **sparta_out)
{
    static const char function[] = "pcclSpartaCreate";
    if (!sparta_out) return train_null(function, "the result");
    pcclResult_t rc =
        train_options(options, options ? options->size : 0, sizeof *options,
                      options ? options->name : NULL, function);
    if (rc != pcclSuccess) return rc;
    if (options->parts == 0 || options->every == 0 ||
        options->stat_count > UINT32_MAX)
        return train_fail(pcclInvalidArgument, "%s: %s", function,
                          options->parts == 0   ? "parts is 0"
                          : options->every == 0 ? "every is 0"
                                                : "stat_count is too large");
    pcclSparta_t *s = calloc(1, sizeof *s);
    if (!s) return train_no_memory();
    s->parts = options->parts;
    s->every = options->every;
    s->seed = options->seed;
    s->stat_count = options->stat_count;
    s->deadline_ms = options->deadline_ms;
    rc = train_tensors_create(&s->tensors, tensors, count);
    if (rc == pcclSuccess) rc = prepare(s, options);
    if (rc == pcclSuccess)
        *sparta_out = s;
    else
        (void)pcclSpartaDestroy(s);
    return rc;
}

pcclResult_t pcclSpartaDestroy(pcclSparta_t *sparta)
{
    if (!sparta) return pcclSuccess;
    train_tensors_free(&sparta->tensors);
    train_state_free(&sparta->state);
    free(sparta->sum.members);
    free(sparta->sum.send);
    free(sparta->sum.recv);
    free(sparta);
    return pcclSuccess;
}

pcclResult_t pcclSpartaListState(pcclSparta_t *sparta, pcclTensorInfo_t *infos,
                                 size_t capacity, size_t *count_out)
{
    static const char function[] = "pcclSpartaListState";
    if (!sparta) return train_null(function, "sparta");
    return train_state_list(&sparta->state, infos, capacity, count_out,
                            function);
}

/* ------------------------------------------------------------------- rounds */

/* Fills in the vector of the round. Returns whether this member has finite
 * numbers. */
static bool begin(pcclSparta_t *s, const float *const *weights,
                  const float *stats)
{
    float *send = s->sum.send;
    size_t count = gather(s, send, weights);
    if (s->stat_count > 0)
        memcpy(send + count, stats, s->stat_count * sizeof *send);
    count += s->stat_count;
    const bool has_some = train_finite(send, count);
    if (!has_some) memset(send, 0, count * sizeof *send);
    send[count++] = has_some;
    s->sum.count = s->sum.exact = count;
    return has_some;
}

/* Waits for all members: the mean of what they have, in sum.recv. */
static pcclResult_t average_all(pcclSparta_t *s, const float *const *weights,
                                const float *stats, pcclComm_t *comm)
{
    struct train_sum *sum = &s->sum;
    pcclResult_t rc = pcclSuccess;
    train_sum_turn(sum, comm);
    if (!train_sum_in_flight(sum)) {
        (void)begin(s, weights, stats);
        uint64_t agreed[] = {s->options[0], s->options[1], s->options[2],
                             s->options[3], s->steps};
        sum->digest = train_digest(0, agreed, sizeof agreed);
        rc = train_sum_launch(sum, comm);
    }
    if (rc == pcclSuccess) rc = train_sum_await(sum);
    if (rc != pcclSuccess) return rc;
    const float members = sum->recv[sum->count - 1];
    for (size_t i = 0; members > 0 && i < sum->count - 1; i++)
        sum->recv[i] /= members;
    s->coverage[0] = (pcclPartialPart_t){.count = sum->count - 1,
                                         .weight = (double)members,
                                         .contributors = (uint32_t)members};
    s->coverage_count = 1;
    return pcclSuccess;
}

static pcclResult_t launch_some(pcclSparta_t *s, const float *const *weights,
                                const float *stats, pcclComm_t *comm)
{
    struct train_sum *sum = &s->sum;
    pcclPartialDescriptor_t round = {.size = sizeof round,
                                     .tag = sum->tag,
                                     .datatype = pcclFloat,
                                     .op = pcclAvg,
                                     .deadline_ms = s->deadline_ms};
    round.weight = begin(s, weights, stats) ? 1 : nothing;
    round.count = sum->count - 1;
    pcclResult_t rc = pcclAllReducePartialAsync(sum->send, sum->recv, &round,
                                                comm, &s->handle);
    s->in_flight = rc == pcclSuccess;
    return rc;
}

/* Waits for the deadline at most: what has come by then. */
static pcclResult_t average_some(pcclSparta_t *s, const float *const *weights,
                                 const float *stats, pcclComm_t *comm)
{
    const bool resumed = s->in_flight && s->handle.comm == comm;
    pcclResult_t rc = pcclSuccess;
    pcclPartialInfo_t info = {
        .size = sizeof info, .parts = s->coverage, .part_room = PARTS_MAX};
    if (resumed) rc = pcclAwaitPartial(&s->handle, &info);
    /* A new communicator may have the address of the old one. */
    if (!resumed || rc == pcclInvalidArgument) {
        rc = launch_some(s, weights, stats, comm);
        if (rc == pcclSuccess) rc = pcclAwaitPartial(&s->handle, &info);
    }
    if (rc != pcclSuccess)
        (void)train_fail_comm(rc, comm, "averaging with a deadline");
    if (rc == pcclCancelled || rc == pcclTimedOut) return rc;
    s->in_flight = false;
    if (rc != pcclSuccess) return rc;
    s->coverage_count = info.part_count;
    s->sum.info = (pcclReduceInfo_t){.tx_bytes = info.tx_bytes,
                                     .rx_bytes = info.rx_bytes};
    return pcclSuccess;
}

/* Parts whose mean is not finite are missing, on all members. Success if any
 * other one is there. */
static pcclResult_t check_parts(pcclSparta_t *s)
{
    uint32_t most = 0;
    for (size_t i = 0; i < s->coverage_count; i++) {
        pcclPartialPart_t *part = &s->coverage[i];
        if (!is_missing(part) &&
            !train_finite(s->sum.recv + part->begin, part->count))
            part->contributors = 0;
        if (!is_missing(part) && part->contributors > most)
            most = part->contributors;
    }
    s->sum.info.local_world_size = most;
    if (most > 0) return pcclSuccess;
    s->info.averaged = 0;
    return train_fail(pcclOperationFailed,
                      "no member has finite numbers in this part, or none came "
                      "in time");
}

pcclResult_t pcclSpartaStep(pcclSparta_t *sparta, float *const *weights,
                            float *stats, pcclComm_t *comm,
                            pcclReduceInfo_t *info)
{
    static const char function[] = "pcclSpartaStep";
    pcclSparta_t *s = sparta;
    if (!s) return train_null(function, "sparta");
    if (!comm) return train_null(function, "comm");
    const float *const *from = (const float *const *)weights;
    pcclResult_t rc = train_tensors_data(&s->tensors, from, function);
    if (rc != pcclSuccess) return rc;
    if (!stats && s->stat_count > 0) return train_null(function, "stats");
    if (info) *info = (pcclReduceInfo_t){0};
    if ((s->steps + 1) % s->every == 0) {
        fenv_t saved;
        train_float_begin(&saved);
        rc = s->deadline_ms > 0 ? average_some(s, from, stats, comm)
                                : average_all(s, from, stats, comm);
        if (rc == pcclSuccess) rc = check_parts(s);
        train_float_end(&saved);
        /* The same part in the next round would fail again. */
        if (rc == pcclOperationFailed) s->steps++;
        if (rc != pcclSuccess) return rc;
        scatter(s, weights, stats);
        if (info) *info = s->sum.info;
    }
    s->steps++;
    return pcclSuccess;
}

pcclResult_t pcclSpartaSetScope(pcclSparta_t *sparta, const uint64_t *members,
                                size_t count)
{
    static const char function[] = "pcclSpartaSetScope";
    if (!sparta) return train_null(function, "sparta");
    if (sparta->deadline_ms > 0)
        return train_fail(pcclInvalidUsage,
                          "%s: a round with a deadline is of all members",
                          function);
    return train_sum_scope(&sparta->sum, members, count, function);
}

pcclResult_t pcclSpartaGetInfo(const pcclSparta_t *sparta,
                               pcclSpartaInfo_t *info)
{
    static const char function[] = "pcclSpartaGetInfo";
    if (!sparta) return train_null(function, "sparta");
    if (!info) return train_null(function, "info");
    if (info->size < sizeof *info)
        return train_fail(pcclInvalidArgument, "%s: size is %zu, not %zu",
                          function, info->size, sizeof *info);
    *info = sparta->info;
    info->size = sizeof *info;
    info->steps = sparta->steps;
    return pcclSuccess;
}
