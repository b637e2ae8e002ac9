/* engine_io.c - the connections of an engine, for the driver. See engine.h. */
#include "engine.h"

bool engine_accepted(struct engine *e, uint32_t conn)
{
    return conn_accepted(&e->links, conn);
}

void engine_dialed(struct engine *e, uint32_t conn, bool success)
{
    conn_dialed(&e->links, conn, success);
}

void engine_measured(struct engine *e, uint32_t conn, pccl_ns rtt)
{
    conn_measured(&e->links, conn, rtt);
}

bool engine_is_long(const struct engine *e, uint32_t conn)
{
    return conn_is_long(&e->links, conn);
}

void engine_closed(struct engine *e, uint32_t conn)
{
    conn_closed(&e->links, conn);
}

size_t engine_rx_window(struct engine *e, uint32_t conn, uint8_t **to)
{
    return conn_rx_window(&e->links, conn, to);
}

bool engine_rx(struct engine *e, uint32_t conn, size_t size)
{
    return conn_rx(&e->links, conn, size);
}

size_t engine_rx_from(struct engine *e, uint32_t conn, const uint8_t *bytes,
                      size_t size)
{
    return conn_rx_from(&e->links, conn, bytes, size);
}

void engine_rx_dry(struct engine *e, uint32_t conn)
{
    conn_rx_dry(&e->links, conn);
}

uint32_t engine_tx_window(struct engine *e, uint32_t conn,
                          struct conn_part parts[2])
{
    return conn_tx_window(&e->links, conn, parts);
}

void engine_tx(struct engine *e, uint32_t conn, size_t size)
{
    conn_tx(&e->links, conn, size);
}

bool engine_may_send(const struct engine *e, uint32_t conn)
{
    return conn_may_send(&e->links, conn);
}

uint64_t engine_may_send_word(const struct engine *e, uint32_t word)
{
    return e->links.dirty[word];
}

void engine_clear_dirty(struct engine *e, uint32_t conn)
{
    conn_clear_dirty(&e->links, conn);
}
