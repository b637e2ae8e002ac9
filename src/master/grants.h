/* grants.h - what the holder of a token may ask for (rule K13). */
#ifndef PCCL_GRANTS_H
#define PCCL_GRANTS_H

#include "master.h"

/* Whether the connection may send that first message; text: why not. */
bool grants_allow(const struct master *m, uint32_t link,
                  const struct wire_msg *msg, char *text, size_t size);

#endif
