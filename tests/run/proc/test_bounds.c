/* test_bounds.c - what pccl.h says is at most so many, is. */
#include "house.h"

#include <dirent.h>
#include <stdio.h>
#include <string.h>

enum { TEXT_MOST = 255, BATCH_MOST = 128, TENSORS_MOST = (1 << 26) - 1 };
enum { ARGUMENTS_MOST = 8, POOL_MOST = 64, GUARD = 77, MANY = 300 };

/* ------------------------------------------------------------------- texts */

static void texts(void **state)
{
    struct house *h = *state;
    char where[1000], text[300];
    for (int code = -100; code < 300; code++) {
        const char *said = pcclGetErrorString((pcclResult_t)code);
        assert_non_null(said);
        assert_ptr_equal(said, pcclGetErrorString((pcclResult_t)code));
    }
    memset(where, 'x', sizeof where - 1);
    where[sizeof where - 1] = '\0';
    for (int i = 10; i < 900; i += 100) where[i] = '\n';
    pcclSharedState_t none = {0};
    assert_int_equal(pcclLoadState(h->a, &none, where, NULL, NULL),
                     pcclFileError);
    for (size_t size = 1; size <= sizeof text; size++) {
        memset(text, GUARD, sizeof text);
        OK(pcclGetLastError(h->a, text, size));
        assert_non_null(memchr(text, '\0', size));
        assert_null(strchr(text, '\n'));
        assert_true(size == sizeof text || text[size] == GUARD);
    }
    assert_in_range(strlen(text), 1, TEXT_MOST);
    REFUSED(pcclGetLastError(h->a, text, 0));
}

/* ------------------------------------------------------------------- lists */

static void ranks_of_a_ring(void **state)
{
    struct house *h = *state;
    size_t count = 0;
    int ranks[2] = {GUARD, GUARD};
    OK(pcclGetRing(h->a, ranks, 1, &count));
    assert_int_equal(count, 2);
    assert_in_range(ranks[0], 0, 1);
    assert_int_equal(ranks[1], GUARD);
}

static void tensors(void **state)
{
    struct house *h = *state;
    float x = 1;
    pcclTensorInfo_t info = {
        .name = "x", .data = &x, .count = 1, .datatype = pcclFloat};
    char text[TEXT_MOST + 1];
    pcclSharedState_t shared = {.count = TENSORS_MOST + 1, .infos = &info};
    OK(pcclConnect(h->a));
    assert_int_equal(attribute(h->a, PCCL_ATTRIBUTE_RANK), 0);
    REFUSED(pcclSynchronizeSharedState(
        h->a, &shared, PCCL_SHARED_STATE_SYNC_STRATEGY_ENFORCE_POPULAR, NULL));
    OK(pcclGetLastError(h->a, text, sizeof text));
    assert_non_null(strstr(text, "67108863"));
    REFUSED(pcclSaveState(h->a, &shared, "/tmp", NULL));
}

static void a_batch(void **state)
{
    struct house *h = *state;
    static float x[MANY];
    static pcclReduceOpDescriptor_t ops[MANY];
    static pcclResult_t results[MANY];
    int in_flight = 0;
    for (int i = 0; i < MANY; i++)
        ops[i] = (pcclReduceOpDescriptor_t){
            &x[i],
            &x[i],
            {.count = 1, .tag = (uint64_t)i, .src_descriptor = {pcclFloat, 0}}};
    OK(pcclSetTimeLimit(h->a, 1));
    assert_int_equal(
        pcclAllReduceMultipleWithResults(ops, MANY, h->a, results, NULL, MANY),
        pcclTimedOut);
    for (int i = 0; i < MANY; i++) in_flight += results[i] == pcclTimedOut;
    assert_int_equal(in_flight, BATCH_MOST);
}

static void events(void **state)
{
    struct house *h = *state;
    enum { ROOM = 2 };
    pcclMember_t members[2];
    pcclEvent_t taken[ROOM + 1] = {[ROOM].key = GUARD};
    size_t count = 0;
    OK(pcclTakeEvent(h->a, 1, &taken[0]));
    assert_int_equal(taken[0].kind, pcclEventNone);
    OK(pcclGetView(h->b, NULL, NULL, NULL, members, 2));
    for (int sent = 0; sent < 5; sent++)
        OK(pcclPostMessage(h->b, members[0].id, "a", 1, NULL, 0));
    for (int left = 5; left > 0; left -= (int)count) {
        OK(pcclTakeEvents(h->a, -1, taken, ROOM, &count));
        assert_in_range(count, 1, ROOM);
        assert_int_equal(taken[ROOM].key, GUARD);
        for (size_t i = 0; i < count; i++)
            OK(pcclReleaseEvent(h->a, &taken[i]));
    }
}

/* ------------------------------------------------------------------- names */

struct disagreement {
    pcclComm_t *comm;
    int differs; /* number of the argument */
    uint64_t value;
};

static void *disagree(void *arg)
{
    const struct disagreement *d = arg;
    pcclArgument_t arguments[ARGUMENTS_MOST + 1];
    char names[ARGUMENTS_MOST + 1][8];
    static const uint64_t same = 7;
    for (int i = 0; i <= ARGUMENTS_MOST; i++) {
        (void)snprintf(names[i], sizeof names[i], "arg%d", i);
        arguments[i] = (pcclArgument_t){names[i], NULL,
                                        i == d->differs ? &d->value : &same, 1};
    }
    pcclCollective_t barrier = {.size = sizeof barrier,
                                .kind = pcclKindBarrier,
                                .user_digest = d->value,
                                .arguments = arguments,
                                .argument_count = ARGUMENTS_MOST + 1};
    return (void *)(intptr_t)pcclCollective(&barrier, d->comm, NULL);
}

static void arguments(void **state)
{
    struct house *h = *state;
    for (int differs = ARGUMENTS_MOST - 1; differs <= ARGUMENTS_MOST;
         differs++) {
        char text[TEXT_MOST + 1], name[8];
        struct disagreement a = {h->a, differs, 1}, b = {h->b, differs, 2};
        pthread_t other = spawn(disagree, &b);
        assert_int_equal((intptr_t)disagree(&a), pcclInvalidArgument);
        assert_int_equal(join(other), pcclInvalidArgument);
        OK(pcclGetLastError(h->a, text, sizeof text));
        (void)snprintf(name, sizeof name, "arg%d", differs);
        assert_int_equal(strstr(text, name) != NULL, differs < ARGUMENTS_MOST);
    }
    uint64_t member = 1;
    pcclCollective_t of_many = {.size = sizeof of_many,
                                .kind = pcclKindReduceScatter,
                                .count = 1,
                                .members = &member,
                                .member_count = (size_t)1 << 32};
    REFUSED(pcclChooseCollective(&of_many, h->a));
}

/* ------------------------------------------------------------- connections */

static int descriptors(void)
{
    int count = 0;
    DIR *all = opendir("/proc/self/fd");
    assert_non_null(all);
    while (readdir(all)) count++;
    closedir(all);
    return count;
}

static int descriptors_with(uint32_t connections)
{
    struct house h;
    pcclComm_t *comms[2];
    OK(pcclInit());
    assert_true(open_master(&h, cluster_address(0)));
    pcclCommCreateParams_t params = {.master_address = h.address,
                                     .p2p_connection_pool_size = connections};
    for (int i = 0; i < 2; i++) OK(pcclCreateCommunicator(&params, &comms[i]));
    OK(pcclConnect(comms[0]));
    admit(comms[0], comms[1]);
    int count = descriptors();
    for (int i = 0; i < 2; i++) OK(pcclDestroyCommunicator(comms[i]));
    OK(pcclDestroyMaster(h.master));
    return count;
}

static void connections(void **state)
{
    (void)state;
    assert_int_equal(setenv("PCCL_TRANSPORT", "tcp", 1), 0);
    int most = descriptors_with(POOL_MOST);
    assert_in_range(most, 2 * POOL_MOST, 3 * POOL_MOST);
    assert_int_equal(descriptors_with(10 * POOL_MOST), most);
    assert_int_equal(descriptors_with(POOL_MOST - 1), most - 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {ONE(texts),
                                       TWO(ranks_of_a_ring),
                                       ONE(tensors),
                                       TWO(a_batch),
                                       TWO(events),
                                       TWO(arguments),
                                       cmocka_unit_test(connections)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
