/* port_range.h - a range of ports, as text: FIRST-LAST or PORT. */
#ifndef PCCL_PORT_RANGE_H
#define PCCL_PORT_RANGE_H

#include <stdbool.h>
#include <stdint.h>

struct port_range {
    uint16_t first, last; /* 0, 0: the system picks one */
};

/* False: it is none; *range is untouched. */
bool port_range_parse(const char *text, struct port_range *range);
bool port_range_is_text(const char *text);

#endif
