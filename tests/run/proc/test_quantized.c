/* test_quantized.c - tests of quantized all-reduces in real processes:
 * accuracy, identical bits on every member, also when members die, intact input
 * after a failure, few bytes on the sockets. */
#include "cluster.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>
#include <math.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { STEP = 1, DONE };

/* ------------------------------------------------------- bytes on sockets */

/* Written by this process, whose threads share it. */
static _Atomic uint64_t socket_bytes;

/* Replaces the C library's function, also for libpccl.so. */
__attribute__((visibility("default"))) ssize_t
sendmsg(int fd, const struct msghdr *message, int flags)
{
    ssize_t n = (ssize_t)syscall(SYS_sendmsg, fd, message, flags);
    if (n > 0) socket_bytes += (uint64_t)n;
    return n;
}

/* ------------------------------------------------------------------ vectors */

struct parameters {
    pcclDataType_t type, code;
    pcclQuantizationAlgorithm_t algorithm;
    pcclRedOp_t op;
};

static size_t width_of(pcclDataType_t type)
{
    return type == pcclDouble                      ? 8
           : type == pcclFloat                     ? 4
           : type == pcclUint8 || type == pcclInt8 ? 1
                                                   : 2;
}

static uint64_t mix(uint64_t x)
{
    x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9u;
    x = (x ^ x >> 27) * 0x94d049bb133111ebu;
    return x ^ x >> 31;
}

/* Contribution of seat s: numbers of both signs, below s + 1, with few bits, so
 * that every type can represent them. */
static double contribution(int s, size_t i, int step)
{
    uint64_t h = mix((uint64_t)s << 48 ^ (uint64_t)step << 40 ^ (i + 1));
    return ((double)(h % 255) - 127) / 128 * (s + 1);
}

static void store(pcclDataType_t type, void *to, double x)
{
    float f = (float)x;
    uint32_t bits;
    memcpy(&bits, &f, 4);
    uint32_t sign = bits >> 16 & 0x8000;
    uint32_t half =
        x == 0
            ? sign
            : sign | (((bits >> 23 & 0xff) - 112) << 10 | (bits >> 13 & 0x3ff));
    uint16_t brain = (uint16_t)(bits >> 16);
    if (type == pcclDouble) memcpy(to, &x, 8);
    if (type == pcclFloat) memcpy(to, &f, 4);
    if (type == pcclFloat16) memcpy(to, &half, 2);
    if (type == pcclBFloat16) memcpy(to, &brain, 2);
}

static double load(pcclDataType_t type, const void *from)
{
    uint64_t bits = 0;
    float f;
    double x;
    memcpy(&bits, from, width_of(type));
    memcpy(&x, &bits, 8);
    if (type == pcclDouble) return x;
    if (type == pcclBFloat16) bits <<= 16;
    if (type == pcclFloat16) {
        int exponent = (int)(bits >> 10 & 31);
        x = ldexp((double)(bits & 0x3ff) + (exponent > 0 ? 1024 : 0),
                  (exponent > 0 ? exponent : 1) - 25);
        return bits & 0x8000 ? -x : x;
    }
    uint32_t single = (uint32_t)bits;
    memcpy(&f, &single, 4);
    return f;
}

/* Seats that contributed: rank hints are seat numbers. */
static int members_of(const pcclComm_t *comm, int seats[CLUSTER_RANKS_MAX])
{
    pcclMember_t members[CLUSTER_RANKS_MAX];
    int size = 0;
    (void)pcclGetView(comm, NULL, NULL, &size, members, CLUSTER_RANKS_MAX);
    for (int i = 0; i < size; i++) seats[i] = members[i].hint;
    return size;
}

static double exact(const struct parameters *w, const int *seats, int size,
                    size_t i, int step)
{
    double x = contribution(seats[0], i, step);
    for (int k = 1; k < size; k++) {
        double y = contribution(seats[k], i, step);
        if (w->op == pcclMax)
            x = y > x ? y : x;
        else if (w->op == pcclMin)
            x = y < x ? y : x;
        else
            x += y;
    }
    return w->op == pcclAvg ? x / size : x;
}

/* The error bound of pccl.h. */
static double bound_of(const struct parameters *w, const int *seats, int size)
{
    double most = 0;
    double n = size;
    double top = pow(2, 8.0 * (double)width_of(w->code)) - 1;
    for (int k = 0; k < size; k++) most = fmax(most, seats[k] + 1);
    double unit = w->type == pcclBFloat16  ? 0x1p-8
                  : w->type == pcclFloat16 ? 0x1p-11
                                           : 0x1p-22;
    double factor = w->op == pcclSum   ? 0.52 * n * (n + 1)
                    : w->op == pcclAvg ? 0.52 * (n + 1)
                                       : 1.04 * n;
    return factor * most / top + 2 * n * n * most * unit;
}

static void check_near(const struct seat *seat, const struct parameters *w,
                       const int *seats, int size, const uint8_t *got,
                       size_t count, int step)
{
    double bound = bound_of(w, seats, size);
    size_t width = width_of(w->type);
    for (size_t i = 0; i < count; i++) {
        double want = exact(w, seats, size, i, step);
        double off = load(w->type, got + i * width) - want;
        if (fabs(off) <= bound) continue;
        seat_fail(seat, __FILE__, __LINE__, "millionths off the exact result",
                  (int64_t)(off * 1e6), (int64_t)(bound * 1e6));
    }
}

static uint64_t hash_of(const uint8_t *bytes, size_t size)
{
    uint64_t h = size;
    for (size_t i = 0; i < size; i++) h = (h ^ bytes[i]) * 0x100000001b3u;
    return h;
}

static pcclReduceDescriptor_t describe(const struct parameters *w, size_t count)
{
    return (pcclReduceDescriptor_t){
        .count = count,
        .op = w->op,
        .tag = 7,
        .src_descriptor = {w->type, 0},
        .quantization_options = {w->code, w->algorithm}};
}

struct buffers {
    uint8_t *in, *out, *before;
};

static void fill(const struct seat *seat, const struct parameters *w,
                 struct buffers *b, size_t count, int step)
{
    size_t width = width_of(w->type);
    for (size_t i = 0; i < count; i++)
        store(w->type, b->in + i * width, contribution(seat->index, i, step));
    memcpy(b->before, b->in, count * width);
}

static struct buffers buffers_new(const struct seat *seat, size_t size)
{
    struct buffers b = {malloc(size + 1), malloc(size + 1), malloc(size + 1)};
    SEAT_CHECK(seat, b.in && b.out && b.before);
    return b;
}

static void buffers_free(struct buffers *b)
{
    free(b->in);
    free(b->out);
    free(b->before);
}

/* ---------------------------------------------------------- all parameters */

/* All members have the same bits: the largest hash equals the least. */
static void check_same(const struct seat *seat, pcclComm_t *comm,
                       const uint8_t *bytes, size_t size)
{
    uint64_t mine = hash_of(bytes, size), all[2];
    for (int i = 0; i < 2; i++) {
        pcclReduceDescriptor_t d = {.count = 1,
                                    .op = i ? pcclMax : pcclMin,
                                    .tag = 8,
                                    .src_descriptor = {pcclUint64, 0}};
        SEAT_EQUAL(seat, pcclAllReduce(&mine, &all[i], &d, comm, NULL),
                   pcclSuccess);
    }
    SEAT_EQUAL(seat, all[0], all[1]);
}

static void reduce_one(const struct seat *seat, pcclComm_t *comm,
                       const struct parameters *w, size_t count, bool in_place)
{
    int seats[CLUSTER_RANKS_MAX];
    int size = members_of(comm, seats);
    size_t bytes = count * width_of(w->type);
    struct buffers b = buffers_new(seat, bytes);
    fill(seat, w, &b, count, 0);
    uint8_t *to = in_place ? b.in : b.out;
    to[bytes] = 0xa5;
    pcclReduceDescriptor_t d = describe(w, count);
    pcclReduceInfo_t info;
    SEAT_EQUAL(seat, pcclAllReduce(b.in, to, &d, comm, &info), pcclSuccess);
    SEAT_EQUAL(seat, info.local_world_size, size);
    SEAT_EQUAL(seat, to[bytes], 0xa5);
    if (!in_place) SEAT_EQUAL(seat, memcmp(b.in, b.before, bytes), 0);
    check_near(seat, w, seats, size, to, count, 0);
    check_same(seat, comm, to, bytes);
    buffers_free(&b);
}

static void ways_body(struct seat *seat)
{
    static const pcclDataType_t types[][2] = {
        {pcclFloat, pcclUint8},  {pcclFloat, pcclInt16},
        {pcclDouble, pcclInt8},  {pcclDouble, pcclUint32},
        {pcclFloat16, pcclInt8}, {pcclBFloat16, pcclUint8}};
    static const pcclRedOp_t ops[] = {pcclSum, pcclAvg, pcclMax, pcclMin};
    static const size_t counts[] = {0, 1, 2, 700, 20000, 300000};
    const int *world = seat->arg;
    pcclComm_t *comm = seat_join(seat);
    seat_gather(seat, comm, *world);
    for (int t = 0; t < 6; t++) {
        for (int o = 0; o < 4; o++) {
            for (int c = 0; c < 6; c++) {
                if (counts[c] > 100000 && o > 1) continue;
                struct parameters w = {types[t][0], types[t][1],
                                       (t + o) % 2 ? pcclQuantMinMax
                                                   : pcclQuantZeroPointScale,
                                       ops[o]};
                reduce_one(seat, comm, &w, counts[c], (t + c) % 2);
            }
        }
    }
    SEAT_EQUAL(seat, pcclDestroyCommunicator(comm), pcclSuccess);
}

static void every_way(void **state)
{
    struct cluster *c = *state;
    static const int worlds[] = {2, 3, 5};
    for (int w = 0; w < 3; w++) {
        cluster_start(c, "20");
        for (int i = 0; i < worlds[w]; i++)
            cluster_add(c, ways_body, &worlds[w]);
        for (int i = 0; i < worlds[w]; i++) cluster_finish(c, i);
        cluster_stop(c);
    }
}

/* ----------------------------------------------------------------- refusals */

static void refusals_body(struct seat *seat)
{
    pcclComm_t *comm = seat_join(seat);
    seat_gather(seat, comm, 2);
    float x[100];
    char why[256];
    static const struct parameters senseless[] = {
        {pcclFloat, pcclUint8, pcclQuantMinMax, pcclProd},
        {pcclInt32, pcclUint8, pcclQuantMinMax, pcclSum},
        {pcclFloat, pcclFloat, pcclQuantZeroPointScale, pcclSum},
        {pcclFloat, pcclUint32, pcclQuantMinMax, pcclSum},
        {pcclFloat, pcclFloat16, pcclQuantMinMax, pcclSum}};
    for (int i = 0; i < 5; i++) {
        pcclReduceDescriptor_t d = describe(&senseless[i], 100);
        SEAT_EQUAL(seat, pcclAllReduce(x, x, &d, comm, NULL),
                   pcclInvalidArgument);
        (void)pcclGetLastError(comm, why, sizeof why);
        SEAT_CHECK(seat, strstr(why, "quantiz"));
    }
    /* Members with different parameters all get the error. */
    static const struct parameters different[] = {
        {pcclFloat, pcclInt8, pcclQuantMinMax, pcclSum},
        {pcclFloat, pcclUint8, pcclQuantZeroPointScale, pcclSum},
        {pcclFloat, pcclUint16, pcclQuantMinMax, pcclSum},
        {pcclFloat, pcclUint8, pcclQuantNone, pcclSum}};
    const struct parameters usual = {pcclFloat, pcclUint8, pcclQuantMinMax,
                                     pcclSum};
    for (int i = 0; i < 4; i++) {
        for (int k = 0; k < 100; k++) x[k] = (float)k;
        pcclReduceDescriptor_t d =
            describe(seat->index ? &usual : &different[i], 100);
        SEAT_EQUAL(seat, pcclAllReduce(x, x, &d, comm, NULL),
                   pcclInvalidArgument);
        for (int k = 0; k < 100; k++) SEAT_EQUAL(seat, x[k], k);
    }
    SEAT_EQUAL(seat, pcclDestroyCommunicator(comm), pcclSuccess);
}

static void nonsense_is_refused(void **state)
{
    struct cluster *c = *state;
    cluster_start(c, "20");
    for (int i = 0; i < 2; i++) cluster_add(c, refusals_body, NULL);
    for (int i = 0; i < 2; i++) cluster_finish(c, i);
}

/* -------------------------------------------------------------------- bytes */

enum { BYTES_COUNT = 4 << 20, BYTES_WORLD = 3 };

static void bytes_body(struct seat *seat)
{
    static const struct parameters cases[] = {
        {pcclFloat, pcclUint8, pcclQuantNone, pcclSum},
        {pcclFloat, pcclUint8, pcclQuantMinMax, pcclSum},
        {pcclFloat, pcclInt8, pcclQuantZeroPointScale, pcclSum}};
    /* Processes of one host may use faster transports than TCP. */
    (void)setenv("PCCL_TRANSPORT", "tcp", 1);
    pcclComm_t *comm = seat_join(seat);
    seat_gather(seat, comm, BYTES_WORLD);
    struct buffers b = buffers_new(seat, BYTES_COUNT * 4);
    fill(seat, &cases[0], &b, BYTES_COUNT, 0);
    double sent[3], payload[3];
    for (int i = 0; i < 3; i++) {
        pcclReduceDescriptor_t d = describe(&cases[i], BYTES_COUNT);
        pcclReduceInfo_t info;
        uint64_t before = socket_bytes;
        SEAT_EQUAL(seat, pcclAllReduce(b.in, b.out, &d, comm, &info),
                   pcclSuccess);
        sent[i] = (double)(socket_bytes - before);
        payload[i] = (double)info.tx_bytes;
        SEAT_CHECK(seat, sent[i] >= payload[i]);
        SEAT_CHECK(seat, info.rx_bytes > BYTES_COUNT);
    }
    for (int i = 1; i < 3; i++) {
        SEAT_CHECK(seat, payload[0] / payload[i] >= 3.9);
        SEAT_CHECK(seat, sent[0] / sent[i] >= 3.9);
    }
    seat_report(seat, DONE, (int64_t)(sent[0] / sent[1] * 1e4));
    buffers_free(&b);
    SEAT_EQUAL(seat, pcclDestroyCommunicator(comm), pcclSuccess);
}

static void fewer_bytes_on_the_wire(void **state)
{
    struct cluster *c = *state;
    cluster_start(c, "20");
    for (int i = 0; i < BYTES_WORLD; i++) cluster_add(c, bytes_body, NULL);
    for (int i = 0; i < BYTES_WORLD; i++)
        print_message("%.4f times fewer bytes on the sockets of member %d\n",
                      (double)cluster_await(c, i, DONE) / 1e4, i);
    for (int i = 0; i < BYTES_WORLD; i++) cluster_finish(c, i);
}

/* -------------------------------------------------------------------- losses
 */

enum { LOSS_WORLD = 5, LOSS_STEPS = 24 };

static const size_t loss_counts[] = {1000, 12000, 150000, 40000};

/* Seats from 3 kill themselves with an operation in flight. The others report a
 * hash of each result and the number of its contributors. */
static void losses_body(struct seat *seat)
{
    pcclComm_t *comm = seat_join(seat);
    seat_gather(seat, comm, LOSS_WORLD);
    struct buffers b = buffers_new(seat, 150000 * 4);
    for (int step = 0; step < LOSS_STEPS; step++) {
        struct parameters w = {pcclFloat, step % 3 ? pcclUint8 : pcclInt16,
                               step % 2 ? pcclQuantMinMax
                                        : pcclQuantZeroPointScale,
                               step % 5 ? pcclSum : pcclAvg};
        size_t count = loss_counts[step % 4];
        bool in_place = step % 8 < 4;
        uint8_t *to = in_place ? b.in : b.out;
        pcclReduceDescriptor_t d = describe(&w, count);
        pcclReduceInfo_t info = {0};
        pcclResult_t rc;
        do {
            int seats[CLUSTER_RANKS_MAX];
            int size = members_of(comm, seats);
            pcclAsyncReduceOp_t handle;
            fill(seat, &w, &b, count, step);
            rc = pcclAllReduceAsync(b.in, to, &d, comm, &handle);
            SEAT_EQUAL(seat, rc, pcclSuccess);
            if (seat->index >= 3 && step == 5 * (seat->index - 2))
                (void)kill(getpid(), SIGKILL);
            rc = pcclAwaitAsyncReduce(&handle, &info);
            if (rc == pcclSuccess)
                check_near(seat, &w, seats, size, to, count, step);
            else
                SEAT_EQUAL(seat, memcmp(b.in, b.before, count * 4), 0);
        } while (rc == pcclRankConnectionLost);
        SEAT_EQUAL(seat, rc, pcclSuccess);
        if (seat->index < 3)
            seat_report(seat, STEP,
                        (int64_t)(hash_of(to, count * 4) >> 8) * 8 +
                            (int64_t)info.local_world_size);
    }
    buffers_free(&b);
    SEAT_EQUAL(seat, pcclDestroyCommunicator(comm), pcclSuccess);
}

static void same_bits_when_members_die(void **state)
{
    struct cluster *c = *state;
    cluster_start(c, "20");
    for (int i = 0; i < LOSS_WORLD; i++) cluster_add(c, losses_body, NULL);
    int64_t told = 0;
    for (int step = 0; step < LOSS_STEPS; step++) {
        told = cluster_await(c, 0, STEP);
        for (int i = 1; i < 3; i++)
            assert_int_equal(cluster_await(c, i, STEP), told);
    }
    assert_int_equal(told % 8, 3); /* two are lost */
    for (int i = 0; i < 3; i++) cluster_finish(c, i);
}

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

#define TEST(name) cmocka_unit_test_setup_teardown(name, start, stop)

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        TEST(every_way),
        TEST(nonsense_is_refused),
        TEST(fewer_bytes_on_the_wire),
        TEST(same_bits_when_members_die),
    };
    if (argc > 1) cmocka_set_test_filter(argv[1]);
    return cmocka_run_group_tests_name("proc/quantized", tests, NULL, NULL);
}
