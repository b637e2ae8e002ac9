/* fuzz_journal.c - the journal of a coordinator, and the memory in it, of
 * anybody's making. */
#include "fuzz.h"

#include "../../src/master/succession/journal_form.h"
#include "../../src/master/master.h"
#include "../../src/master/succession/memory.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

enum { ROOM = 4096 };

static struct master_memory kept;

static bool keep(void *user, const struct master_memory *memory)
{
    (void)user;
    kept = *memory;
    return true;
}

/* A coordinator that begins with this memory gives no number again (J4), has
 * the same records, and what it remembers then can be read. */
static void take_memory(const struct master_memory *memory)
{
    static struct master m;
    static uint8_t out[MEMORY_SIZE_MAX];
    static struct master_memory again;
    memory_take(&m, memory);
    m.out.remember = keep;
    assert(memory_keep(&m));
    assert(kept.round > memory->round && kept.id > memory->id);
    assert(kept.stamp > memory->stamp);
    assert(kept.key.word[0] == memory->key.word[0]);
    assert(kept.record_count == memory->record_count);
    for (uint32_t i = 0; i < kept.record_count; i++) {
        const struct master_record *a = &kept.records[i];
        const struct master_record *b = &memory->records[i];
        assert(a->number == b->number && a->revision == b->revision);
        assert(a->content == b->content && a->stamp <= kept.stamp);
    }
    size_t size = memory_encode(&kept, out, sizeof out);
    assert(size <= sizeof out);
    assert(memory_decode(&again, out, size) || kept.round > UINT32_MAX / 2 ||
           kept.id > UINT64_MAX / 2 || kept.stamp > UINT64_MAX / 2);
    m.out.remember = NULL;
    assert(memory_keep(&m)); /* without a journal */
}

static void read_memory(const uint8_t *bytes, size_t size)
{
    static struct master_memory memory;
    static uint8_t out[MEMORY_SIZE_MAX];
    if (!memory_decode(&memory, bytes, size)) return;
    assert(memory_encode(&memory, out, sizeof out) == size);
    assert(memcmp(out, bytes, size) == 0);
    take_memory(&memory);
}

static void read_one(const uint8_t *bytes, size_t size)
{
    struct journal_found found;
    uint8_t *exact = malloc(size > 0 ? size : 1); /* for sanitizers */
    assert(exact);
    if (size > 0) memcpy(exact, bytes, size);
    if (!journal_read(exact, size, &found)) {
        assert(found.any && found.bytes >= exact);
        assert(found.bytes + found.size <= exact + size);
        read_memory(found.bytes, found.size);
    }
    free(exact);
}

/* A journal of some records, of which some bytes are changed: never an older
 * record than the last one, unless its mark is gone as well. */
static void changed(struct fuzz_input *in)
{
    static uint8_t file[ROOM];
    size_t size = JOURNAL_HEAD_SIZE;
    uint32_t records = fuzz_below(in, 6) + 1;
    journal_form_head(file, 77);
    for (uint32_t i = 1; i <= records; i++) {
        uint8_t bytes[200];
        size_t length = fuzz_below(in, sizeof bytes);
        memset(bytes, (int)i, sizeof bytes);
        journal_form_frame(file + size, JOURNAL_RECORD, i, 77, bytes, length);
        memcpy(file + size + JOURNAL_FRAME_SIZE, bytes, length);
        size += JOURNAL_FRAME_SIZE + length;
        journal_form_frame(file + size, JOURNAL_MARK, i, 77, "", 0);
        size += JOURNAL_FRAME_SIZE;
    }
    read_one(file, size);
    while (in->left > 2) {
        size_t at = fuzz_u16(in) % (size - JOURNAL_FRAME_SIZE);
        file[at] ^= fuzz_u8(in);
    }
    struct journal_found found;
    if (!journal_read(file, size, &found)) assert(found.seq == records);
    read_one(file, size);
}

/* A number that has a meaning, or is near the end of all numbers. */
static uint64_t number_of(struct fuzz_input *in)
{
    uint8_t bits = fuzz_u8(in);
    return bits < 240 ? bits : UINT64_MAX / 2 + fuzz_u8(in) - 128u;
}

/* A memory as a coordinator has it, in the journal as it writes it; then some
 * of its bytes are changed. The journal's hash would keep all such bytes out,
 * so it is made of them. */
static void remembered(struct fuzz_input *in)
{
    static struct master_memory memory;
    static uint8_t bytes[MEMORY_SIZE_MAX];
    static uint8_t
        file[JOURNAL_HEAD_SIZE + 2 * JOURNAL_FRAME_SIZE + MEMORY_SIZE_MAX];
    memory = (struct master_memory){.round = fuzz_u32(in)};
    memory.id = number_of(in);
    memory.stamp = number_of(in);
    memory.key.word[1] = fuzz_u8(in);
    memory.record_count = fuzz_below(in, 6);
    if (fuzz_u8(in) == 255) memory.record_count = GROUPS_MAX;
    for (uint32_t i = 0; i < memory.record_count; i++) {
        uint8_t bits = fuzz_u8(in);
        memory.records[i] = (struct master_record){
            .used = true,
            .number = bits < 250 ? i : bits,
            .revision = number_of(in),
            .content = bits,
            .stamp = bits % 2 ? memory.stamp : memory.stamp / 2};
    }
    size_t size = memory_encode(&memory, bytes, sizeof bytes);
    for (int i = 0; i < 4 && in->left > 2; i++)
        bytes[fuzz_u16(in) % size] ^= fuzz_u8(in);
    if (in->left > 0 && fuzz_u8(in) == 255) size--; /* cut */
    read_memory(bytes, size);
    journal_form_head(file, 77);
    uint8_t *at = file + JOURNAL_HEAD_SIZE;
    journal_form_frame(at, JOURNAL_RECORD, 1, 77, bytes, size);
    memcpy(at + JOURNAL_FRAME_SIZE, bytes, size);
    journal_form_frame(at + JOURNAL_FRAME_SIZE + size, JOURNAL_MARK, 1, 77, "",
                       0);
    read_one(file, JOURNAL_HEAD_SIZE + 2 * JOURNAL_FRAME_SIZE + size);
}

/* --------------------------------------------------------------- the wills */

enum { HEIRS = 3, TEXT_MAX = MEMORY_SIZE_MAX + 8192 };

static uint8_t will_text[TEXT_MAX]; /* a memory with a will, as it is kept */
static size_t will_size;
static struct wire_key will_secrets[HEIRS];

static bool keep_will(void *user, const struct master_memory *memory)
{
    (void)user;
    assert(memory_size(memory) <= sizeof will_text);
    will_size = memory_encode(memory, will_text, sizeof will_text);
    return true;
}

static void hear(void *user, const uint32_t *links, uint32_t count,
                 const struct wire_msg *msg)
{
    (void)user;
    for (uint32_t i = 0; i < count; i++)
        if (msg->type == WIRE_WELCOME)
            will_secrets[links[i]] = msg->welcome.secret;
}

static void hear_end(void *user, uint32_t link, const char *reason)
{
    (void)user, (void)link, (void)reason;
}

static void hear_note(void *user, const struct master_note *note)
{
    (void)user, (void)note;
}

static struct master *begin(const struct master_memory *memory)
{
    struct master_config c = {.out = {.send = hear,
                                      .close = hear_end,
                                      .note = hear_note,
                                      .remember = keep_will},
                              .memory = memory,
                              .secret = {{7, 8}},
                              .deadline = PCCL_S,
                              .grace = 3 * PCCL_S,
                              .quorum = HEIRS};
    struct master *m = calloc(1, sizeof *m);
    assert(m);
    if (memory) c.out.remember = NULL;
    if (master_init(m, &c)) return m;
    master_free(m);
    free(m);
    return NULL;
}

static void feed(struct master *m, enum master_event_type type, uint32_t link,
                 pccl_ns now, const struct wire_msg *msg)
{
    struct master_event e = {
        .type = type, .link = link, .now = now, .msg = msg};
    master_step(m, &e);
}

/* Three members found a view. */
static void write_will(void)
{
    struct master *m = begin(NULL);
    struct wire_msg hello = {.type = WIRE_HELLO};
    struct wire_msg ready = {.type = WIRE_READY, .round = 1};
    for (uint32_t i = 0; i < HEIRS; i++) {
        feed(m, MASTER_CONNECTED, i, 1, NULL);
        feed(m, MASTER_RECEIVED, i, 1, &hello);
    }
    for (uint32_t i = 0; i < HEIRS; i++) feed(m, MASTER_RECEIVED, i, 1, &ready);
    master_free(m);
    free(m);
}

static void say_resume(struct fuzz_input *in, struct master *m, pccl_ns now)
{
    uint32_t who = fuzz_below(in, HEIRS), link = fuzz_below(in, HEIRS + 2);
    struct wire_msg msg = {.type = WIRE_RESUME, .epoch = fuzz_below(in, 3)};
    msg.round = fuzz_below(in, 3);
    msg.resume.id = fuzz_u8(in) < 250 ? who + 1 : fuzz_u8(in);
    msg.resume.secret = will_secrets[who];
    msg.resume.term = fuzz_below(in, 3);
    msg.resume.sync_over = fuzz_u8(in);
    msg.resume.sync_well = fuzz_u8(in);
    for (uint32_t i = 0; i < VOTE_KIND_COUNT; i++) {
        msg.resume.answered[i] = fuzz_below(in, 4);
        msg.resume.answer[i] = fuzz_u8(in);
    }
    if (m->peers[link].state == PEER_FREE)
        feed(m, MASTER_CONNECTED, link, now, NULL);
    feed(m, MASTER_RECEIVED, link, now, &msg);
}

/* A coordinator with a will of which some bytes are changed, and members that
 * come back, or say so. It decides, or refuses; the time for it ends. */
static void inherited(struct fuzz_input *in)
{
    static struct master_memory memory;
    static uint8_t bytes[TEXT_MAX];
    pccl_ns now = PCCL_S;
    if (will_size == 0) write_will();
    memcpy(bytes, will_text, will_size);
    for (uint32_t i = fuzz_below(in, 4); i > 0 && in->left > 2; i--)
        bytes[fuzz_u16(in) % will_size] ^= fuzz_u8(in);
    if (!memory_decode(&memory, bytes, will_size)) return;
    struct master *m = begin(&memory);
    if (!m) return;
    while (in->left > 8) {
        say_resume(in, m, now);
        now += fuzz_u8(in) * PCCL_MS;
        feed(m, MASTER_TICK, 0, now, NULL);
    }
    for (uint32_t i = 0; i < 5; i++)
        feed(m, MASTER_TICK, 0, now += PCCL_S, NULL);
    assert(!m->succession.waits);
    master_free(m);
    free(m);
}

int LLVMFuzzerTestOneInput(const uint8_t *in, size_t size)
{
    read_one(in, size);
    read_memory(in, size);
    struct fuzz_input numbers = {in, size};
    changed(&numbers);
    numbers = (struct fuzz_input){in, size};
    remembered(&numbers);
    numbers = (struct fuzz_input){in, size};
    inherited(&numbers);
    return 0;
}
