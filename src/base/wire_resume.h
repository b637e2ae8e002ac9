/* wire_resume.h - for wire.c: the fields of the messages by which a coordinator
 * takes a peer in, and the next one takes it over (rules H). */
#ifndef PCCL_WIRE_RESUME_H
#define PCCL_WIRE_RESUME_H

#include "cursor.h"
#include "wire.h"

void wire_addr_field(struct cursor *c, struct wire_addr *a);
void wire_welcome_field(struct cursor *c, struct wire_msg *m);
void wire_resume_field(struct cursor *c, struct wire_msg *m); /* RESUMED too */
/* KEEP, KEPT, KEEP_GET, CLAIM. */
void wire_keep_field(struct cursor *c, struct wire_msg *m);

/* The later record (rule H10). */
static inline bool wire_record_above(struct wire_record_name a,
                                     struct wire_record_name b)
{
    return a.term != b.term ? a.term > b.term : a.seq > b.seq;
}

static inline bool wire_record_same(struct wire_record_name a,
                                    struct wire_record_name b)
{
    return a.term == b.term && a.seq == b.seq;
}

/* KEEP with the part of the record that begins at `at`. Returns where the next
 * part begins. */
uint32_t wire_record_part(struct wire_msg *msg, struct wire_record_name name,
                          const uint8_t *bytes, uint32_t size, uint32_t at);

#endif
