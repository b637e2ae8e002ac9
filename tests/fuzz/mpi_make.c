/* mpi_make.c - calls of fuzz_mpi's program that make communicators, repair
 * them, and change the world. See mpi_calls.h. */
#include "mpi_calls.h"

#include "../../src/mpi/mpi_comm.h"

/* The library's tag of an empty string. */
enum { TAG_OF_NOTHING = 0x11c9dc5 };

static uint32_t free_place(void)
{
    for (uint32_t i = 2; i < CALL_COMMS; i++)
        if (call_comms[i] == MPI_COMM_NULL && !call_comm_waits[i]) return i;
    return CALL_COMMS;
}

/* A request that makes a communicator, or gives a flag. */
static struct call_slot *later(uint32_t place)
{
    struct call_slot *c = call_slot_new();
    if (!c) return NULL;
    c->made = place;
    if (place < CALL_COMMS) call_comm_waits[place] = true;
    return c;
}

static void settle_now(struct call_slot *c)
{
    if (c->request == MPI_REQUEST_NULL) call_slot_free(c);
}

/* The context in which the calls of this kind agree. */
static uint32_t channel(const struct comm *comm, uint32_t kind)
{
    return comm->context | CHANNEL_AGREE | CHANNEL_NUMBER(kind);
}

/* A part of its ranks, this one among them. */
static MPI_Group part_of(MPI_Comm handle, uint8_t bits)
{
    MPI_Group all = MPI_GROUP_NULL, part = MPI_GROUP_NULL;
    int ranks[RUN_MEMBERS * 2], count = 0, size, rank;
    if (PMPI_Comm_group(handle, &all) != MPI_SUCCESS) return MPI_GROUP_NULL;
    (void)PMPI_Group_size(all, &size);
    (void)PMPI_Group_rank(all, &rank);
    for (int i = 0; i < size && i < RUN_MEMBERS * 2; i++)
        if (i == rank || bits >> i & 1) ranks[count++] = i;
    (void)PMPI_Group_incl(all, count, ranks, &part);
    (void)PMPI_Group_free(&all);
    return part;
}

static void make_of_group(MPI_Comm handle, uint8_t which, uint8_t bits,
                          uint8_t tag, MPI_Comm *out)
{
    const struct comm *comm = comm_find(handle);
    MPI_Group group = part_of(handle, bits);
    if (group == MPI_GROUP_NULL) return;
    if (which == 3) {
        (void)PMPI_Comm_create(handle, group, out);
    } else if (which == 4) {
        run_call(channel(comm, AGREE_GROUP), tag);
        (void)PMPI_Comm_create_group(handle, group, tag, out);
    } else {
        run_call(channel(&comm_self, AGREE_SESSION), TAG_OF_NOTHING);
        (void)PMPI_Comm_create_from_group(group, "", MPI_INFO_NULL,
                                          MPI_ERRORS_RETURN, out);
    }
    (void)PMPI_Group_free(&group);
}

static void make_inter(MPI_Comm handle, uint8_t second, uint8_t tag,
                       uint8_t leader, MPI_Comm *out)
{
    const struct comm *bridge = comm_find(MPI_COMM_WORLD);
    MPI_Comm local = leader & 1 ? handle : MPI_COMM_SELF;
    int size = comm_members(comm_find(local))->size;
    int other = second % comm_members(bridge)->size;
    /* First the leaders speak, then all. */
    run_call_twice(channel(bridge, AGREE_LEADERS), channel(bridge, AGREE_UNION),
                   tag);
    (void)PMPI_Intercomm_create(local, leader / 2 % size, MPI_COMM_WORLD, other,
                                tag, out);
}

static void make(MPI_Comm handle, uint32_t place, struct fuzz_input *in)
{
    uint8_t which = fuzz_u8(in) % 15, color = fuzz_u8(in), key = fuzz_u8(in),
            second = fuzz_u8(in);
    const struct comm *comm = comm_find(handle);
    MPI_Comm *out = &call_comms[place];
    struct call_slot *c;
    run_call(comm->context, 0);
    switch (which) {
    case 0:
        (void)PMPI_Comm_dup(handle, out);
        return;
    case 1:
        c = later(place);
        if (!c) return;
        (void)PMPI_Comm_idup(handle, out, &c->request);
        settle_now(c);
        return;
    case 2:
        (void)PMPI_Comm_split(handle, color % 8 ? color % 3 : MPI_UNDEFINED,
                              key, out);
        return;
    case 3:
    case 4:
    case 5:
        if (!comm->remote) make_of_group(handle, which, color, key % 4, out);
        return;
    case 6:
        if (!comm->remote) make_inter(handle, second, key % 4, color, out);
        return;
    case 7:
        if (comm->remote) (void)PMPI_Intercomm_merge(handle, color & 1, out);
        return;
    case 8:
        (void)PMPIX_Comm_shrink(handle, out);
        return;
    case 9:
        c = later(place);
        if (!c) return;
        (void)PMPIX_Comm_ishrink(handle, out, &c->request);
        settle_now(c);
        return;
    case 14:
        call_graph(handle, color, second, out);
        return;
    case 12:
        (void)PMPI_Comm_dup_with_info(handle, MPI_INFO_NULL, out);
        return;
    case 13:
        c = later(place);
        if (!c) return;
        (void)PMPI_Comm_idup_with_info(handle, MPI_INFO_NULL, out, &c->request);
        settle_now(c);
        return;
    case 10:
        if (!comm->remote)
            (void)PMPI_Comm_split_type(handle, MPI_COMM_TYPE_SHARED, key,
                                       MPI_INFO_NULL, out);
        return;
    default: {
        MPI_Group mine = part_of(handle, 0), theirs = part_of(handle, color);
        run_call_twice(channel(&comm_self, AGREE_SESSION),
                       channel(&comm_self, AGREE_UNION), TAG_OF_NOTHING);
        if (!comm->remote && mine != MPI_GROUP_NULL)
            (void)PMPI_Intercomm_create_from_groups(
                mine, 0, theirs, 0, "", MPI_INFO_NULL, MPI_ERRORS_RETURN, out);
        if (mine != MPI_GROUP_NULL) (void)PMPI_Group_free(&mine);
        if (theirs != MPI_GROUP_NULL) (void)PMPI_Group_free(&theirs);
        return;
    }
    }
}

/* No two communicators of this rank have one context, and none is too large. */
static void check_contexts(void)
{
    for (uint32_t i = 2; i < CALL_COMMS; i++) {
        if (call_comms[i] == MPI_COMM_NULL || call_comm_waits[i]) continue;
        uint32_t context = comm_find(call_comms[i])->context;
        if (context < 2 || context > CONTEXT_MASK)
            run_fail("a context that cannot be");
        for (uint32_t k = 2; k < i; k++)
            /* The last one is that of duplicates that failed. */
            if (call_comms[k] != MPI_COMM_NULL && !call_comm_waits[k] &&
                comm_find(call_comms[k])->context == context &&
                context != CONTEXT_MASK)
                run_fail("two communicators with one context");
    }
}

/* Requests keep what they need of it. */
static void drop(uint8_t index)
{
    if (index >= 2) (void)PMPI_Comm_free(&call_comms[index]);
}

/* What a program asks of a communicator. */
static void inquire(MPI_Comm handle)
{
    char name[MPI_MAX_OBJECT_NAME];
    int inter = 0, number;
    MPI_Group group = MPI_GROUP_NULL;
    (void)PMPI_Comm_rank(handle, &number);
    (void)PMPI_Comm_size(handle, &number);
    (void)PMPI_Comm_set_name(handle, "a communicator");
    (void)PMPI_Comm_get_name(handle, name, &number);
    (void)PMPI_Comm_compare(handle, MPI_COMM_WORLD, &number);
    (void)PMPI_Comm_test_inter(handle, &inter);
    if (!inter) return;
    (void)PMPI_Comm_remote_size(handle, &number);
    (void)PMPI_Comm_remote_group(handle, &group);
    if (group != MPI_GROUP_NULL) (void)PMPI_Group_free(&group);
}

static void repair(MPI_Comm handle, uint8_t which)
{
    MPI_Group group = MPI_GROUP_NULL;
    int flag = which;
    struct call_slot *c;
    switch (which % 8) {
    case 0:
        (void)PMPIX_Comm_revoke(handle);
        return;
    case 1:
        (void)PMPIX_Comm_failure_ack(handle);
        return;
    case 2:
        (void)PMPIX_Comm_failure_get_acked(handle, &group);
        break;
    case 3:
        (void)PMPIX_Comm_get_failed(handle, &group);
        (void)PMPIX_Comm_ack_failed(handle, which / 8, &flag);
        break;
    case 4:
        (void)PMPIX_Comm_agree(handle, &flag);
        return;
    case 5:
        c = later(CALL_COMMS);
        if (!c) return;
        (void)PMPIX_Comm_iagree(handle, &c->flag, &c->request);
        settle_now(c);
        return;
    case 6:
        (void)PMPIX_Comm_is_revoked(handle, &flag);
        return;
    default:
        inquire(handle);
        return;
    }
    if (group != MPI_GROUP_NULL) (void)PMPI_Group_free(&group);
}

static void synchronize(MPI_Comm handle, uint8_t which)
{
    PCCL_Shared_state *state = NULL;
    float numbers[4] = {0};
    uint64_t revision;
    MPI_Count received;
    if (PCCL_State_create(&state) != MPI_SUCCESS) return;
    (void)PCCL_State_add(state, "numbers", numbers, 4, MPI_FLOAT);
    (void)PCCL_State_set_revision(state, which);
    (void)PCCL_Sync_shared_state(handle, state, PCCL_SYNC_POPULAR, &received);
    (void)PCCL_State_get_revision(state, &revision);
    (void)PCCL_State_free(&state);
}

static void partial(MPI_Comm handle, bool in_place)
{
    double numbers[4] = {0}, sums[4] = {0};
    PCCL_Partial_part parts[2];
    PCCL_Partial_info info = {.parts = parts, .part_room = 2};
    PCCL_Partial_options options = {.weight = 1, .deadline_ms = 100};
    (void)PCCL_Allreduce_partial(in_place ? MPI_IN_PLACE : numbers, sums, 4,
                                 MPI_DOUBLE, &options, handle, &info);
}

static void change_world(MPI_Comm handle, uint8_t which)
{
    PCCL_Progress progress;
    int flag;
    switch (which % 8) {
    case 0:
        (void)PCCL_Update_topology(handle);
        return;
    case 1:
        (void)PCCL_Optimize_topology(handle);
        return;
    case 2:
        (void)PCCL_Are_peers_pending(handle, &flag);
        return;
    case 3:
        (void)PCCL_Report_progress(handle, which, 1, 2);
        return;
    case 4:
        (void)PCCL_Get_progress(handle, &progress);
        return;
    case 5:
        synchronize(handle, which);
        return;
    case 6:
        partial(handle, which & 64);
        return;
    default:
        (void)PCCL_Drain_requested(&flag);
        return;
    }
}

void call_make(uint8_t kind, uint8_t index, struct fuzz_input *in)
{
    MPI_Comm handle = call_comms[index];
    uint32_t place = free_place();
    run_call(comm_find(handle)->context, 0);
    switch (kind) {
    case CALL_MAKE:
        if (place < CALL_COMMS) make(handle, place, in);
        check_contexts();
        return;
    case CALL_FREE:
        drop(index);
        return;
    case CALL_ULFM:
        repair(handle, fuzz_u8(in));
        return;
    case CALL_ELASTIC:
        change_world(handle, fuzz_u8(in));
        return;
    default:
        return;
    }
}
