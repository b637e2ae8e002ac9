/* wire_member.h - how a member stands in a message: alone in HELLO, and in a
 * list, where an entry says only how it differs from the one before it. A list
 * has one form: an entry that could be shorter is refused. */
#ifndef PCCL_WIRE_MEMBER_H
#define PCCL_WIRE_MEMBER_H

#include "cursor.h"
#include "wire.h"

enum { WIRE_MEMBER_MAX = 63 }; /* bytes of either */

void wire_member_field(struct cursor *c, struct wire_member *m);
void wire_members_list(struct cursor *c, uint32_t *count,
                       const struct wire_member **list,
                       struct wire_member *store);

#endif
