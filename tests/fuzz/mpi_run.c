/* mpi_run.c - messages, transfers and losses of a run that a tape plays. See
 * mpi_run.h; mpi_run_op.c has the operations. */
#include "mpi_run_state.h"

#include "../../src/mpi/coll.h"
#include "../../src/mpi/partner.h"
#include "../../src/mpi/revoke.h"
#include "../../src/mpi/transport.h"
#include "../../src/base/status.h"

#include <stdio.h>

enum {
    BULKS_MAX = 96,
    LETTERS_MAX = 64, /* that wait for the program */
    EVENTS_MAX_QUEUED = LETTERS_MAX + 4 * BULKS_MAX,
    COOKIES = 8,
    LOOKS_MAX = 12,  /* of a call for messages until it counts as waiting */
    HELP_MAX = 24,   /* times that the others say what it waits for */
    ALONE_MAX = 300, /* looks of one that is left alone until it is evicted: a
                        receive from anybody may wait for itself */
    PATIENCE = 9000, /* looks after which a call hangs */
    /* What a transfer may have, and the other ranks of a run that holds to the
     * rules do not: beyond it a size is as good as any other. */
    SIZE_SENSIBLE = 1 << 20,
};

struct bulk {
    bool used, sends;
    uint64_t member, key;
    void *to;
    const void *from;
    size_t size;
};

struct run run;
static struct fuzz_input *tape;
static pcclEvent_t queue[EVENTS_MAX_QUEUED];
static uint32_t queued;
static struct bulk bulks[BULKS_MAX];
static uint64_t cookies[COOKIES];
static uint32_t cookie_next, full, looks, help;
static uint32_t wanted_context, wanted_second;
static bool wants_second;
static int wanted_tag;

void run_fail(const char *what)
{
    fprintf(stderr, "fuzz_mpi: %s\n", what);
    abort();
}

/* -------------------------------------------------------------------- tape */

void run_open(struct fuzz_input *in)
{
    tape = in;
}

bool run_next(struct tape_record *r)
{
    return tape_next(tape, r);
}

/* The kind of the next record; RUN_KIND_COUNT: the tape is over. */
static uint8_t next_kind(void)
{
    if (tape->left < TAPE_HEAD) return RUN_KIND_COUNT;
    return tape->at[0] % RUN_KIND_COUNT;
}

bool run_take(uint8_t kind, struct tape_record *r)
{
    return next_kind() == kind && run_next(r);
}

void run_begin(uint32_t rank, uint8_t hosts, uint32_t members)
{
    run.size = 1 + members % RUN_MEMBERS;
    run.rank = rank % run.size;
    for (uint32_t i = 0; i < RUN_MEMBERS; i++) {
        run.ids[i] = 0x5e1f000000000001u + i;
        run.hosts[i] = 2 + 2 * (uint64_t)(hosts >> i & 1);
        run.lost[i] = run.reported[i] = i >= run.size;
    }
    run.epoch = 1;
    run.ended = run.gone = false;
    full = looks = help = 0;
}

bool run_is_over(void)
{
    return run.ended || run.gone;
}

/* ------------------------------------------------------------------ events */

static void *copy_of(const void *bytes, size_t size)
{
    void *copy = malloc(size); /* exact, for sanitizers */
    if (copy && size > 0) memcpy(copy, bytes, size);
    return copy;
}

static void put_event(const pcclEvent_t *event)
{
    if (queued == EVENTS_MAX_QUEUED) run_fail("too many events");
    pcclEvent_t *e = &queue[queued++];
    *e = *event;
    e->header = copy_of(event->header, event->header_size);
    e->body = copy_of(event->body, event->body_size);
}

static void free_event(const pcclEvent_t *event)
{
    free((void *)(uintptr_t)event->header);
    free((void *)(uintptr_t)event->body);
}

/* Another rank, or one that has not come yet. */
static bool sender_of(uint8_t which, uint64_t *id)
{
    uint32_t i = which % (RUN_MEMBERS + 1u);
    if (i >= run.size) i = RUN_MEMBERS;
    *id = i < RUN_MEMBERS ? run.ids[i] : run.ids[0] + RUN_MEMBERS;
    return i == RUN_MEMBERS || (i != run.rank && !run.lost[i]);
}

static void post(uint64_t member, const struct letter *letter, size_t head,
                 const void *body, size_t size)
{
    if (queued >= LETTERS_MAX) return;
    pcclEvent_t event = {.kind = pcclEventMessage,
                         .member = member,
                         .header = letter,
                         .header_size = head,
                         .body = body,
                         .body_size = size};
    put_event(&event);
}

/* Flags of a letter. */
enum { FLAG_ACK = 1, FLAG_SIZE = 2, FLAG_COOKIE = 4, FLAG_SHORT = 8 };

static void play_letter(const struct tape_record *r)
{
    struct fuzz_input in = {r->bytes, r->size};
    uint64_t member;
    if (!sender_of(r->arg, &member)) return;
    struct letter letter = {.kind = fuzz_u8(&in)};
    uint8_t channel = fuzz_u8(&in), which = fuzz_u8(&in), tag = fuzz_u8(&in),
            flags = fuzz_u8(&in);
    uint64_t size = fuzz_u64(&in), cookie = fuzz_u64(&in);
    letter.context = run_context(which);
    if (channel >= 128)
        letter.context |= CHANNEL_PARTITIONED | CHANNEL_NUMBER(channel % 4);
    else if (channel >= 64)
        letter.context |= CHANNEL_AGREE | CHANNEL_NUMBER(channel % 4);
    else if (channel >= 32)
        letter.context ^= 1u << channel % 32;
    letter.tag = tag;
    letter.wants_ack = flags & FLAG_ACK;
    letter.cookie = flags & FLAG_COOKIE ? cookie : cookies[cookie % COOKIES];
    letter.size = in.left;
    if (letter.kind != LETTER_EAGER || flags & FLAG_SIZE) letter.size = size;
    bool large = letter.kind == LETTER_LARGE;
    if (large && letter.size <= INT64_MAX) letter.size %= SIZE_SENSIBLE;
    size_t head = sizeof letter - (flags & FLAG_SHORT ? 1 + size % 8 : 0);
    post(member, &letter, head, in.at, large ? 0 : in.left);
}

static void play_say(const struct tape_record *r)
{
    struct fuzz_input in = {r->bytes, r->size};
    uint64_t member;
    if (!sender_of(r->arg, &member)) return;
    uint8_t first = fuzz_u8(&in);
    size_t size = first % 128u % 65u;
    uint8_t body[64] = {0};
    for (size_t i = 0; i < size; i++) body[i] = fuzz_u8(&in);
    struct letter letter = {
        .kind = LETTER_EAGER,
        .context = first & 128 && wants_second ? wanted_second : wanted_context,
        .tag = wanted_tag,
        .size = size};
    post(member, &letter, sizeof letter, body, size);
}

static void end_bulk(struct bulk *b, pcclResult_t result)
{
    pcclEvent_t event = {.kind = b->sends ? pcclEventBulkSent
                                          : pcclEventBulkReceived,
                         .result = result,
                         .member = b->member,
                         .key = b->key};
    if (result == pcclSuccess && b->size > 0) {
        if (b->sends) {
            void *sent = copy_of(b->from, b->size); /* it can be read */
            free(sent);
        } else {
            memset(b->to, (int)b->key, b->size);
        }
    }
    b->used = false;
    put_event(&event);
}

static void play_bulk(const struct tape_record *r)
{
    static const pcclResult_t results[] = {
        pcclSuccess, pcclSuccess, pcclInvalidArgument, pcclInternalError};
    uint32_t skip = r->arg % 8;
    for (uint32_t i = 0; i < BULKS_MAX; i++) {
        if (!bulks[i].used || skip-- > 0) continue;
        end_bulk(&bulks[i], results[r->size > 0 ? r->bytes[0] % 4 : 0]);
        return;
    }
}

void run_lose(uint32_t i)
{
    if (i >= run.size || i == run.rank || run.lost[i]) return;
    run.lost[i] = true;
    for (uint32_t k = 0; k < BULKS_MAX; k++)
        if (bulks[k].used && bulks[k].member == run.ids[i])
            end_bulk(&bulks[k], pcclRankConnectionLost);
    pcclEvent_t event = {.kind = pcclEventMemberLost, .member = run.ids[i]};
    put_event(&event);
}

static void background(void)
{
    if (looks > 0) return; /* a call of the program is under way */
    (void)transport_background();
    coll_progress_background();
    (void)revoke_enforce();
}

void run_play(const struct tape_record *r)
{
    switch (r->kind % RUN_KIND_COUNT) {
    case RUN_LETTER:
        play_letter(r);
        return;
    case RUN_SAY:
        play_say(r);
        return;
    case RUN_BULK:
        play_bulk(r);
        return;
    case RUN_LOSE:
        run_lose(r->arg % RUN_MEMBERS);
        return;
    case RUN_FULL:
        full = r->arg % 64;
        return;
    case RUN_ROOM:
        full = 0;
        if (queued < LETTERS_MAX)
            put_event(&(pcclEvent_t){.kind = pcclEventRoom});
        return;
    case RUN_GONE:
        run.gone = true;
        return;
    case RUN_BACKGROUND:
        background();
        return;
    case RUN_ORDER:
        run.answers = r->arg;
        return;
    default:
        return;
    }
}

void run_end(void)
{
    full = 0;
    run.ended = true;
    for (uint32_t i = 0; i < run.size; i++) run_lose(i);
    /* Of one that was not a member yet. */
    for (uint32_t k = 0; k < BULKS_MAX; k++)
        if (bulks[k].used) end_bulk(&bulks[k], pcclRankConnectionLost);
}

void run_close(void)
{
    while (queued > 0) free_event(&queue[--queued]);
    for (uint32_t k = 0; k < BULKS_MAX; k++)
        if (bulks[k].used) run_fail("a transfer is left");
}

void run_call(uint32_t context, int tag)
{
    wanted_context = context;
    wanted_tag = tag;
    wants_second = false;
    looks = help = 0;
}

void run_call_twice(uint32_t context, uint32_t second, int tag)
{
    run_call(context, tag);
    wanted_second = second;
    wants_second = true;
}

void run_call_over(void)
{
    looks = 0;
}

/* An agreement wants a word of 1 and no error, and first, where there are two
 * contexts, the members of a group. */
static void say_what_helps(void)
{
    uint8_t word[1 + 16] = {16, 1}, member = (uint8_t)(help / 2);
    uint64_t id;
    if (wants_second && help % 2 == 0 && sender_of(member, &id)) {
        word[0] = sizeof id;
        memcpy(word + 1, &id, sizeof id);
    } else if (wants_second) {
        word[0] = 128 + 8;
    }
    run_play(&(struct tape_record){RUN_SAY, member, sizeof word, word});
}

/* A call waits: something has to happen. */
void run_go_on(void)
{
    struct tape_record r;
    if (run_is_over()) {
        if (++help > ALONE_MAX) run.gone = true;
        if (help > PATIENCE) run_fail("a call hangs");
        return;
    }
    uint8_t kind = next_kind();
    if (kind != RUN_KIND_COUNT && !run_is_call(kind) && run_next(&r)) {
        run_play(&r);
    } else if (kind != RUN_KIND_COUNT && help++ < HELP_MAX) {
        say_what_helps();
    } else {
        run_end();
    }
}

pcclResult_t pcclTakeEvents(pcclComm_t *comm, int timeout_ms,
                            pcclEvent_t *events, size_t room, size_t *count)
{
    (void)comm;
    for (size_t i = 0; i < *count; i++) free_event(&events[i]);
    *count = 0;
    bool waits = timeout_ms != 0 || ++looks > LOOKS_MAX;
    if (queued == 0 && waits && room > 0) run_go_on();
    while (*count < room && *count < queued) {
        events[*count] = queue[*count];
        ++*count;
    }
    queued -= (uint32_t)*count;
    memmove(queue, queue + *count, queued * sizeof *queue);
    if (*count == 0 && run.gone && room > 0) {
        for (uint32_t i = 0; i < run.size; i++) run.lost[i] = i != run.rank;
        for (uint32_t k = 0; k < BULKS_MAX; k++)
            if (bulks[k].used) end_bulk(&bulks[k], pcclRankConnectionLost);
        if (queued == 0) return pcclMasterConnectionFailed;
    }
    return pcclSuccess;
}

/* -------------------------------------------------------------- what is sent
 */

/* Whether something can be sent to this member. */
static pcclResult_t reaches(uint64_t to)
{
    if (run.gone) return pcclMasterConnectionFailed;
    for (uint32_t i = 0; i < run.size; i++)
        if (run.ids[i] == to)
            return i == run.rank        ? pcclInvalidArgument
                   : run.lost[i]        ? pcclRankConnectionLost
                   : full > 0 && full-- ? pcclPendingAsyncOps
                                        : pcclSuccess;
    return pcclRankConnectionLost;
}

pcclResult_t pcclPostMessage(pcclComm_t *comm, uint64_t to, const void *header,
                             size_t header_size, const void *body,
                             size_t body_size)
{
    (void)comm;
    struct letter letter;
    if (header_size != sizeof letter) run_fail("a header of another size");
    memcpy(&letter, header, sizeof letter);
    pcclResult_t result = reaches(to);
    if (result != pcclSuccess) return result;
    if (header_size + body_size > PCCL_MESSAGE_MAX)
        run_fail("a message that is too large");
    free(copy_of(body, body_size));
    if (letter.wants_ack || letter.kind == LETTER_LARGE)
        cookies[cookie_next++ % COOKIES] = letter.cookie;
    return pcclSuccess;
}

static pcclResult_t add_bulk(const struct bulk *bulk)
{
    uint32_t place = BULKS_MAX;
    for (uint32_t i = 0; i < BULKS_MAX; i++) {
        if (!bulks[i].used) {
            place = i;
            continue;
        }
        if (bulks[i].sends == bulk->sends && bulks[i].key == bulk->key &&
            bulks[i].member == bulk->member)
            return pcclInvalidArgument;
    }
    if (place == BULKS_MAX) return pcclPendingAsyncOps;
    bulks[place] = *bulk;
    return pcclSuccess;
}

pcclResult_t pcclSendBulk(pcclComm_t *comm, uint64_t to, uint64_t key,
                          const void *buf, size_t size)
{
    (void)comm;
    pcclResult_t result = reaches(to);
    if (result != pcclSuccess) return result;
    return add_bulk(
        &(struct bulk){true, true, to, key, .from = buf, .size = size});
}

pcclResult_t pcclExpectBulk(pcclComm_t *comm, uint64_t from, uint64_t key,
                            void *buf, size_t size)
{
    (void)comm;
    uint64_t newcomer = run.ids[0] + RUN_MEMBERS;
    pcclResult_t result =
        from == newcomer && !run_is_over() ? pcclSuccess : reaches(from);
    if (result != pcclSuccess) return result;
    if (size > 0 && !buf) run_fail("a transfer to nowhere");
    return add_bulk(
        &(struct bulk){true, false, from, key, .to = buf, .size = size});
}

static pcclResult_t drop_bulk(bool sends, uint64_t member, uint64_t key)
{
    for (uint32_t i = 0; i < BULKS_MAX; i++) {
        struct bulk *b = &bulks[i];
        if (!b->used || b->sends != sends || b->member != member ||
            b->key != key)
            continue;
        if (sends && run.answers & 1) return pcclPendingAsyncOps;
        b->used = false;
        return pcclSuccess;
    }
    return pcclInvalidUsage;
}

pcclResult_t pcclCancelBulk(pcclComm_t *comm, uint64_t from, uint64_t key)
{
    (void)comm;
    return drop_bulk(false, from, key);
}

pcclResult_t pcclWithdrawBulk(pcclComm_t *comm, uint64_t to, uint64_t key)
{
    (void)comm;
    return drop_bulk(true, to, key);
}
