/* mpi_counters.c - performance variables and events of MPI_T beside what they
 * count: collectives, and the loss of a rank. Under pccl-master --elastic. */
#include "conform.h"

#include <signal.h>
#include <unistd.h>

enum { SUMS = 25, BARRIERS = 7 };

static MPI_T_pvar_session session;

/* A variable by name and class, through a handle. */
static unsigned long long read_one(const char *name, int class)
{
    MPI_T_pvar_handle handle;
    unsigned long long value = 0;
    int index = -1, count = 0;
    OK(MPI_T_pvar_get_index(name, class, &index));
    OK(MPI_T_pvar_handle_alloc(session, index, NULL, &handle, &count));
    CHECK(count == 1);
    OK(MPI_T_pvar_read(session, handle, &value));
    CHECK(MPI_T_pvar_reset(session, handle) == MPI_T_ERR_PVAR_NO_WRITE);
    CHECK(MPI_T_pvar_start(session, handle) == MPI_T_ERR_PVAR_NO_STARTSTOP);
    CHECK(MPI_T_pvar_readreset(session, handle, &value) ==
          MPI_T_ERR_PVAR_NO_ATOMIC);
    OK(MPI_T_pvar_handle_free(session, &handle));
    CHECK(handle == MPI_T_PVAR_HANDLE_NULL);
    return value;
}

static unsigned long long counter(const char *name)
{
    return read_one(name, MPI_T_PVAR_CLASS_COUNTER);
}

struct seen {
    int views, lost, joined, freed, lost_rank, members;
    unsigned long long epoch;
    MPI_Count at;
} seen;

static void on_event(MPI_T_event_instance event,
                     MPI_T_event_registration registration,
                     MPI_T_cb_safety safety, void *user)
{
    struct {
        unsigned long long epoch;
        int members, rank;
    } copy = {0, 0, -2};
    int *times = user, source = -1;
    MPI_Count at = 0;
    (void)registration;
    CHECK(safety == MPI_T_CB_REQUIRE_NONE);
    OK(MPI_T_event_get_source(event, &source));
    CHECK(source == 0);
    OK(MPI_T_event_get_timestamp(event, &at));
    CHECK(at >= seen.at);
    seen.at = at;
    OK(MPI_T_event_copy(event, &copy));
    OK(MPI_T_event_read(event, 0, &seen.epoch));
    OK(MPI_T_event_read(event, 1, &seen.members));
    CHECK(copy.epoch == seen.epoch && copy.members == seen.members);
    if (times == &seen.lost) OK(MPI_T_event_read(event, 2, &seen.lost_rank));
    if (times == &seen.lost) CHECK(copy.rank == seen.lost_rank);
    if (times == &seen.views)
        CHECK(MPI_T_event_read(event, 2, &source) == MPI_T_ERR_INVALID_ITEM);
    ++*times;
}

static void on_free(MPI_T_event_registration registration,
                    MPI_T_cb_safety safety, void *user)
{
    (void)registration;
    (void)safety;
    ++*(int *)user;
}

static MPI_T_event_registration listen_to(const char *name, int *times)
{
    MPI_T_event_registration registration;
    int index = -1;
    MPI_Info info;
    OK(MPI_T_event_get_index(name, &index));
    OK(MPI_T_event_handle_alloc(index, NULL, MPI_INFO_NULL, &registration));
    OK(MPI_T_event_register_callback(registration, MPI_T_CB_REQUIRE_NONE,
                                     MPI_INFO_NULL, times, on_event));
    OK(MPI_T_event_handle_get_info(registration, &info));
    OK(MPI_Info_free(&info));
    return registration;
}

int main(int argc, char **argv)
{
    static const char *const names[] = {"pccl_view", "pccl_member_lost",
                                        "pccl_member_joined"};
    int *const times[] = {&seen.views, &seen.lost, &seen.joined};
    MPI_T_event_registration listeners[3];
    int level, rank, size, left;
    OK(MPI_T_init_thread(MPI_THREAD_SINGLE, &level));
    OK(MPI_T_pvar_session_create(&session));
    CHECK(counter("pccl_all_reduce_started") == 0);
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    for (int i = 0; i < 3; i++) listeners[i] = listen_to(names[i], times[i]);
    unsigned long long sums = counter("pccl_all_reduce_succeeded");
    unsigned long long barriers = counter("pccl_barrier_succeeded");
    int one = 1, sum = 0;
    for (int i = 0; i < SUMS; i++) {
        OK(MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD));
        CHECK(sum == size);
    }
    for (int i = 0; i < BARRIERS; i++) OK(MPI_Barrier(MPI_COMM_WORLD));
    CHECK(counter("pccl_all_reduce_succeeded") == sums + SUMS);
    CHECK(counter("pccl_barrier_succeeded") == barriers + BARRIERS);
    CHECK(counter("pccl_losses") == 0 && seen.views == 0);
    if (rank == size - 1) (void)kill(getpid(), SIGKILL);
    OK(MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD));
    CHECK(sum == size - 1);
    MPI_Comm_size(MPI_COMM_WORLD, &left);
    CHECK(left == size - 1);
    CHECK(counter("pccl_losses") == 1 && counter("pccl_recoveries") >= 1);
    CHECK(read_one("pccl_recovery_ns", MPI_T_PVAR_CLASS_TIMER) >=
          read_one("pccl_recovery_longest_ns", MPI_T_PVAR_CLASS_HIGHWATERMARK));
    CHECK(read_one("pccl_shared_sent_bytes", MPI_T_PVAR_CLASS_AGGREGATE) +
              read_one("pccl_tcp_sent_bytes", MPI_T_PVAR_CLASS_AGGREGATE) >
          0);
    CHECK(seen.views == 1 && seen.lost == 1 && seen.joined == 0);
    CHECK(seen.lost_rank == size - 1 && seen.members == size - 1);
    for (int i = 0; i < 3; i++)
        OK(MPI_T_event_handle_free(listeners[i], &seen.freed, on_free));
    CHECK(seen.freed == 3);
    unsigned long long epochs = counter("pccl_epochs");
    int result = conform_end();
    CHECK(counter("pccl_epochs") >= epochs); /* it stays */
    OK(MPI_T_pvar_session_free(&session));
    OK(MPI_T_finalize());
    return conform_failures ? EXIT_FAILURE : result;
}
