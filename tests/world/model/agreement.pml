/* agreement.pml - the core of the agreement for SPIN: launch, flush, question,
 * donation, verdict, installation. Rules R1, R2, R5, F1, F4 to F6, D2, D4 to D6
 * and T2 of src/master/AGREEMENT.md; contract C1 to C4.
 *
 * Three members, two operations of the whole view: operation 0 is confirmed,
 * operation 1 is deferred. Up to CRASHES members die at any moment, the master
 * notices at any later one. With ODD one member has other arguments for
 * operation 0. Time is abstracted: whatever may happen may happen late.
 *
 * agreement.sh explores all of it. With one of the macros BREAK_... a rule is
 * broken, and SPIN must find that. */
#ifndef CRASHES
#define CRASHES 1
#endif
#define N 3
#define OPS 2

/* State of an operation at a member. */
#define NOT 0
#define RUN 1
#define COMPL 2
#define RET 3 /* returned in-band */
#define OVER 4 /* ended by INSTALL, or at its launch after it */

/* Results. */
#define NONE 0
#define SUCCESS 1
#define LOST 2
#define INVALID 3

/* Verdicts. */
#define ABORT 0
#define COMMIT 1
#define BAD 2

typedef member {
    byte st[OPS];
    byte result[OPS];
    byte told[OPS];   /* last answer to the master: list, or reply */
    byte verdict[OPS];
    bool alive, frozen, flushed, asked, replied, install, installed, copy;
};
member m[N];
byte crashes, dead_known, live_known; /* sets of members */
bool report, changed; /* REFRESH_MISMATCH; the master has news */
bool over; /* a view was installed */
bool loss; /* ... and somebody is missing in it */
#ifdef ODD
#define AGREES(i, op) ((op) == 1)
#else
#define AGREES(i, op) true
#endif
#ifdef BREAK_DIGEST
#define RIGHT(i, op) true
#else
#define RIGHT(i, op) AGREES(i, op)
#endif

#define ALL_LAUNCHED(op)                                                       \
    (m[0].st[op] != NOT && m[1].st[op] != NOT && m[2].st[op] != NOT)
#define HOLDS(i, op) (m[i].st[op] == COMPL || m[i].st[op] == RET)
#define ALL_HOLD(op) (HOLDS(0, op) && HOLDS(1, op) && HOLDS(2, op))
#define IN(set, i) (((set) >> (i)) & 1)

#ifdef BREAK_FREEZE
#define MOVES(i) (m[i].alive && !m[i].installed)
#else
#define MOVES(i) (m[i].alive && !m[i].installed && !m[i].frozen)
#endif

inline end_op(i, op, r) {
    assert(m[i].result[op] == NONE); /* one result for one call (C2) */
    m[i].result[op] = r;
    m[i].st[op] = OVER;
}

/* INSTALL at member i: the table of an operation in AGREEMENT.md. */
inline take_install(i) {
    op = 0;
    do
    :: op < OPS ->
        if
        :: m[i].st[op] == RUN || m[i].st[op] == COMPL ->
            if
            :: m[i].verdict[op] == COMMIT ->
                assert(m[i].st[op] == COMPL); /* F5 */
                end_op(i, op, SUCCESS)
            :: m[i].verdict[op] == BAD -> end_op(i, op, INVALID)
            :: m[i].verdict[op] == ABORT && loss -> end_op(i, op, LOST)
            :: else -> m[i].st[op] = RUN /* starts again */
            fi
        :: m[i].st[op] == NOT ->
            assert(m[i].verdict[op] != COMMIT); /* D5 */
            if
            :: m[i].verdict[op] == BAD -> end_op(i, op, INVALID)
            :: m[i].verdict[op] != BAD && loss -> end_op(i, op, LOST)
            :: else
            fi
        :: else
        fi;
        op++
    :: else -> break
    od;
    m[i].installed = true;
    m[i].frozen = false
}

proctype Member(byte i) {
    byte op;
end_member:
    do
    /* launch: operation 0 before operation 1 */
    :: atomic { MOVES(i) && m[i].st[0] == NOT -> m[i].st[0] = RUN }
    :: atomic { MOVES(i) && m[i].st[0] != NOT && m[i].st[1] == NOT ->
        m[i].st[1] = RUN }
    /* D2e: complete when frames that agree have come from all */
#ifdef BREAK_LAUNCHED
    :: atomic { MOVES(i) && m[i].st[1] == RUN -> m[i].st[1] = COMPL }
#endif
    :: atomic { MOVES(i) && m[i].st[0] == RUN && ALL_LAUNCHED(0) &&
        RIGHT(i, 0) -> m[i].st[0] = COMPL }
    :: atomic { MOVES(i) && m[i].st[1] == RUN && ALL_LAUNCHED(1) &&
        RIGHT(i, 1) -> m[i].st[1] = COMPL }
    /* D4: confirmed */
#ifdef BREAK_CONFIRM
    :: atomic { MOVES(i) && m[i].st[0] == COMPL ->
#else
    :: atomic { MOVES(i) && m[i].st[0] == COMPL && ALL_HOLD(0) ->
#endif
        m[i].st[0] = RET; m[i].result[0] = SUCCESS }
    /* D5: deferred, with a copy */
    :: atomic { MOVES(i) && m[i].st[1] == COMPL ->
        m[i].st[1] = RET; m[i].result[1] = SUCCESS;
#ifndef BREAK_COPY
        m[i].copy = true
#endif
    }
    /* D2c: a difference is reported */
#ifdef ODD
    :: atomic { MOVES(i) && m[i].st[0] == RUN && ALL_LAUNCHED(0) && !report ->
        report = true; changed = true }
#endif
    :: atomic { m[i].alive && m[i].install && !m[i].installed ->
        take_install(i) }
    /* death */
    :: atomic { m[i].alive && crashes < CRASHES && !over ->
        crashes++; m[i].alive = false; changed = true; break }
    :: atomic { over && m[i].installed && m[i].result[0] != NONE &&
        m[i].result[1] != NONE -> break }
    /* An operation that starts again in the view in force ends in-band. */
    :: atomic { m[i].installed && !loss && m[i].st[1] != OVER &&
        m[i].st[1] != RET -> end_op(i, 1, SUCCESS) }
    od
}

#define LIVE(i) (IN(live_known, i))

proctype Master() {
    byte i, op, rets, runs, compls, count, donor;
    byte verdict[OPS];
    bool doubt[OPS], any;
end_wait:
    changed; /* R1 */
again:
    atomic { /* the deaths that it knows of now; FLUSH */
        changed = false;
        live_known = 0;
        i = 0;
        do
        :: i < N ->
            if
            :: m[i].alive -> live_known = live_known | (1 << i)
            :: else -> loss = true
            fi;
            m[i].flushed = false; m[i].replied = false; i++
        :: else -> break
        od
    }
    i = 0;
    do /* FLUSHED */
    :: i < N && LIVE(i) ->
        if
        :: atomic { m[i].alive && !changed ->
            m[i].frozen = true; m[i].flushed = true;
            op = 0;
            do
            :: op < OPS ->
                m[i].told[op] = ((m[i].st[op] == RUN || m[i].st[op] == COMPL)
                                 -> m[i].st[op] : NOT);
                op++
            :: else -> break
            od }
        :: changed -> goto again
        fi;
        i++
    :: i < N && !LIVE(i) -> i++
    :: i == N -> break
    od;
    atomic { /* F4: in doubt is what some survivor did not list */
        any = false;
        op = 0;
        do
        :: op < OPS ->
            doubt[op] = false; i = 0; count = 0;
            do
            :: i < N ->
                if
                :: LIVE(i) && m[i].told[op] == NOT -> doubt[op] = true
                :: LIVE(i) && m[i].told[op] != NOT -> count++
                :: else
                fi;
                i++
            :: else -> break
            od;
#ifdef BREAK_QUERY
            doubt[op] = false;
#else
            doubt[op] = doubt[op] && count > 0; /* it is in some list */
#endif
            any = any || doubt[op];
            op++
        :: else -> break
        od
    }
    i = 0;
    do /* QUERY, REPLY */
    :: any && i < N && LIVE(i) ->
        if
        :: atomic { m[i].alive && !changed -> op = 0;
            do
            :: op < OPS ->
                if
                :: doubt[op] -> m[i].told[op] = m[i].st[op]
                :: else
                fi;
                op++
            :: else -> break
            od }
        :: changed -> goto again
        fi;
        i++
    :: any && i < N && !LIVE(i) -> i++
    :: !any || i == N -> break
    od;
    op = 0;
    do /* F4, F5 */
    :: op < OPS ->
        atomic {
            rets = 0; runs = 0; compls = 0; count = 0; donor = N; i = 0;
            do
            :: i < N ->
                if
                :: LIVE(i) ->
                    count++;
                    if
                    :: m[i].told[op] == RET -> rets++;
                        if :: m[i].copy -> donor = i :: else fi
                    :: m[i].told[op] == RUN -> runs++
                    :: m[i].told[op] == COMPL -> compls++
                    :: else
                    fi
                :: else
                fi;
                i++
            :: else -> break
            od;
#ifdef BREAK_COMMIT
            verdict[op] = (rets > 0 || compls > 0 -> COMMIT : ABORT)
#else
            verdict[op] = (rets > 0 || (compls == count && count > 0)
                           -> COMMIT : ABORT)
#endif
        }
        if
        :: verdict[op] == COMMIT && runs > 0 ->
            if
            :: atomic { donor < N && m[donor].alive && !changed -> /* DONATE */
                i = 0;
                do
                :: i < N ->
#ifdef BREAK_RELAY
                    if :: m[i].alive && m[i].st[op] == RUN && i == 0 ->
#else
                    if :: m[i].alive && m[i].st[op] == RUN ->
#endif
                        m[i].st[op] = COMPL
                    :: else fi;
                    i++
                :: else -> break
                od }
            :: changed -> goto again
            :: donor == N && !changed -> assert(false) /* D6 */
            fi
        :: else
        fi;
        op++
    :: else -> break
    od;
    if /* the verdict that a report asks for; a commit stands before it */
    :: report && verdict[0] != COMMIT -> verdict[0] = BAD
    :: else
    fi;
    /* PROPOSE and READY: another death begins the round again, R2. */
    atomic {
        if
        :: changed -> goto again
        :: else ->
            over = true;
            i = 0;
            do
            :: i < N ->
                if
#ifdef BREAK_ALL
                :: m[i].alive && i != 1 ->
#else
                :: m[i].alive ->
#endif
                    m[i].verdict[0] = verdict[0];
                    m[i].verdict[1] = verdict[1];
                    m[i].install = true
                :: else
                fi;
                i++
            :: else -> break
            od
        fi
    }
}

#define SAME(op)                                                               \
    ((m[0].result[op] == SUCCESS || !m[0].alive || m[0].result[op] == NONE) && \
     (m[1].result[op] == SUCCESS || !m[1].alive || m[1].result[op] == NONE) && \
     (m[2].result[op] == SUCCESS || !m[2].alive || m[2].result[op] == NONE))
#define ANY(op, r)                                                             \
    ((m[0].alive && m[0].result[op] == (r)) ||                                 \
     (m[1].alive && m[1].result[op] == (r)) ||                                 \
     (m[2].alive && m[2].result[op] == (r)))
#define DONE(i) (!m[i].alive || (m[i].result[0] != NONE && m[i].result[1] != NONE))

/* After everything: nobody waits for ever (C3), and all agree (C1, C4). */
proctype Judge() {
    timeout ->
    assert(DONE(0) && DONE(1) && DONE(2));
    assert(!ANY(0, SUCCESS) || SAME(0));
    assert(!ANY(1, SUCCESS) || SAME(1));
#ifdef ODD
    assert(!ANY(0, SUCCESS))
#endif
}

init {
    byte i = 0;
    atomic {
        do
        :: i < N -> m[i].alive = true; i++
        :: else -> break
        od;
        run Member(0); run Member(1); run Member(2);
        run Master(); run Judge()
    }
}
