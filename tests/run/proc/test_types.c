/* test_types.c - tests of every datatype with every operator, in place and out
 * of place, for small and odd counts, with two and three processes, bit for
 * bit; then of mismatched arguments and concurrent operations. */
#include "cluster.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { DATATYPES = 12, OPERATORS = 5, ELEMENT_MAX = 8, COUNT_MAX = 1000 };
enum { DONE = 1 };

static int start(void **state)
{
    *state = calloc(1, sizeof(struct cluster));
    return *state == NULL;
}

static int stop(void **state)
{
    cluster_stop(*state);
    free(*state);
    return 0;
}

static void run(struct cluster *c, int ranks, const char *deadline,
                seat_body *body)
{
    cluster_start(c, deadline);
    for (int i = 0; i < ranks; i++) cluster_add(c, body, NULL);
    for (int i = 0; i < ranks; i++) cluster_finish(c, i);
    cluster_stop(c);
}

/* ------------------------------------------------------- types, operators */

static const size_t ELEMENT[DATATYPES] = {1, 1, 2, 2, 4, 4, 8, 8, 2, 2, 4, 8};

static bool is_unsigned(int type)
{
    return type == pcclUint8 || type == pcclUint16 || type == pcclUint32 ||
           type == pcclUint64;
}

static bool is_integer(int type)
{
    return type < pcclFloat16;
}

/* Writes a number that the type can represent exactly. */
static void store(int type, void *to, double value)
{
    int64_t whole = (int64_t)value; /* two's complement, little endian */
    float single = (float)value;
    uint32_t bits;
    memcpy(&bits, &single, sizeof bits);
    uint32_t sign = bits >> 16 & 0x8000;
    uint32_t half =
        single == 0 /* f32 to f16, normal numbers */
            ? sign
            : sign | (((bits >> 23 & 0xff) - 112) << 10 | (bits >> 13 & 0x3ff));
    bits >>= type == pcclBFloat16 ? 16 : 0;
    if (is_integer(type))
        memcpy(to, &whole, ELEMENT[type]);
    else if (type == pcclFloat16)
        memcpy(to, &half, 2);
    else if (type == pcclDouble)
        memcpy(to, &value, 8);
    else
        memcpy(to, &bits, ELEMENT[type]);
}

/* Contribution of seat r: small, so that every result is exact in every type;
 * negative where the type allows. */
static int contribution(int type, size_t index, int seat)
{
    int base = (int)(index % 7) - 3;
    if (is_unsigned(type) && base < 0) base = -base;
    return base * (seat + 1);
}

static double reduced(int type, int op, size_t index, int world)
{
    int sum = 0;
    int product = 1;
    int least = contribution(type, index, 0);
    int most = least;
    for (int seat = 0; seat < world; seat++) {
        int x = contribution(type, index, seat);
        sum += x;
        product *= x;
        if (x < least) least = x;
        if (x > most) most = x;
    }
    if (op == pcclAvg && is_integer(type)) return sum / world;
    const double values[OPERATORS] = {sum, (double)sum / world, product, most,
                                      least};
    /* The sign of zero is not tested. */
    return values[op] == 0 ? 0 : values[op];
}

static bool equal(int type, const void *got, double want)
{
    uint8_t bytes[ELEMENT_MAX];
    store(type, bytes, want);
    if (memcmp(got, bytes, ELEMENT[type]) == 0) return true;
    store(type, bytes, -0.0);
    return want == 0 && memcmp(got, bytes, ELEMENT[type]) == 0;
}

static void reduce_one(const struct seat *seat, pcclComm_t *comm, int type,
                       int op, size_t count, bool in_place)
{
    uint8_t in[COUNT_MAX * ELEMENT_MAX];
    uint8_t out[(COUNT_MAX + 1) * ELEMENT_MAX];
    uint8_t *to = in_place ? in : out;
    int world = world_size(comm);
    size_t element = ELEMENT[type];
    memset(out, 0xa5, sizeof out);
    for (size_t i = 0; i < count; i++)
        store(type, in + i * element, contribution(type, i, seat->index));
    pcclReduceDescriptor_t d = {
        .count = count,
        .op = (pcclRedOp_t)op,
        .tag = 3,
        .src_descriptor = {(pcclDataType_t)type, pcclDistributionNormal},
        .quantization_options = {(pcclDataType_t)77, pcclQuantNone}};
    pcclReduceInfo_t info;
    SEAT_EQUAL(seat, pcclAllReduce(in, to, &d, comm, &info), pcclSuccess);
    SEAT_EQUAL(seat, info.local_world_size, world);
    if (world == 2) SEAT_EQUAL(seat, info.tx_bytes, count * element);
    if (world == 2) SEAT_EQUAL(seat, info.rx_bytes, count * element);
    for (size_t i = 0; i < count; i++) {
        if (equal(type, to + i * element, reduced(type, op, i, world)))
            continue;
        fprintf(stderr, "type %d, op %d, count %zu, element %zu\n", type, op,
                count, i);
        seat_fail(seat, __FILE__, __LINE__, "the result is right", 0, 1);
    }
    if (in_place) return;
    for (size_t i = 0; i < count; i++)
        SEAT_CHECK(seat, equal(type, in + i * element,
                               contribution(type, i, seat->index)));
    SEAT_EQUAL(seat, out[count * element], 0xa5); /* nothing beyond the end */
}

static void types_body(struct seat *seat)
{
    static const size_t counts[] = {0, 1, 2, 3, COUNT_MAX};
    pcclComm_t *comm = seat_join(seat);
    int world = *(const int *)seat->arg;
    seat_gather(seat, comm, world);
    for (int type = 0; type < DATATYPES; type++)
        for (int op = 0; op < OPERATORS; op++)
            for (size_t i = 0; i < sizeof counts / sizeof *counts; i++) {
                reduce_one(seat, comm, type, op, counts[i], true);
                reduce_one(seat, comm, type, op, counts[i], false);
            }
    SEAT_EQUAL(seat, pcclDestroyCommunicator(comm), pcclSuccess);
}

static void every_type_and_operator(void **state)
{
    struct cluster *c = *state;
    static const int worlds[] = {2, 3};
    for (int w = 0; w < 2; w++) {
        cluster_start(c, "20");
        for (int i = 0; i < worlds[w]; i++)
            cluster_add(c, types_body, &worlds[w]);
        for (int i = 0; i < worlds[w]; i++) cluster_finish(c, i);
        cluster_stop(c);
    }
}

/* ---------------------------------------------------------------- mismatch */

static void mismatch_body(struct seat *seat)
{
    pcclComm_t *comm = seat_join(seat);
    seat_gather(seat, comm, 3);
    const pcclReduceDescriptor_t base = {
        .count = 100, .tag = 1, .src_descriptor = {pcclFloat, 0}};
    pcclReduceDescriptor_t odd[6] = {base, base, base, base, base, base};
    odd[0].count = 101;
    odd[1].count = 0;
    odd[2].src_descriptor.datatype = pcclInt32;
    odd[3].op = pcclAvg;
    odd[4].quantization_options.algorithm = pcclQuantMinMax;
    odd[5].count = 50; /* the same number of bytes */
    odd[5].src_descriptor.datatype = pcclDouble;
    for (int i = 0; i < 12; i++) {
        float buffer[101];
        for (int k = 0; k < 101; k++) buffer[k] = (float)k;
        bool mine = seat->index == i % 3;
        const pcclReduceDescriptor_t *d = mine ? &odd[i / 2] : &base;
        SEAT_EQUAL(seat, pcclAllReduce(buffer, buffer, d, comm, NULL),
                   pcclInvalidArgument);
        for (int k = 0; k < 101; k++) SEAT_EQUAL(seat, buffer[k], k);
        SEAT_EQUAL(seat, pcclAllReduce(buffer, buffer, &base, comm, NULL),
                   pcclSuccess);
        SEAT_EQUAL(seat, buffer[50], 150);
    }
    SEAT_EQUAL(seat, pcclDestroyCommunicator(comm), pcclSuccess);
}

static void disagreement_is_refused_everywhere(void **state)
{
    run(*state, 3, "20", mismatch_body);
}

/* One member requests an update while the others reduce: no member waits for
 * ever. */
static void different_calls_body(struct seat *seat)
{
    pcclComm_t *comm = seat_join(seat);
    seat_gather(seat, comm, 3);
    pcclReduceDescriptor_t d = {
        .count = 1000, .tag = 1, .src_descriptor = {pcclFloat, 0}};
    float buffer[1000];
    for (int i = 0; i < 2; i++) {
        for (int k = 0; k < 1000; k++) buffer[k] = 1;
        pcclResult_t rc = seat->index == i
                              ? pcclUpdateTopology(comm)
                              : pcclAllReduce(buffer, buffer, &d, comm, NULL);
        SEAT_EQUAL(seat, rc, pcclInvalidUsage);
        SEAT_EQUAL(seat, buffer[999], 1);
        SEAT_EQUAL(seat, pcclUpdateTopology(comm), pcclSuccess);
        rc = pcclAllReduce(buffer, buffer, &d, comm, NULL);
        SEAT_EQUAL(seat, rc, pcclSuccess);
        SEAT_EQUAL(seat, buffer[999], 3);
    }
    SEAT_EQUAL(seat, pcclDestroyCommunicator(comm), pcclSuccess);
}

static void different_calls_get_errors(void **state)
{
    run(*state, 3, "1", different_calls_body);
}

/* ------------------------------------------------------------ side by side */

enum { TAGS = 16, TAG_COUNT = 30000 };

/* Launched in one order, awaited in another, which differs by member. */
static void tags_body(struct seat *seat)
{
    pcclComm_t *comm = seat_join(seat);
    float *buffers = malloc((size_t)TAGS * TAG_COUNT * sizeof *buffers);
    seat_gather(seat, comm, 3);
    SEAT_CHECK(seat, buffers);
    for (int round = 0; round < 4; round++) {
        pcclAsyncReduceOp_t handles[TAGS];
        for (size_t i = 0; i < (size_t)TAGS * TAG_COUNT; i++)
            buffers[i] = (float)(i % 1009 + (size_t)seat->index);
        for (int k = 0; k < TAGS; k++) {
            int tag = (k * 5 + seat->index * 3) % TAGS;
            pcclReduceDescriptor_t d = {.count = TAG_COUNT - (size_t)tag,
                                        .tag = UINT64_MAX - (uint64_t)tag,
                                        .src_descriptor = {pcclFloat, 0}};
            float *at = buffers + tag * TAG_COUNT;
            SEAT_EQUAL(seat,
                       pcclAllReduceAsync(at, at, &d, comm, &handles[tag]),
                       pcclSuccess);
        }
        for (int k = 0; k < TAGS; k++) {
            int tag = (k * 7 + seat->index) % TAGS;
            SEAT_EQUAL(seat, pcclAwaitAsyncReduce(&handles[tag], NULL),
                       pcclSuccess);
        }
        for (size_t i = 0; i < (size_t)TAGS * TAG_COUNT; i++) {
            size_t tag = i / TAG_COUNT;
            if (i % TAG_COUNT >= TAG_COUNT - tag) continue;
            SEAT_EQUAL(seat, buffers[i], i % 1009 * 3 + 3);
        }
    }
    free(buffers);
    SEAT_EQUAL(seat, pcclDestroyCommunicator(comm), pcclSuccess);
}

static void concurrent_tags(void **state)
{
    run(*state, 3, "20", tags_body);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, start, stop)

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        TEST(every_type_and_operator),
        TEST(disagreement_is_refused_everywhere),
        TEST(different_calls_get_errors),
        TEST(concurrent_tags),
    };
    if (argc > 1) cmocka_set_test_filter(argv[1]);
    return cmocka_run_group_tests_name("proc/types", tests, NULL, NULL);
}
