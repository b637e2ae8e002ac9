/* journal_read.c - the bytes of a journal. See journal.h.
 *
 *   head    "PCCLJRNL", version, 0, salt, hash of these
 *   record  'R', size, number, hash of these with salt and bytes; the bytes
 *   mark    'M', 0, number, hash of these with salt
 *
 * Numbers are little-endian; those of the records go up by one. */
#include "journal_form.h"

#include <string.h>

static uint64_t number(const uint8_t *from, int bytes)
{
    uint64_t value = 0;
    for (int i = bytes; i-- > 0;) value = value << 8 | from[i];
    return value;
}

static void put(uint8_t *to, uint64_t value, int bytes)
{
    for (int i = 0; i < bytes; i++) to[i] = (uint8_t)(value >> 8 * i);
}

void journal_form_head(uint8_t *to, uint64_t salt)
{
    memcpy(to, JOURNAL_WORD, 8);
    put(to + 8, JOURNAL_VERSION, 4);
    put(to + 12, 0, 4);
    put(to + 16, salt, 8);
    put(to + 24, hash_bytes(to, 24, 1), 8);
}

/* The parts are hashed apart: the bytes are not in one place. */
static uint64_t frame_hash(const uint8_t *frame, uint64_t salt,
                           const uint8_t *bytes, size_t size)
{
    uint8_t all[16 + 16];
    memcpy(all, frame, 16);
    put(all + 16, salt, 8);
    put(all + 24, hash_bytes(bytes, size, 1), 8);
    return hash_bytes(all, sizeof all, 1);
}

void journal_form_frame(uint8_t *to, enum journal_kind kind, uint64_t seq,
                        uint64_t salt, const void *bytes, size_t size)
{
    put(to, kind, 4);
    put(to + 4, size, 4);
    put(to + 8, seq, 8);
    put(to + 16, frame_hash(to, salt, bytes, size), 8);
}

struct journal_frame {
    uint64_t kind, seq;
    const uint8_t *bytes;
    size_t size;
};

/* A whole frame is at that place. */
static bool frame_at(const uint8_t *bytes, size_t left, uint64_t salt,
                     struct journal_frame *f)
{
    if (left < JOURNAL_FRAME_SIZE) return false;
    f->kind = number(bytes, 4);
    f->size = (size_t)number(bytes + 4, 4);
    f->seq = number(bytes + 8, 8);
    f->bytes = bytes + JOURNAL_FRAME_SIZE;
    if (f->kind != JOURNAL_RECORD && f->kind != JOURNAL_MARK) return false;
    if (f->kind == JOURNAL_MARK && f->size != 0) return false;
    if (f->size > JOURNAL_RECORD_MAX || f->size > left - JOURNAL_FRAME_SIZE)
        return false;
    return frame_hash(bytes, salt, f->bytes, f->size) == number(bytes + 16, 8);
}

static const char *head_fault(const uint8_t *bytes, size_t size)
{
    if (size == 0) return "is empty; remove it if the run is to begin anew";
    if (size < JOURNAL_HEAD_SIZE || memcmp(bytes, JOURNAL_WORD, 8) != 0)
        return "is not a journal of pccl-master";
    if (hash_bytes(bytes, 24, 1) != number(bytes + 24, 8))
        return "is damaged in its head";
    if (number(bytes + 8, 4) != JOURNAL_VERSION)
        return "was written by another version of pccl-master";
    return NULL;
}

const char *journal_read(const uint8_t *bytes, size_t size,
                         struct journal_found *found)
{
    struct journal_frame f;
    *found = (struct journal_found){.any = false};
    const char *fault = head_fault(bytes, size);
    if (fault) return fault;
    uint64_t salt = number(bytes + 16, 8);
    size_t at = JOURNAL_HEAD_SIZE;
    while (frame_at(bytes + at, size - at, salt, &f)) {
        bool record = f.kind == JOURNAL_RECORD;
        if (found->any && f.seq != found->seq + record)
            return "is damaged: its records are not in order";
        if (!found->any && !record) break;
        if (record) {
            *found = (struct journal_found){
                .any = true, .seq = f.seq, .bytes = f.bytes, .size = f.size};
        }
        at += JOURNAL_FRAME_SIZE + f.size;
    }
    found->cut = at < size;
    /* What is behind a write that was not finished was never begun. */
    for (size_t next = at + 1; next < size; next++)
        if (frame_at(bytes + next, size - next, salt, &f))
            return "is damaged: behind a record that is not whole are others";
    /* A journal gets its name after its first record is on the disk. */
    return found->any ? NULL : "is damaged in its first record";
}
