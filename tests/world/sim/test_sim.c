/* test_sim.c - the whole protocol under every fault that its authors know.
 *
 * Goal: members never disagree about an operation, a view or a loss, no member
 * waits for a dead one, and once the faults stop all members go on.
 * Method: each seed is one universe; see sim.h.
 * Replay: ./test_sim SEED 1 runs exactly the same events again; with
 * SIM_TRACE=1 in the environment it prints them. PCCL_SOAK=1 runs many. */
#include "failed_once.h"
#include "faults.h"
#include "rare.h"
#include "scarce.h"
#include "tally.h"
#include "witness.h"

#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { UNIVERSES = 2500 }; /* of which each must show every event */

static const char *program_name;
static const char
    *all_of; /* the kind of all universes; NULL: the seed decides */

static bool is_kind(const char *name)
{
    return all_of && strcmp(all_of, name) == 0;
}

static void on_crash(int number)
{
    char text[256];
    int size = snprintf(text, sizeof text,
                        "seed %" PRIu64 " failed; replay: SIM_TRACE=1 %s "
                        "%" PRIu64 " 1 %s\n",
                        sim_seed, program_name, sim_seed, all_of ? all_of : "");
    if (size > 0 && write(STDERR_FILENO, text, (size_t)size) < 0) _exit(3);
    (void)signal(number, SIG_DFL);
    (void)raise(number);
}

static const char *some_algorithm(uint64_t number)
{
    uint32_t count = 0;
    while (algorithm_by_number(count)) count++;
    return algorithm_by_number((uint32_t)(number % count))->name;
}

static bool on(uint64_t *r, uint32_t one_in)
{
    return net_pick(r, one_in) == 0;
}

/* The faults. */
static void choose_faults(struct sim_options *o, uint64_t *r, uint32_t rate)
{
    if (on(r, 2)) o->crash = rate;
    if (on(r, 4)) o->freeze = rate / 2;
    if (on(r, 3)) o->reset = rate * 2;
    if (on(r, 8)) o->control_reset = rate / 2;
    if (on(r, 6)) o->refuse = rate;
    if (on(r, 5)) o->stall = rate;
    if (on(r, 4)) o->leave = rate;
    if (on(r, 2)) o->join = rate;
}

/* The calls of the program. */
static void choose_calls(struct sim_options *o, uint64_t *r)
{
    o->variant_skip = on(r, 3);
    o->variant_resync = on(r, 4) || o->refuse > 0;
    if (o->variant_resync) o->variant_skip = false;
    o->mismatch = on(r, 8);
    o->odd_vote = !o->mismatch && on(r, 8);
    if (o->mismatch || o->odd_vote) {
        o->variant_resync = true;
        o->variant_skip = false;
    }
    /* Groups vote in step; a step of one group alone would break that. */
    if (o->refuse) o->steps += 6000;
    if (o->refuse || o->odd_vote || o->reset || o->stall || o->freeze)
        o->groups = 1;
    /* An unreachable scope would separate the steps of its members. */
    o->scoped = on(r, 3) && !o->refuse;
    o->large = on(r, 6);
    o->local = on(r, 2);
    o->burst = on(r, 4);
}

/* Losses at bad moments. */
static void choose_moments(struct sim_options *o, uint64_t *r)
{
    if (!o->large && on(r, 8)) { /* results in doubt: rules D5..D7 */
        o->slow = true;
        o->pool = 2 + net_pick(r, 2);
        o->stall = 20000;
        o->crash = 2500;
        o->join = 2500;
        o->groups = 1;
    }
    if (!o->slow && !o->refuse && on(r, 6)) { /* losses amid transfers */
        o->storm = true;
        o->large = true;
        o->pool = 1;
        o->crash = 300;
        o->join = 5000;
        o->steps += 12000; /* for a synchronization takes many */
        o->leave = on(r, 2) ? 2000 : 0;
    }
}

/* Two members never reach each other, and the others do. */
static bool is_parted(uint64_t seed)
{
    return seed % 40 == 18;
}

/* Connections, shared memory, and the places of members. */
static void choose_links(struct sim_options *o, uint64_t *r, uint64_t seed)
{
    uint32_t procs = o->procs;
    o->pipe_min = o->large ? 32768 : 100;
    o->pipe_max = o->pipe_min + (1u << net_pick(r, 17));
    if (on(r, 2)) o->sync = on(r, 2) ? 2 : 5;
    if (o->storm) o->sync = 7;
    if (o->storm && procs > 3 && seed % 2 == 0) o->groups = 2;
    o->liars = on(r, 6);
    o->delay_max = 1u << net_pick(r, o->storm ? 14 : 20);
    if (on(r, 2))
        o->share = 4096u << (o->large ? 3 + net_pick(r, 3) : net_pick(r, 4));
    o->share_fails = on(r, 3);
    o->optimize = on(r, o->refuse ? 2 : 3);
    o->one_host = on(r, 2);
    o->fails =
        on(r, 5) && !o->refuse && !o->mismatch && !o->odd_vote && !o->slow;
    o->one_way = on(r, 8);
    o->cut = o->refuse > 0 && procs >= 4 && (on(r, 2) || is_parted(seed));
    if (seed % 16 == 5 && !o->slow && !o->storm && !o->refuse) {
        /* Links of several connections lose one now and then. */
        o->pool = 2 + net_pick(r, 3);
        o->share = 0;
        o->groups = 1;
        o->reset = 8000;
        o->half_reset = true;
        o->steps += 6000;
        if (on(r, 2)) o->crash = o->freeze = o->leave = o->join = 0;
    }
    o->pairwise = o->one_host && o->share > 0 && on(r, 2);
    o->interleaved = o->pairwise && on(r, 2);
    o->letters = on(r, 5) || (o->one_way && on(r, 2));
    if (!o->one_host && on(r, 2)) o->sites = 2 + net_pick(r, 2);
    if (o->large && o->share > 0 && seed % 2 == 0) {
        o->one_host = o->pairwise = true;
        o->sites = 0;
    }
    o->lends = o->pairwise && (seed % 2 == 0 || on(r, 2));
    if (o->lends) o->piece = 8192u << net_pick(r, 4);
    if (seed % 3 == 1) o->algorithm = some_algorithm(seed / 3);
    if (seed % 40 == 9 && !o->slow) { /* interleaved rings lose members */
        o->one_host = o->pairwise = o->interleaved = true;
        o->sites = 0;
        o->large = true;
        o->pipe_min = 32768;
        o->pipe_max = o->pipe_min + (1u << net_pick(r, 17));
        o->share = 4096u << (3 + net_pick(r, 3));
        o->algorithm = "ring";
        o->crash = 400;
        o->join = 2000;
    }
}

/* Universes without CPU time for some, and nothing else. */
static void choose_calm(struct sim_options *o, uint64_t *r, uint64_t seed)
{
    uint32_t rate = 200 + net_pick(r, 1000);
    if (seed % 12 == 7 || on(r, 8)) o->starve = rate;
    if (seed % 12 == 7 || on(r, 8)) o->pause = rate / 2;
    if (o->starve || o->pause) o->groups = 1;
    if (seed % 8 == 3) o->mute = rate / 2;
    if (seed % 12 != 7 || o->slow || o->storm || o->mismatch || o->odd_vote ||
        o->one_way)
        return;
    o->crash = o->freeze = o->reset = o->control_reset = o->refuse = o->stall =
        o->leave = o->mute = 0;
    o->half_reset = o->cut = false;
    o->calm = true;
    sim_coverage.calm++;
}

/* Worlds beyond those that link all pairs and are searched exhaustively. */
static void choose_many(struct sim_options *o, uint64_t seed)
{
    if (seed % 11 != 4 || o->large || o->slow) return;
    uint32_t procs = SIM_FEW + 1 + (uint32_t)(seed / 11 % 9);
    if (o->quorum == o->procs) o->quorum = procs;
    o->procs = procs;
    o->alive_max = SIM_ALIVE_MAX;
    o->steps *= 2;
}

/* Faults that last, and no other: each call is judged by C3. */
static void choose_lasting(struct sim_options *o, uint64_t *r, uint64_t seed)
{
    enum sim_single kind = (enum sim_single)(1 + seed / 9 % (SINGLE_COUNT - 1));
    uint32_t count = 1 + net_pick(r, 3);
    if (seed % 9 != 5 || o->storm || o->slow || o->calm) return;
    o->crash = o->freeze = o->reset = o->control_reset = o->refuse = o->stall =
        o->leave = o->starve = o->pause = o->mute = 0;
    o->half_reset = o->cut = o->mismatch = o->odd_vote = o->large = o->fails =
        o->liars = o->one_way = o->optimize = false;
    o->single = kind;
    o->lasting = count;
    if (o->procs < 3) o->procs += 3;
    o->quorum = o->procs;
    o->groups = 1;
    o->join /= 4;
    if (o->pipe_min < 4096) o->pipe_max += o->pipe_min = 4096;
    /* A scope without a link would separate the steps of its members. */
    o->scoped &= kind == SINGLE_PROCESS || kind == SINGLE_HOST;
    if (o->scoped) o->lasting = 1;
}

/* What nobody does who is correct, and clocks. */
static void choose_strange(struct sim_options *o, uint64_t *r, uint64_t seed)
{
    uint32_t rate = 100 + net_pick(r, 1000);
    bool stutter = on(r, 8), garble = on(r, 8), strangers = on(r, 8);
    o->clocks = seed % 5 == 2;
    if (o->calm || o->lasting) return;
    if (stutter) o->stutter = rate;
    if (garble) o->garble = rate;
    if (strangers) o->strangers = rate;
    if (garble || stutter) o->groups = 1;
}

/* Members of one host that mostly use the fast path, while anything happens. */
static bool is_fast(uint64_t seed)
{
    if (is_kind("rooted") && seed % 2 == 0) return true;
    return is_kind("fast") || seed % 13 == 3 || seed % 13 == 8;
}

static void choose_errors(struct sim_options *o, uint64_t *r)
{
    o->variant_skip = on(r, 3);
    o->variant_resync = !o->variant_skip && on(r, 3);
    o->mismatch = on(r, 5);
    o->odd_vote = !o->mismatch && on(r, 5);
    o->fails = !o->mismatch && !o->odd_vote && on(r, 3);
    if (!o->mismatch && !o->odd_vote) return;
    o->variant_resync = true;
    o->variant_skip = false;
}

static struct sim_options choose_fast(uint64_t seed)
{
    uint64_t r = seed ^ 0xfa57;
    uint32_t rate = 200 + net_pick(&r, 1500);
    struct sim_options o = {.procs = 2 + net_pick(&r, 4),
                            .steps = 20000 + net_pick(&r, 40000),
                            .groups = 1,
                            .pool = 1,
                            .alive_max = SIM_FEW,
                            .one_host = true,
                            .pairwise = true,
                            .lends = seed / 8 % 2 == 1,
                            .fast = true};
    o.quorum = o.procs;
    o.fast_stops = on(&r, 2);
    o.fast_patience = 1u << net_pick(&r, 10);
    o.share = 4096u << net_pick(&r, 4);
    o.share_fails = on(&r, 4);
    o.pipe_min = 100;
    o.pipe_max = 100 + (1u << net_pick(&r, 17));
    o.delay_max = 1u << net_pick(&r, 18);
    o.burst = on(&r, 3);
    o.letters = on(&r, 6);
    o.scoped = on(&r, 5);
    o.sync = on(&r, 5) ? 2 : 0;
    o.optimize = on(&r, 8);
    o.clocks = on(&r, 5);
    choose_errors(&o, &r);
    if (on(&r, 2)) o.crash = rate;
    if (on(&r, 3)) o.freeze = rate / 2;
    if (on(&r, 6)) o.starve = rate / 2;
    if (on(&r, 3)) o.reset = 2 * rate;
    if (on(&r, 8)) o.control_reset = rate / 4;
    if (on(&r, 5)) o.stall = rate;
    if (on(&r, 4)) o.leave = rate / 2;
    if (on(&r, 8)) o.mute = rate / 4;
    if (on(&r, 8)) o.pause = rate / 4;
    if (o.crash || o.leave || on(&r, 4)) o.join = 4 * rate;
    choose_lasting(&o, &r, on(&r, 6) ? 9 * net_pick(&r, SINGLE_COUNT) + 5 : 0);
    sim_choose_tree(&o, seed);
    if (!o.lasting) choose_strange(&o, &r, seed);
    return o;
}

/* A master with short queues, members that stand still, crowds of strangers. */
static void choose_narrow(struct sim_options *o, uint64_t *r, uint64_t seed)
{
    uint32_t rate = 300 + net_pick(r, 1500), bytes = 60 + net_pick(r, 500);
    if (seed % 19 != 11 || o->calm || o->lasting || o->starve || o->pause ||
        o->mute || o->walls || o->alive_max > SIM_FEW)
        return;
    o->narrow = bytes;
    o->freeze = o->strangers = rate;
    o->groups = 1;
}

/* Swarm testing: many universes know only one or two kinds of fault. The draws
 * have an order, by which a seed means the same universe tomorrow. */
static struct sim_options choose(uint64_t seed)
{
    if (is_fast(seed)) return choose_fast(seed);
    uint64_t r = seed ^ 0xabcdef;
    uint32_t procs = 1 + net_pick(&r, SIM_FEW);
    struct sim_options o = {.procs = procs, .steps = 3000 + net_pick(&r, 6000)};
    uint32_t rate = 100 + net_pick(&r, 1500);
    o.pool = on(&r, 3) ? 1 + net_pick(&r, 3) : 1;
    if (o.pool == 1 && seed % 4 == 0) o.pool = 0; /* as the library likes */
    o.groups = on(&r, 6) && procs > 1 ? 2 : 1;
    o.quorum = on(&r, 4) ? 1 + net_pick(&r, procs) : procs;
    o.alive_max = SIM_FEW;
    choose_faults(&o, &r, rate);
    if (is_parted(seed)) {
        if (procs < 4) o.procs = o.quorum = procs = 4;
        o.crash = o.freeze = o.leave = o.reset = o.control_reset = 0;
        o.refuse = 1;
    }
    choose_calls(&o, &r);
    choose_moments(&o, &r);
    choose_links(&o, &r, seed);
    sim_choose_lost(&o, seed, all_of != NULL);
    if (seed % 8 != 4) o.tree_width = 2 + (uint32_t)(seed / 3 % 2);
    choose_calm(&o, &r, seed);
    choose_many(&o, seed);
    choose_lasting(&o, &r, seed);
    if (is_kind("walls") || (!all_of && seed % 17 == 8)) walls_choose(&o, &r);
    if (is_kind("doors") || (!all_of && seed % 13 == 6)) doors_choose(&o, &r);
    sim_choose_grid(&o, seed, is_kind("grid"), all_of != NULL);
    choose_strange(&o, &r, seed);
    choose_narrow(&o, &r, seed);
    o.counts = counted_is(seed);
    sim_choose_minimum(&o, seed);
    return o;
}

/* Members that disagree, and lose others at the same moment. */
static void disagree(struct sim_options *o, uint64_t seed)
{
    o->mismatch = o->variant_resync = true;
    o->odd_vote = o->variant_skip = o->fails = o->calm = false;
    o->starve = o->pause = o->mute = o->freeze = o->refuse = o->stall = 0;
    o->reset = o->control_reset = 0;
    o->half_reset = o->cut = o->one_way = o->storm = o->large = false;
    o->single = SINGLE_NONE;
    o->lasting = o->stutter = o->garble = o->strangers = o->narrow = 0;
    o->alive_max = SIM_FEW;
    if (o->procs > SIM_FEW) o->procs = SIM_FEW;
    if (o->quorum > o->procs) o->quorum = o->procs;
    o->crash = seed % 2 ? 1500 : 0;
    o->leave = seed % 2 ? 0 : 2500;
    o->join = 3000;
}

/* The cores take rare ways. */
static bool is_rare(uint64_t seed)
{
    bool mixes = !all_of || is_kind("fast") || is_kind("scarce");
    return is_kind("rare") || ((mixes || is_kind("rooted")) && seed % 7 == 6);
}

/* Faults that last in any universe, also of large vectors and mismatches. */
static void endure(struct sim_options *o, uint64_t seed)
{
    uint64_t r = seed ^ 0x1a57;
    o->storm = o->slow = o->calm = false;
    choose_lasting(o, &r, 9 * seed + 5);
    /* Of many members a large vector alone takes longer than a deadline. */
    o->large = on(&r, 2) && o->alive_max == SIM_FEW;
    if (o->large && o->pipe_min < 32768) o->pipe_max += o->pipe_min = 32768;
    if (o->large && o->share > 0 && o->share < 32768) o->share = 32768;
    o->mismatch = on(&r, 3);
    o->variant_resync |= o->mismatch;
    o->variant_skip &= !o->mismatch;
    o->stutter = o->garble = o->strangers = 0;
}

/* ----------------------------------------------------------------- memory */

static struct sim s;
static uint64_t memory_random;

/* Any allocation of a member's cores may fail, until all heals. */
static bool refuse(void)
{
    if (sim_turn == 0 || s.healing || s.options.refusals == 0) return false;
    bool refused = on(&memory_random, s.options.refusals);
    sim_coverage.scarce += refused;
    return refused;
}

static bool is_scarce(uint64_t seed)
{
    return is_kind("scarce") || seed % 17 == 6;
}

static void choose_scarce(struct sim_options *o, uint64_t seed)
{
    uint64_t r = seed ^ 0x5ca7ce;
    if (!is_scarce(seed) || is_kind("masters")) return;
    memory_random = r;
    o->scarce = true;
    o->refusals = 10u << net_pick(&r, 8);
    o->calm = false;
    o->single = SINGLE_NONE;
    o->lasting = 0;
}

static void universe(uint64_t seed)
{
    struct sim_options options = choose(seed);
    rooted_choose(&options, seed, is_kind("rooted"), all_of != NULL);
    even_choose(&options, seed, is_kind("even"), all_of != NULL);
    if (is_kind("disagree") || is_kind("masters") ||
        ((options.rooted || options.even) && seed % 3 == 0))
        disagree(&options, seed);
    if (is_kind("lasting")) endure(&options, seed);
    if (is_kind("masters")) masters_choose(&options, seed);
    choose_scarce(&options, seed);
    fetch_choose(&options, seed);
    options.averages = is_kind("averages") || (!all_of && seed % 10 == 7) ||
                       (is_kind("masters") && seed % 4 == 0);
    /* Few lend memory, and fewer of them took rare ways (L8a). */
    bool few = !all_of && options.lends && seed % 4 == 0;
    bool rare = (is_rare(seed) || few) && options.single == SINGLE_NONE;
    rare_begin(seed, rare);
    tally_begin();
    /* It costs a link, and operations without one fail. */
    if (options.reset == 0) rare_forbid(BUGGIFY_unexpected_full);
    /* All pairs of the walled are bad at a time. */
    if (options.walls) rare_forbid(BUGGIFY_edges_few);
    /* Each block is an allocation. */
    if (options.scarce) rare_force(BUGGIFY_pool_empty);
    sim_init(&s, seed, &options);
    sim_run(&s);
    sim_free(&s);
    rare_end();
    tally_end(&options, s.steps, all_of, rare);
}

static void repeat_failed(void)
{
    for (size_t i = 0; i < ARRAY_COUNT(failed_once); i++) {
        all_of = failed_once[i].kind;
        universe(failed_once[i].seed);
    }
    all_of = NULL;
}

/* As [KIND:]SEED, which --judge takes. */
static int list_failed(void)
{
    for (size_t i = 0; i < ARRAY_COUNT(failed_once); i++) {
        const char *of = failed_once[i].kind;
        printf("%s%s%" PRIu64 "\n", of ? of : "", of ? ":" : "",
               failed_once[i].seed);
    }
    return 0;
}

static const char *const kinds[] = {"averages", "disagree", "doors",   "even",
                                    "fast",     "lasting",  "masters", "grid",
                                    "rare",     "rooted",   "scarce",  "walls"};

static const char *kind_named(const char *name, size_t size)
{
    for (size_t i = 0; i < ARRAY_COUNT(kinds); i++)
        if (strlen(kinds[i]) == size && strncmp(kinds[i], name, size) == 0)
            return kinds[i];
    return NULL;
}

/* [KIND:]SEED; false: there is no such universe. */
static bool parse_name(const char *name, uint64_t *seed)
{
    const char *colon = strchr(name, ':');
    const char *digits = colon ? colon + 1 : name;
    char *end;
    all_of = colon ? kind_named(name, (size_t)(colon - name)) : NULL;
    *seed = strtoull(digits, &end, 10);
    return *digits >= '0' && *digits <= '9' && *end == '\0' &&
           (all_of != NULL) == (colon != NULL);
}

static void universe_named(const char *name)
{
    uint64_t seed;
    if (parse_name(name, &seed)) universe(seed);
}

static int judge_named(char **names, uint32_t count)
{
    uint64_t seed;
    for (uint32_t i = 0; i < count; i++) {
        if (parse_name(names[i], &seed)) continue;
        fprintf(stderr, "no universe is named %s\n", names[i]);
        return 2;
    }
    if (count == 0) fprintf(stderr, "--judge: no universe is given\n");
    return count == 0 ? 2 : judge(names, count, universe_named);
}

static int report_algorithms(uint64_t count)
{
    int missing = 0;
    const struct algorithm *a;
    for (uint32_t i = 0; (a = algorithm_by_number(i)) != NULL; i++) {
        const char *type =
            algorithm_coll_name((enum plan_coll)__builtin_ctz(a->colls));
        printf("%s %s %" PRIu64 ", ", type, a->name,
               sim_coverage_algorithms[i]);
        if (sim_coverage_algorithms[i] > 0 || count < UNIVERSES) continue;
        fprintf(stderr, "never happened: %s %s\n", type, a->name);
        missing++;
    }
    return missing;
}

/* A link that a probe cannot make is rare since both ends dial. The cases of
 * test_probes have it; those of test_unreachable a pair for which
 * nobody relays. */
static bool may_lack(const uint64_t *event)
{
    bool masters =
        event >= &sim_coverage.masters && event <= &sim_coverage.resumed_syncs;
    if (masters) return !is_kind("masters");
    return is_kind("masters") || event == &sim_coverage.probe_failed ||
           event == &sim_coverage.unreachable ||
           event == &sim_coverage.relayed_lost; /* enough of kind "walls" */
}

static int report(uint64_t count, double seconds)
{
    int missing = 0;
    bool shows = count >= (is_kind("masters") ? 1000 : UNIVERSES);
    printf("%" PRIu64 " universes in %.1f s, %.0f a second\n", count, seconds,
           (double)count / seconds);
#define X(name)                                                                \
    printf(#name " %" PRIu64 ", ", sim_coverage.name);                         \
    if (sim_coverage.name == 0 && shows && !may_lack(&sim_coverage.name)) {    \
        fprintf(stderr, "never happened: " #name "\n");                        \
        missing++;                                                             \
    }
    SIM_COVERAGE(X)
#undef X
    missing += report_algorithms(count);
    printf("end\n");
    missing += rare_report(count >= UNIVERSES);
    tally_report();
    /* No universe shows nothing. */
    return missing == 0 && count > 0 ? 0 : 1;
}

int main(int argc, char **argv)
{
    program_name = argv[0];
    setvbuf(stdout, NULL, _IOLBF, 0);
    scarce_keeps();
    (void)signal(SIGABRT, on_crash);
    (void)signal(SIGSEGV, on_crash);
    (void)signal(SIGXCPU, on_crash); /* it does not end */
    scarce_refuses = refuse;
    uint64_t first = argc > 1 ? strtoull(argv[1], NULL, 0) : 1;
    const char *soak = getenv("PCCL_SOAK");
    uint64_t count = soak && *soak ? 300000 : UNIVERSES;
    if (argc > 2) count = strtoull(argv[2], NULL, 0);
    const char *trace = getenv("SIM_TRACE");
    sim_trace = trace && *trace;
    if (argc > 1 && strcmp(argv[1], "--judge") == 0)
        return judge_named(argv + 2, (uint32_t)argc - 2);
    if (argc > 1 && strcmp(argv[1], "--failed") == 0) return list_failed();
    all_of = argc > 3 ? kind_named(argv[3], strlen(argv[3])) : NULL;
    if (argc > 3 && !all_of) {
        fprintf(stderr, "no kind of universe is named %s\n", argv[3]);
        return 2;
    }
    struct timespec a, b;
    if (argc <= 1) repeat_failed();
    clock_gettime(CLOCK_MONOTONIC, &a);
    for (uint64_t i = 0; i < count; i++) universe(first + i);
    clock_gettime(CLOCK_MONOTONIC, &b);
    return report(count, (double)(b.tv_sec - a.tv_sec) +
                             (double)(b.tv_nsec - a.tv_nsec) / 1e9);
}
