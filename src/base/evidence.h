/* evidence.h - what the host of a silent process can tell about it (rule
 * M10). */
#ifndef PCCL_EVIDENCE_H
#define PCCL_EVIDENCE_H

enum evidence {
    EVIDENCE_NONE,     /* not known, gone, or it sleeps of its own will */
    EVIDENCE_RUNNABLE, /* it wants to send and gets no CPU time */
    EVIDENCE_TRACED,   /* a debugger holds it */
    EVIDENCE_STOPPED,  /* by a signal */
    EVIDENCE_COUNT,
};

#endif
