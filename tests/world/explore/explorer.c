/* explorer.c - all universes of a few members, exhaustively.
 *
 * Goal: no order of deliveries, no point of a crash and no order of timeouts
 * breaks the contract, for worlds small enough to look at all of them.
 * Method: the real cores as functions from state and event to state and
 * effects (party.h), all choices between them (universe.h), breadth first
 * (exhaust.h).
 * Replay: explorer OPTIONS --replay 'CHOICES' with what a failure printed. */
#include "exhaust.h"

#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct options {
    struct party_config party;
    struct universe_config world;
    struct exhaust_limits limits;
    bool join, finds, one_end, path;
    const char *replay;
};

enum {
    OPTION_MEMBERS = 256,
    OPTION_OPS,
    OPTION_CONCURRENT,
    OPTION_CRASH,
    OPTION_STOP,
    OPTION_CUT,
    OPTION_CUT_MASTER,
    OPTION_STALL,
    OPTION_JOIN,
    OPTION_LEAVE,
    OPTION_UPDATE,
    OPTION_ODD,
    OPTION_COUNT,
    OPTION_ALGORITHM,
    OPTION_STATES,
    OPTION_SECONDS,
    OPTION_MEMORY,
    OPTION_PATIENCE,
    OPTION_BROKEN,
    OPTION_FINDS,
    OPTION_ONE_END,
    OPTION_PATH,
    OPTION_REMEMBER,
    OPTION_REPLAY,
};

static const struct option long_options[] = {
    {"members", 1, NULL, OPTION_MEMBERS},
    {"ops", 1, NULL, OPTION_OPS},
    {"concurrent", 0, NULL, OPTION_CONCURRENT},
    {"crash", 1, NULL, OPTION_CRASH},
    {"stop", 1, NULL, OPTION_STOP},
    {"cut", 1, NULL, OPTION_CUT},
    {"cut-master", 1, NULL, OPTION_CUT_MASTER},
    {"stall", 1, NULL, OPTION_STALL},
    {"join", 0, NULL, OPTION_JOIN},
    {"leave", 0, NULL, OPTION_LEAVE},
    {"update", 0, NULL, OPTION_UPDATE},
    {"odd", 0, NULL, OPTION_ODD},
    {"count", 1, NULL, OPTION_COUNT},
    {"algorithm", 1, NULL, OPTION_ALGORITHM},
    {"states", 1, NULL, OPTION_STATES},
    {"seconds", 1, NULL, OPTION_SECONDS},
    {"memory", 1, NULL, OPTION_MEMORY},
    {"patience", 1, NULL, OPTION_PATIENCE},
    {"broken", 0, NULL, OPTION_BROKEN},
    {"finds", 0, NULL, OPTION_FINDS},
    {"one-end", 0, NULL, OPTION_ONE_END},
    {"path", 0, NULL, OPTION_PATH},
    {"remember", 0, NULL, OPTION_REMEMBER},
    {"replay", 1, NULL, OPTION_REPLAY},
    {NULL, 0, NULL, 0}};

static int usage(void)
{
    (void)fprintf(
        stderr, "explorer [--members N] [--ops N] [--concurrent] [--crash N] "
                "[--stop N]\n"
                "  [--cut N] [--cut-master N] [--stall STEPS] [--join] "
                "[--leave] [--update] [--odd]\n"
                "  [--count N] [--algorithm NAME] [--states N] [--seconds N]\n"
                "  [--memory MIB] [--patience STEPS] [--broken] [--finds]\n"
                "  [--one-end] [--path] [--remember] [--replay CHOICES]\n"
                "see tests/README.md\n");
    return 2;
}

static void set_number(struct options *o, int option, uint64_t value)
{
    switch (option) {
    case OPTION_MEMBERS:
        o->party.members = o->world.members = (uint32_t)value;
        break;
    case OPTION_OPS:
        o->party.ops = (uint32_t)value;
        break;
    case OPTION_CRASH:
    case OPTION_STOP:
    case OPTION_CUT:
    case OPTION_CUT_MASTER:
        o->world.faults[option - OPTION_CRASH] = (uint8_t)value;
        break;
    case OPTION_STALL:
        o->world.faults[FAULT_STALL] = value > 0;
        o->world.stall = (uint32_t)value;
        break;
    case OPTION_COUNT:
        o->party.count = (uint32_t)value;
        break;
    case OPTION_STATES:
        o->limits.states = value;
        break;
    case OPTION_SECONDS:
        o->limits.seconds = value;
        break;
    case OPTION_MEMORY:
        o->limits.memory = value << 20;
        break;
    case OPTION_PATIENCE:
        o->world.patience = (uint32_t)value;
        break;
    default:
        break;
    }
}

static bool parse(struct options *o, int argc, char **argv)
{
    int option;
    while ((option = getopt_long(argc, argv, "", long_options, NULL)) != -1) {
        if (option == '?') return false;
        if (option == OPTION_CONCURRENT) o->party.mode = MODE_CONCURRENT;
        o->join |= option == OPTION_JOIN;
        o->party.leaves |= option == OPTION_LEAVE;
        o->party.updates |= option == OPTION_UPDATE;
        o->party.odd |= option == OPTION_ODD;
        o->party.broken |= option == OPTION_BROKEN;
        o->finds |= option == OPTION_FINDS;
        o->one_end |= option == OPTION_ONE_END;
        o->path |= option == OPTION_PATH;
        o->party.remembers |= option == OPTION_REMEMBER;
        if (option == OPTION_ALGORITHM)
            o->party.algorithm = optarg;
        else if (option == OPTION_REPLAY)
            o->replay = optarg;
        else if (optarg)
            set_number(o, option, strtoull(optarg, NULL, 10));
    }
    const struct party_config *p = &o->party;
    for (int i = FAULT_STOP; i < FAULT_KINDS; i++)
        o->party.unsteady |= o->world.faults[i] > 0;
    return optind == argc && p->members >= 2 && p->members <= MEMBERS_MAX &&
           p->ops >= 1 && p->ops <= MEMBER_OPS_MAX && p->count >= 1 &&
           p->count <= 64;
}

/* All are members, and no program has made a step. */
static bool found(struct universe *w)
{
    for (int i = 0; i < 10000; i++) {
        if (exhaust_drain(w)) continue;
        if (universe_all_members(w)) break;
        struct universe next;
        struct choice c = {.kind = CHOICE_TIME};
        if (universe_choose(w, c, &next) == UNIVERSE_BAD) return false;
        memcpy(w, &next, universe_size(&next));
    }
    w->quiet = 0;
    return universe_all_members(w);
}

static int report(const struct options *o, const struct universe *start,
                  const struct exhaust_result *r)
{
    printf("%llu states, %llu edges, %llu ends with %llu outcomes, depth %u, "
           "%u party states, "
           "%llu runs of the cores, %llu MiB, %.0f s; a call waited %u steps\n",
           (unsigned long long)r->states, (unsigned long long)r->edges,
           (unsigned long long)r->ends, (unsigned long long)r->outcomes,
           r->depth, party_states(), (unsigned long long)party_runs,
           (unsigned long long)r->memory >> 20, r->seconds, r->longest);
    if (r->end == SEARCH_COMPLETE && r->ends == 0) {
        printf("violation: no end in a complete search\n");
        return 1;
    }
    if (r->end == SEARCH_COMPLETE) printf("complete\n");
    if (r->end == SEARCH_LIMITED)
        printf("incomplete: %llu states in the frontier\n",
               (unsigned long long)r->frontier);
    if (r->end == SEARCH_FOUND) {
        printf("violation: %s\n", r->error);
        exhaust_print_path(start);
    }
    if (o->path && r->end != SEARCH_FOUND) exhaust_print_path(start);
    if (o->one_end && r->ends != 1) {
        printf("violation: orders of the same events lead to %llu ends\n",
               (unsigned long long)r->ends);
        return 1;
    }
    if (o->finds) return r->end != SEARCH_FOUND;
    return r->end == SEARCH_FOUND;
}

int main(int argc, char **argv)
{
    struct options o = {.party = {.members = 2, .ops = 1, .count = 1},
                        .world = {.members = 2, .patience = 30}};
    if (!parse(&o, argc, argv)) return usage();
    static struct universe start;
    party_init(&o.party);
    universe_init(&start, &o.world);
    if (!o.join && !found(&start)) {
        printf("no first view: %s\n", universe_error());
        universe_print(&start);
        return 1;
    }
    if (o.replay) {
        bool good = exhaust_replay(&start, o.replay, true);
        if (!good) printf("violation: %s\n", universe_error());
        return good == o.finds;
    }
    struct exhaust_result r = exhaust_run(&start, &o.limits);
    return report(&o, &start, &r);
}
