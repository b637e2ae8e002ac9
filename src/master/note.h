/* note.h - the coordinator's notes to the operator. */
#ifndef PCCL_NOTE_H
#define PCCL_NOTE_H

#include "../base/base.h"

struct master_peer;

/* Events worth a report to the user; borrowed for the call. */
enum master_note_kind {
    NOTE_REGISTERED,
    NOTE_LOST, /* ids in `peer`; reported when the next view is installed */
    NOTE_LEFT,
    NOTE_JOINED,
    NOTE_VIEW,
    NOTE_EVICTED,
    NOTE_SILENT, /* silent for `took`, and waited for; reason: why */
    NOTE_HEARD,  /* that one is heard again, after `took` */
    NOTE_ABORTED,
    NOTE_DIFFERS,    /* its tensors differ; reason: which tensor, and whose */
    NOTE_CUT,        /* `peer` and `other` cannot exchange data */
    NOTE_RELAYED,    /* they do over `relay`, or, NULL, over the master */
    NOTE_STALLED,    /* reason: for whom others wait (rule W5) */
    NOTE_NO_RING,    /* reported after VIEW for some of the unreachable pairs */
    NOTE_SUCCESSION, /* reason: what became of a former coordinator's members */
};

struct master_note {
    enum master_note_kind kind;
    const struct master_peer *peer;  /* all but VIEW, STALLED, SUCCESSION */
    const struct master_peer *other; /* NO_RING: `peer` cannot reach it */
    const struct master_peer *relay;
    uint32_t more; /* NO_RING: and number of pairs not named */
    const char *reason;
    uint32_t old_epoch, epoch, old_size, size, joined;
    pccl_ns took; /* VIEW: from the cause to the decision */
    int32_t code; /* ABORTED; EVICTED: enum wire_evict */
};

#endif
