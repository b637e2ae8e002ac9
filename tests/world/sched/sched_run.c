/* sched_run.c - a master and its members in one process, under the schedule.
 * See sched_program.h. */
#include "sched_program.h"

#include <stdlib.h>

enum { ELEMENTS_MAX = 48 * 1024 };

uint32_t sched_common(const struct sched_run *run, uint64_t what,
                      uint32_t limit)
{
    uint64_t z = run->seed * UINT64_C(0x9e3779b97f4a7c15) + what * 2 + 1;
    z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
    return (uint32_t)((z ^ z >> 31) % limit);
}

static ccoip_socket_address_t address(uint16_t port)
{
    ccoip_socket_address_t a = {.inet = {.protocol = inetIPv4}, .port = port};
    a.inet.ipv4.data[0] = 127;
    a.inet.ipv4.data[3] = 1;
    return a;
}

static bool all_met(void *user)
{
    const struct sched_seat *seat = user;
    const struct sched_run *run = seat->run;
    for (int i = 0; i < run->members; i++) {
        bool gone = sched_is_dead(i) || run->seats[i].ended;
        if (!gone && run->met[i] < run->met[seat->member]) return false;
    }
    return true;
}

void sched_meet(struct sched_seat *seat)
{
    seat->run->met[seat->member]++;
    sched_wait(all_met, seat);
}

void sched_join(struct sched_seat *seat)
{
    pcclCommCreateParams_t params = {.master_address = address(seat->run->port),
                                     .p2p_connection_pool_size = 1};
    pcclCommOptions_t options = {.size = sizeof options,
                                 .rank_hint = seat->member};
    SCHED_RESULT(seat, pcclCreateCommunicator(&params, &seat->comm),
                 pcclSuccess);
    SCHED_RESULT(seat, pcclSetOptions(seat->comm, &options), pcclSuccess);
    SCHED_RESULT(seat, pcclConnect(seat->comm), pcclSuccess);
}

int sched_world(const struct sched_seat *seat, int *rank)
{
    int size = 0;
    SCHED_RESULT(seat, pcclGetView(seat->comm, NULL, rank, &size, NULL, 0),
                 pcclSuccess);
    return size;
}

void sched_gather(struct sched_seat *seat, int size)
{
    while (sched_world(seat, NULL) < size) {
        SCHED_RESULT(seat, pcclUpdateTopology(seat->comm), pcclSuccess);
        sched_point_yield(); /* who is missing must come */
    }
    SCHED_CHECK(seat, sched_world(seat, NULL) == size);
}

static void *be_member(void *argument)
{
    struct sched_seat *seat = argument;
    struct sched_run *run = seat->run;
    const struct sched_program *program = run->program;
    sched_set_member(seat->member);
    seat->in = calloc(ELEMENTS_MAX, sizeof *seat->in);
    seat->out = calloc(ELEMENTS_MAX, sizeof *seat->out);
    if (!seat->in || !seat->out) abort();
    if (seat->member < run->founders) {
        sched_join(seat);
        sched_gather(seat, run->founders);
    }
    sched_meet(seat);
    if (program->loses && seat->member == 0)
        sched_kill_later((int)sched_common(run, 2, (uint32_t)run->founders),
                         sched_common(run, 3, 6000));
    if (program->prompt) sched_set_prompt(true);
    program->body(seat);
    sched_meet(seat);
    if (program->prompt) sched_set_prompt(false);
    if (seat->comm)
        SCHED_RESULT(seat, pcclDestroyCommunicator(seat->comm), pcclSuccess);
    seat->ended = true;
    return NULL;
}

static bool all_ended(void *user)
{
    const struct sched_run *run = user;
    for (int i = 0; i < run->members; i++)
        if (!run->seats[i].ended && !sched_is_dead(i)) return false;
    return true;
}

static uint64_t number(const char *variable, uint64_t otherwise)
{
    const char *text = getenv(variable);
    return text ? strtoull(text, NULL, 10) : otherwise;
}

static struct sched_options options_for(uint64_t seed, struct sched_run *run)
{
    static const uint32_t rates[] = {2, 8, 40, 300};
    static const uint32_t horizons[] = {500, 4000, 30000};
    static const int buffers[] = {0, 0, 4608, 20000};
    struct sched_options o = {
        .seed = seed,
        .weak = sched_common(run, 10, 4) > 0,
        .short_io = sched_common(run, 11, 3) == 0,
        .spurious = sched_common(run, 12, 3) == 0,
        .slow = sched_common(run, 13, 3) == 0 ? 200 : 0,
        .processors = 1 + sched_common(run, 14, 8),
        .send_buffer = buffers[sched_common(run, 15, 4)],
        .points = number("SCHED_POINTS", 3000000),
        .trace = number("SCHED_TRACE", 0),
    };
    if (sched_common(run, 16, 2) == 0) {
        o.switch_one_in = rates[sched_common(run, 17, 4)];
    } else {
        o.changes = 1 + sched_common(run, 17, 6);
        o.horizon = horizons[sched_common(run, 18, 3)];
    }
    return o;
}

void sched_run_program(const struct sched_program *program, uint64_t seed)
{
    static struct sched_run run;
    static pthread_t threads[SCHED_MEMBERS_MAX];
    int most =
        program->members_most ? program->members_most : SCHED_MEMBERS_MAX;
    run = (struct sched_run){.seed = seed, .program = program};
    run.founders = 2 + (int)sched_common(&run, 0, (uint32_t)most - 1);
    run.members = run.founders + program->joins;
    run.rounds = 1 + (int)sched_common(&run, 1, (uint32_t)program->rounds);
    bool tcp = sched_common(&run, 4, 3) == 0;
    setenv("PCCL_TRANSPORT", tcp ? "tcp" : "auto", 1);
    struct sched_options options = options_for(seed, &run);
    sched_begin(&options);
    if (pcclInit() != pcclSuccess ||
        pcclCreateMaster(address(0), &run.master) != pcclSuccess ||
        pcclRunMaster(run.master) != pcclSuccess ||
        pcclGetMasterPort(run.master, &run.port) != pcclSuccess)
        sched_fail("the master does not start");
    for (int i = 0; i < run.members; i++) {
        run.seats[i] = (struct sched_seat){.run = &run, .member = i};
        if (pthread_create(&threads[i], NULL, be_member, &run.seats[i]) != 0)
            sched_fail("a member does not start");
    }
    sched_wait(all_ended, &run);
    for (int i = 0; i < run.members; i++)
        if (!sched_is_dead(i)) (void)pthread_join(threads[i], NULL);
    if (pcclDestroyMaster(run.master) != pcclSuccess)
        sched_fail("the master does not end");
    sched_end();
}
