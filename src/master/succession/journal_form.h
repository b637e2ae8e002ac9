/* journal_form.h - the form of a journal's bytes, for its reader and writer. */
#ifndef PCCL_JOURNAL_FORM_H
#define PCCL_JOURNAL_FORM_H

#include "../../hash/hash.h"
#include "journal.h"

#define JOURNAL_WORD "PCCLJRNL"

enum {
    JOURNAL_VERSION = 1,
    JOURNAL_HEAD_SIZE = 32,
    JOURNAL_FRAME_SIZE = 24,
};

enum journal_kind { JOURNAL_RECORD = 'R', JOURNAL_MARK = 'M' };

void journal_form_head(uint8_t *to, uint64_t salt);
void journal_form_frame(uint8_t *to, enum journal_kind kind, uint64_t seq,
                        uint64_t salt, const void *bytes, size_t size);

/* It is closed with the journal. */
void journal_keep_lock(struct journal *j, int lock);

#endif
