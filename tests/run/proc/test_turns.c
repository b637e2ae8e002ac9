/* test_turns.c - a call uses what the one before it has left, but for what
 * differs: in turn, calls that differ in one argument each. */
#include "house.h"

#include <string.h>

struct side {
    pcclComm_t *comm;
    int bad;
};

/* Each differs from the one before it in one argument. */
static const struct turn {
    pcclCollectiveKind_t kind;
    pcclFlow_t flow;
    int root;
    pcclDataType_t type;
    pcclRedOp_t op;
    size_t count;
    /* The first element of each rank; -7: the buffer is as it was. */
    float expected[2];
} turns[] = {
    {pcclKindAllReduce, pcclFlowAll, 0, pcclFloat, pcclSum, 4, {3, 3}},
    {pcclKindAllReduce, pcclFlowAll, 0, pcclFloat, pcclSum, 2, {3, 3}},
    {pcclKindAllReduce, pcclFlowToRoot, 0, pcclFloat, pcclSum, 2, {3, -7}},
    {pcclKindAllReduce, pcclFlowToRoot, 1, pcclFloat, pcclSum, 2, {-7, 3}},
    {pcclKindAllReduce, pcclFlowToRoot, 0, pcclFloat, pcclSum, 2, {3, -7}},
    {pcclKindAllReduce, pcclFlowAll, 0, pcclFloat, pcclSum, 2, {3, 3}},
    {pcclKindAllReduce, pcclFlowAll, 0, pcclFloat, pcclMax, 2, {2, 2}},
    {pcclKindAllReduce, pcclFlowAll, 0, pcclInt32, pcclMax, 2, {-1, -1}},
    {pcclKindReduceScatter, pcclFlowAll, 0, pcclInt32, pcclMax, 2, {-1, -21}},
    {pcclKindReduceScatter, pcclFlowAll, 0, pcclInt32, pcclMax, 1, {-1, -11}},
    {pcclKindBroadcast, pcclFlowAll, 0, pcclUint8, pcclSum, 8, {1, 1}},
    {pcclKindBroadcast, pcclFlowAll, 1, pcclUint8, pcclSum, 8, {2, 2}},
    {pcclKindBarrier, pcclFlowAll, 0, pcclUint8, pcclSum, 0, {-7, -7}},
};

/* Integers are negative, which no float takes for a number. */
static void put(const struct turn *t, void *to, float value)
{
    bool whole = t->type == pcclInt32 && value != -7;
    int32_t number = value < 0 ? (int32_t)value : (int32_t)-value;
    memcpy(to, whole ? (const void *)&number : &value, sizeof number);
}

static void *turns_thread(void *side)
{
    struct side *s = side;
    int rank;
    s->bad = pcclGetView(s->comm, NULL, &rank, NULL, NULL, 0) != pcclSuccess;
    for (size_t k = 0; k < 2 * sizeof turns / sizeof *turns; k++) {
        const struct turn *t = &turns[k / 2];
        uint32_t in[2][4], out[2][4], expected;
        for (int i = 0; i < 4; i++) {
            put(t, &in[k % 2][i], (float)(rank + 1 + 10 * i));
            put(t, &out[k % 2][i],
                t->kind == pcclKindBroadcast ? (float)rank + 1 : -7);
        }
        pcclCollective_t op = {.size = sizeof op,
                               .kind = t->kind,
                               .flow = t->flow,
                               .root = t->root,
                               .datatype = t->type,
                               .op = t->op,
                               .count = t->count,
                               .sendbuf = in[k % 2],
                               .recvbuf = out[k % 2]};
        s->bad += pcclCollective(&op, s->comm, NULL) != pcclSuccess;
        put(t, &expected, t->expected[rank]);
        s->bad += out[k % 2][0] != expected;
        put(t, &expected, -7);
        bool whole = t->count == 4 || t->kind == pcclKindBroadcast;
        s->bad += !whole && out[k % 2][2] != expected;
    }
    return NULL;
}

static void one_argument_differs(void **state)
{
    const struct house *h = *state;
    assert_int_equal(attribute(h->a, PCCL_ATTRIBUTE_GLOBAL_WORLD_SIZE), 2);
    struct side s[2] = {{.comm = h->a}, {.comm = h->b}};
    pthread_t other = spawn(turns_thread, &s[1]);
    (void)turns_thread(&s[0]);
    (void)join(other);
    assert_int_equal(s[0].bad + s[1].bad, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {TWO(one_argument_differs)};
    return cmocka_run_group_tests_name("proc/turns", tests, NULL, NULL);
}
