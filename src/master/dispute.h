/* dispute.h - an operation whose members disagree on its arguments, and the
 * text about it. Rule F9 of AGREEMENT.md. */
#ifndef PCCL_DISPUTE_H
#define PCCL_DISPUTE_H

#include "../base/wire.h"

struct master;
struct master_group;

/* What a member says of an argument, while a text is made (dispute_text.c). */
struct master_word {
    const char *text; /* NULL: the number, or nothing */
    uint32_t size;
    uint64_t number;
    bool absent;
};

/* A member's arguments of the disputed operation. */
struct master_described {
    uint32_t link, rank; /* in the view */
    uint64_t id;
    struct wire_args args; /* args.named is owned */
    struct master_word word;
};

/* The operation on whose arguments two members disagree (rule F9). */
struct master_dispute {
    bool open; /* there is one */
    struct wire_op op;
    uint64_t pair[2]; /* ids: who reported it, and of whom */
    struct master_described *reports;
    uint32_t count, room;
};

/* dispute.c: members disagree on the arguments of an operation. Asks for them
 * in FLUSH, and takes the answer of a FLUSHED that has been checked. */
void dispute_begin(struct master_group *g, const struct wire_op *name,
                   uint64_t reporter, uint64_t other);
void dispute_ask(struct master_group *g, struct wire_msg *flush);
void dispute_answer(struct master *m, uint32_t link,
                    const struct wire_msg *msg);
void dispute_end(struct master_group *g);

/* dispute_text.c: texts of WIRE_TEXT_MAX bytes at most; empty: too little is
 * known. The first argument that differs; and, of operations that wait for each
 * other, their members (V4d). */
void dispute_text(struct master *m, uint32_t group, char *text);
/* About the strategy of a member that the group does not follow (S2a). */
void dispute_text_strategy(uint32_t rank, uint8_t strategy,
                           char text[WIRE_TEXT_MAX + 1]);
void dispute_text_crossed(struct master *m, uint32_t group, uint64_t tag,
                          char *text);

#endif
