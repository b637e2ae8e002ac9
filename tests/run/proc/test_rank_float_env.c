/* test_rank_float_env.c - members get the same bits although the thread of one
 * of them flushes subnormals or rounds otherwise (contract C6). */
#include "cluster.h"
#include "../../unit/reduce/float_env_test.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

enum { RANKS = 3, HASH = 1 };

/* By all-reduces of the fast path, of one-shot, direct and ring algorithms. */
static const size_t counts[] = {1, 2, 100, 5000, 100000, 1500000};
enum { SIZES = sizeof counts / sizeof counts[0] };

static int64_t hash_of(const void *bytes, size_t size)
{
    uint64_t hash = 0xcbf29ce484222325u;
    const uint8_t *b = bytes;
    for (size_t i = 0; i < size; i++) hash = (hash ^ b[i]) * 0x100000001b3u;
    return (int64_t)hash;
}

static void reduce_sizes(struct seat *seat, pcclComm_t *comm, float *in,
                         float *out, int env)
{
    for (int s = 0; s < SIZES; s++) {
        size_t count = counts[s];
        for (size_t i = 0; i < count; i++) {
            uint32_t bits = (uint32_t)(1 + i % 1000); /* subnormal */
            memcpy(&in[i], &bits, sizeof bits);
            if (i % 2)
                in[i] = 1.0f / (float)(3 + i % 100 + (size_t)seat->index);
        }
        pcclCollective_t c = {.size = sizeof c,
                              .kind = pcclKindAllReduce,
                              .tag = (uint64_t)s + 1,
                              .sendbuf = in,
                              .recvbuf = out,
                              .count = count,
                              .datatype = pcclFloat,
                              .op = s % 2 ? pcclAvg : pcclSum};
        env_set(env);
        uint64_t before = env_bits();
        SEAT_EQUAL(seat, pcclCollective(&c, comm, NULL), pcclSuccess);
        SEAT_CHECK(seat, env_bits() == before);
        env_set(0);
        seat_report(seat, HASH, hash_of(out, count * sizeof *out));
    }
}

static void body(struct seat *seat)
{
    float *in = malloc(counts[SIZES - 1] * sizeof *in);
    float *out = malloc(counts[SIZES - 1] * sizeof *out);
    SEAT_CHECK(seat, in && out);
    /* Rank 0's library threads start in another environment as well. */
    env_set(seat->index == 0 ? ENVS - 1 : 0);
    pcclComm_t *comm = seat_join(seat);
    seat_gather(seat, comm, RANKS);
    for (int env = 0; env < ENVS; env++)
        reduce_sizes(seat, comm, in, out, seat->index == 0 ? env : 0);
    SEAT_EQUAL(seat, pcclDestroyCommunicator(comm), pcclSuccess);
    free(in);
    free(out);
}

static void test_environments_of_callers(void **state)
{
    (void)state;
    struct cluster c;
    memset(&c, 0, sizeof c);
    int64_t first[SIZES];
    cluster_start(&c, "20");
    for (int i = 0; i < RANKS; i++) cluster_add(&c, body, NULL);
    for (int env = 0; env < ENVS; env++) {
        for (int s = 0; s < SIZES; s++) {
            for (int i = 0; i < RANKS; i++) {
                int64_t hash = cluster_await(&c, i, HASH);
                if (env == 0 && i == 0) first[s] = hash;
                if (hash != first[s])
                    fail_msg("environment %d, %zu floats, rank %d", env,
                             counts[s], i);
            }
        }
    }
    for (int i = 0; i < RANKS; i++) cluster_finish(&c, i);
    cluster_stop(&c);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_environments_of_callers),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
