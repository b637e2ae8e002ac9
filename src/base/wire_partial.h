/* wire_partial.h - for wire.c: the fields of the messages about partial
 * all-reduces. */
#ifndef PCCL_WIRE_PARTIAL_H
#define PCCL_WIRE_PARTIAL_H

#include "cursor.h"
#include "wire.h"

/* PARTIAL and COVERAGE, but for the text. */
void wire_partial_field(struct cursor *c, struct wire_msg *m);
void wire_part_field(struct cursor *c, struct wire_part *p);

#endif
