/* port_range.c - see port_range.h. */
#include "port_range.h"

static bool read_port(const char **text, uint16_t *port)
{
    uint32_t value = 0;
    const char *at = *text;
    for (; *at >= '0' && *at <= '9' && value <= UINT16_MAX; at++)
        value = value * 10 + (uint32_t)(*at - '0');
    if (value == 0 || value > UINT16_MAX) return false;
    *text = at;
    *port = (uint16_t)value;
    return true;
}

bool port_range_is_text(const char *text)
{
    struct port_range range;
    return port_range_parse(text, &range);
}

bool port_range_parse(const char *text, struct port_range *range)
{
    struct port_range r;
    if (!read_port(&text, &r.first)) return false;
    r.last = r.first;
    if (*text == '-') {
        text++;
        if (!read_port(&text, &r.last)) return false;
    }
    if (*text != '\0' || r.last < r.first) return false;
    *range = r;
    return true;
}
