/* wire_resume.h - for wire.c: the fields of the messages by which a coordinator
 * takes a peer in, and the next one takes it over (rules H). */
#ifndef PCCL_WIRE_RESUME_H
#define PCCL_WIRE_RESUME_H

#include "cursor.h"
#include "wire.h"

void wire_welcome_field(struct cursor *c, struct wire_msg *m);
void wire_resume_field(struct cursor *c, struct wire_msg *m); /* RESUMED too */

#endif
