/* grant.h - what a participant of an open run may do (rules K10, K13). */
#ifndef PCCL_GRANT_H
#define PCCL_GRANT_H

#include "base.h"

enum { GRANT_NAME_MAX = 63 };

enum grant_right {
    GRANT_JOIN = 1,    /* take part, and download the state before */
    GRANT_OBSERVE = 2, /* ask for the status */
    GRANT_RELAY = 4,   /* be one end of a relay; of no token (K14) */
};

struct grant {
    char name[GRANT_NAME_MAX + 1]; /* of the participant; "": of nobody */
    uint8_t rights;                /* of enum grant_right */
    bool any_group;
    uint32_t group; /* else: the only one */
};

#endif
