/* failed_once.h - universes that have failed once, or are rare. */
#ifndef PCCL_FAILED_ONCE_H
#define PCCL_FAILED_ONCE_H

#include <stddef.h>
#include <stdint.h>

/* The kind is as in test_sim.c; NULL: that of the seed. */
static const struct {
    const char *kind;
    uint64_t seed;
} failed_once[] = {
    {"averages", 1160}, /* partial_given_up */
    {"rare", 204},      /* in_turn */
    {"rooted", 145},    /* D18: a sum without a place begins again */
    {"rooted", 1344},   /* a call stayed on the fast path for a second */
    {NULL, 2774},       /* V4d: a loss while scopes cross */
    {NULL, 2795},       /* V4: ... and one is launched after the loss */
    {NULL, 4314},
    {"disagree", 8849}, /* ... and one meets the loss at its launch */
    {"disagree", 3182},
    {"disagree", 5744},
    {"disagree", 11213}, /* V4: some end before others cross */
    {"disagree", 3704},  /* R3d: a link in the making is closed */
    {NULL, 100159},      /* O5: a search that took hours */
    {NULL, 100202},      /* R4d: a split that took four rounds to find */
    {"fast", 35},        /* R3h: a pair is tried twice in one update */
    {"fast", 411},       /* F6: a refused voter has launched again */
    {"scarce", 497},     /* F6: a launch without memory takes a verdict */
    {NULL, 200376},      /* R3d: a silent link was not dialed anew */
    {"scarce", 2301764}, /* S7b: a giver without memory is suspected */
    {NULL, 2006509}, /* V1: a vote that comes twice counts for the next call */
    {NULL, 3000816}, /* O4: a probe fails, and the pair costs a member */
    {"fast", 2102248},     /* a program withheld what the others waited for */
    {"disagree", 2401945}, /* the model missed what the quorum had decided */
    {NULL, 4103087},       /* A1: who leaves may still end with a lost part */
    {"averages",
     4200953}, /* A3: who disagrees with a decided round misses it */
    {"averages", 7100855}, /* A12: a call that failed, and the next one */
    {"disagree", 7100050}, /* J1: decided, and the disk refuses; then it left */
    {"lasting", 7160131},  /* R7a: who waits hears, and is not heard */
    {"walls", 7110027},    /* V1: a SYNC that comes twice is one vote */
    {"masters", 951592},   /* H3: a group ends as its coordinator dies */
    {"masters", 962362},   /* G4: samples that nobody has any more */
    {"masters", 973459},   /* H13: members that are claimed, and die */
    {"masters", 979426},   /* J4: two coordinators name one round */
    {"masters", 981302},   /* H5: a record without a member */
    {"masters", 989325},   /* M2d: newcomers are left alone */
    {"masters", 1025032},  /* H4: the last member comes after the grace */
    {"masters", 1029681},  /* H6: a SYNC before all have resumed */
    {"masters", 1034616},  /* H6: a refusal is no end for the group */
    {"masters", 1132481},  /* H6: the INSTALL of a will answers no vote */
    {"masters", 1128186},  /* S9: who gives its state is refused, too */
    {"masters", 1311358},  /* T1: one view, two sizes of the run */
    {"masters", 1175242}, /* F6: a refusal of a synchronization, in the model */
    {"masters", 1382020}, /* A1: who leaves takes no result any more */
    {"masters", 1369682}, /* J5: another record has a view that was refused */
    {"masters", 1287683}, /* H5: the record may lack what all are ready for */
    {"masters", 1513501}, /* H6: an INSTALL that is older than an answer */
    {"masters", 1221312}, /* A10: programs that are slower than they may be */
    {NULL, 2045140},      /* time for links of many connections */
    {"masters", 1023936}, /* F6a: a refusal and its verdict, and a death */
    {"masters", 1106152}, /* ... between them, or while they are told */
    {"masters", 1109176},
    {"masters", 1213254},
    {"masters", 1264856},
    {"masters", 1321406},
    {"masters", 1347196}, /* V4c: operations of two scopes, and a vote */
    {NULL, 2174136},      /* F6: odd votes, and memory that is refused */
    {NULL, 2187141},
    {NULL, 2210380},
    {NULL, 2269732}, /* M9: a fault is reported, and the master is lost */
    {NULL, 2037391}, /* R4f: two ends try at different times */
    {NULL, 2046697}, /* R4d: a fault while links are made */
    {NULL, 2053706},
    {NULL, 2289578},
    {"walls", 7100232},    /* R4d: ... and time for a relay to read */
    {NULL, 6740},          /* R4d: a survey of all relays at once */
    {"lasting", 3500030},  /* C3: an error after 1.1 deadlines */
    {NULL, 4110890},       /* ... likewise */
    {"lasting", 3500095},  /* a hang after UNREACHABLE */
    {NULL, 4103175},       /* the model refused a founding */
    {NULL, 2308897},       /* S7e: no holder can be reached */
    {"grid", 5153},        /* one member relays all pairs of fifteen others */
    {NULL, 2193232},       /* V4b: time for many votes that are refused */
    {"masters", 651},      /* G4: what a dead coordinator has told */
    {"masters", 9000972},  /* H8: an END is told, and not taken, in the model */
    {"averages", 9000135}, /* A5: an answer that comes twice, in the model */
    {NULL, 9001547},
    {NULL, 10000467},       /* A5: contributions that nobody asks for */
    {"averages", 9000272},  /* A9: RELEASE of a round that was refused */
    {"masters", 12000806},  /* H6: two contents are received in one call */
    {"averages", 12000225}, /* A1: nobody is left, and somebody calls anew */
    {"grid", 9000122},      /* R4d: an operation is the first to see a split */
    {"fast", 14140162},     /* V4c: a decided synchronization, in the model */
    {NULL, 14001292},       /* N11a: a relay whose other address is wrong */
    {NULL, 14011907}, /* A4: a round evicts, after a loss in the average */
    {"disagree", 17013147}, /* V4: errors in two scopes before they cross */
    {"disagree", 17033071},
    {"disagree", 17047181},
    {"disagree", 17077050},
    {"averages", 18001532}, /* A5: between a pause and a tick, in the oracle */
    {"averages", 18002681}, /* A7: a call after seven eighths, in the model */
    {"averages", 700178},   /* A6: to whom FOLD goes, in the text */
    {"averages", 802265},   /* A9: ... and RELEASE */
    {"averages", 3006},     /* A13: a round that is undecided at a refusal */
    {"averages", 703243},   /* A7: others go on for long, in the model */
    {"masters", 601},       /* H7: a call on the fast path for a deadline */
    {"averages", 706495},   /* M15: a tick that was too late by its own clock */
    {"averages", 372},      /* A7: a part that only those who are gone had */
    {"masters", 112},       /* A5: data of a round of the former coordinator */
    {"masters", 80},        /* A10: absent, and its last call had failed */
};

#endif
