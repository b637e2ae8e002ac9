/* sim_options.h - the features of a universe. */
#ifndef SIM_OPTIONS_H
#define SIM_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* One fault that lasts, in a universe without any other (lasting.c). */
enum sim_single {
    SINGLE_NONE,
    SINGLE_PROCESS, /* killed */
    SINGLE_HOST,    /* nothing passes to or from it */
    SINGLE_PAIR,    /* nothing passes between two */
    SINGLE_ONE_WAY, /* nothing passes from one to another */
    SINGLE_SMALL,   /* ... but small packets */
    SINGLE_SPLIT,   /* of the data network; all reach the master */
    SINGLE_LONELY,  /* one reaches the master, and no other */
    SINGLE_MASTER,  /* one reaches the others, and not the master */
    SINGLE_COUNT,
};

/* Swarm: the features of this universe; rates are per million steps. */
struct sim_options {
    uint32_t procs, pool, groups, quorum;
    uint32_t minimum; /* of members, or 0 (rule M14) */
    uint32_t crash, freeze, reset, control_reset, refuse, stall, leave, join;
    uint32_t starve, pause; /* a process gets no CPU time; the master */
    uint32_t mute;          /* a process sends heartbeats, and no answer */
    bool reports;           /* members tell what they wait in (rule W1) */
    bool scarce;            /* members may get no memory... */
    uint32_t refusals;      /* ... once in so many allocations */
    bool calm;              /* ... and nothing else: nobody may be lost */
    bool variant_skip, variant_resync; /* else the failed are repeated */
    bool odd_vote, mismatch, scoped, large, local, burst, slow, storm, liars;
    bool fails;
    bool amid; /* members crash in the midst of some operations (faults.c) */
    bool one_host;
    uint32_t sites;   /* hosts of several members each; 0: all the same */
    bool cut;         /* two of the first cannot link until all heals */
    bool one_way;     /* of some pairs only one may ever dial the other */
    bool walls;       /* nobody may ever dial some; all may dial the rest */
    uint32_t doors;   /* not 0: members announce addresses, some in vain */
    bool relays;      /* the master relays for them */
    bool letters;     /* members write messages to each other */
    bool counts;      /* ... and report samples */
    bool averages;    /* ... and make partial all-reduces */
    bool half_reset;  /* one end notices a reset later than the other */
    bool pairwise;    /* ... whose members reduce through shared memory */
    bool interleaved; /* ... and whose rings are interleaved, even if small */
    bool lends;       /* ... with single copy for vectors of any size */
    uint32_t piece;   /* bytes of a segment then */
    uint32_t tree_width;   /* of the tree; 0: as the library likes */
    uint32_t mesh_max;     /* worlds that link all pairs; 0: likewise */
    const char *algorithm; /* to be taken wherever it fits, or NULL */
    uint32_t share;        /* bytes of a channel; 0: no shared memory */
    bool share_fails;
    uint32_t sync; /* of 8 steps */
    bool optimize;
    size_t pipe_min, pipe_max;
    uint32_t delay_max; /* ns */
    uint32_t steps;
    enum sim_single single;
    uint32_t lasting; /* faults that last, after `steps`; the first is single */
    bool fast;        /* members of one host that often use the fast path... */
    bool fast_stops;  /* ... and may stand still amid its frames */
    uint32_t fast_patience; /* looks before it is given up, about */
    bool rooted;            /* many all-to-alls, and those have a root */
    bool even;              /* all-to-alls have blocks of one size */
    uint32_t stutter, garble, strangers; /* rates (strange.c) */
    bool clocks;                         /* run at different speeds */
    uint32_t alive_max;                  /* processes at a time */
    uint32_t masters; /* the master dies, and another one comes: a rate */
    bool replicas;    /* ... and has no journal: its members keep its record */
    bool spares;      /* ... and no living member may be lost for it (H7) */
    bool well;        /* nobody's synchronization can be refused (H8) */
    uint32_t narrow;  /* bytes in flight from the master to each; 0: any */
    uint32_t fetch;   /* newcomers that download first: a rate (fetch.c) */
};

#endif
