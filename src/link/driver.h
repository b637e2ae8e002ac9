/* driver.h - the functions of a driver for the links of a member: it connects,
 * closes, and makes shared memory. The owner fills the struct in, and every
 * layer passes it on unchanged. */
#ifndef PCCL_DRIVER_H
#define PCCL_DRIVER_H

#include "../base/wire.h"
#include "channel.h"

#define NO_CONN UINT32_MAX

/* Functions may be NULL where a comment allows it. */
struct driver {
    void *user;
    /* Starts to connect. Returns a connection number, and later conn_dialed()
     * reports the result; or NO_CONN: impossible now. */
    uint32_t (*dial)(void *user, const struct wire_addr *addr);
    void (*close)(void *user, uint32_t conn);
    /* As dial(), to the master, as a relay (rule N11); or NULL. */
    uint32_t (*dial_master)(void *user);
    /* Rule L1; all three or none, and each may return NULL: no shared memory
     * here. Makes memory for a connection that this member dials, and
     * describes it for the HELLO; */
    struct channel *(*share)(void *user, uint32_t conn,
                             struct channel_offer *offer);
    /* opens the memory that the dialer of a connection offers; */
    struct channel *(*join)(void *user, uint32_t conn,
                            const struct channel_offer *offer);
    /* learns whether the other end took what share() made. */
    void (*shared)(void *user, uint32_t conn, bool taken);
    /* Rule L7; both or none. Returns this member's region, makes it at the
     * first call, and describes how others find it; or NULL. It stays until the
     * engine is gone. */
    uint8_t *(*region_export)(void *user, struct channel_offer *offer);
    /* Returns the region of the other end of a connection: REGION_SIZE bytes to
     * read until the connection is closed; or NULL. */
    const uint8_t *(*region_attach)(void *user, uint32_t conn,
                                    const struct channel_offer *offer);
    /* Copies the next bytes of a body into a channel, where `left` of it are
     * left; or NULL: memcpy() will do. `first`: none was copied before. */
    void (*fill)(void *user, uint32_t conn, void *to, const void *from,
                 size_t size, size_t left, bool first);
    /* Rule P2P-9, or NULL: copies from a member's memory. False: it cannot be
     * read, or the member may have gone before all of it was. */
    bool (*cma_read)(void *user, uint32_t conn,
                     const struct wire_member *member, uint64_t address,
                     void *to, size_t size);
    /* Rule D27; both or none. The member's memory can be read so; the system
     * reads these bytes of this process for others. */
    bool (*cma_works)(void *user, uint32_t conn,
                      const struct wire_member *member);
    bool (*cma_lends)(void *user, const void *bytes, size_t size);
    /* Both or none; where a transfer of that many bytes may come either way,
     * whether CMA is the faster one. `alone`: no other one is expected from
     * this member. Then */
    bool (*cma_prefers)(void *user, uint32_t conn, size_t size, bool alone);
    /* tells that it is here. */
    void (*cma_compared)(void *user, uint32_t conn, size_t size);
    /* Rule D18; both or none. The pages of a buffer can change places with
     * others, and that is faster than a copy. */
    bool (*may_exchange)(void *user, const void *bytes, size_t size);
    /* Afterwards `to` has what `from` had, up to the number of bytes that is
     * returned. From there on `from` is as it was, and `to` has any bytes; what
     * is before it in `from` are any bytes. */
    size_t (*exchange)(void *user, void *to, void *from, size_t size);
    /* Least round-trip time to a member that the system knows of, ns; 0:
     * unknown. May be NULL. */
    uint64_t (*round_trip)(void *user, uint64_t peer);
};

#endif
