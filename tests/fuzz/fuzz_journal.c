/* fuzz_journal.c - the journal of a coordinator, and the memory in it, of
 * anybody's making. */
#include "fuzz.h"

#include "../../src/master/journal_form.h"
#include "../../src/master/memory.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

enum { ROOM = 4096 };

static void read_memory(const uint8_t *bytes, size_t size)
{
    static struct master_memory memory, again;
    static uint8_t out[MEMORY_SIZE_MAX];
    if (!memory_decode(&memory, bytes, size)) return;
    assert(memory_encode(&memory, out) == size);
    assert(memcmp(out, bytes, size) == 0);
    assert(memory_decode(&again, out, size));
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

int LLVMFuzzerTestOneInput(const uint8_t *in, size_t size)
{
    read_one(in, size);
    read_memory(in, size);
    struct fuzz_input numbers = {in, size};
    changed(&numbers);
    return 0;
}
