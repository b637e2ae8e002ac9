/* prefetch.h - a newcomer downloads the shared state before it joins (rule
 * S10): it is the guest of one member after the other, until each block that it
 * has is of a revision that is at most `max_stale` behind the one offered.
 *
 * One question per block, which carries the hash of what the guest has there,
 * so that nothing travels twice. Nothing of what comes is believed: the first
 * synchronization compares it with the members' state. Pure: the driver asks
 * the master, dials and moves bytes. */
#ifndef PCCL_PREFETCH_H
#define PCCL_PREFETCH_H

#include "../base/base.h"
#include "../base/wire.h"
#include "../link/frame.h"
#include "offer.h"
#include "state_list.h"

enum prefetch_state {
    PREFETCH_WAITS,  /* until ask_at, then it asks */
    PREFETCH_ASKS,   /* the driver asks the master for OFFERS */
    PREFETCH_DIALS,  /* the driver dials `server`, and reports the result */
    PREFETCH_RUNS,   /* the driver moves the bytes of that connection */
    PREFETCH_DONE,   /* all blocks are there */
    PREFETCH_NOBODY, /* nobody is in the group */
    PREFETCH_UNLIKE, /* all that offer have other tensors */
    PREFETCH_FAILED, /* a device could not be written */
};

struct prefetch {
    const struct state_list *list; /* the caller's; without hashes */
    uint64_t max_stale;
    enum prefetch_state state;
    pccl_ns now, deadline;
    pccl_ns ask_at, since; /* since: the last byte, or the dial */
    pccl_ns sent_at;
    uint32_t attempt; /* number of the dial; another one: close the former */
    struct wire_key key;
    struct wire_member servers[WIRE_OFFERS_MAX], server;
    uint32_t server_count, server_next;
    uint32_t unlike; /* servers of this list with other tensors */

    /* The plan. */
    uint64_t *got;     /* by block: 1 + the revision that it is of; or 0 */
    uint64_t revision; /* that the server offers */
    bool told;         /* the server has said so */
    uint64_t fresh;    /* blocks that are of a revision that will do */
    uint32_t tensor;   /* the next block to ask for */
    uint64_t block;
    struct prefetch_question {
        uint32_t tensor, size;
        uint64_t block;
    } asked[OFFER_WINDOW]; /* in the order of the answers */
    uint32_t asked_first, asked_count;

    /* The connection. */
    uint8_t head[FRAME_SIZE];
    uint32_t head_filled;
    struct frame rx;
    bool in_body, greeted;
    uint8_t *rx_to; /* NULL: to be dropped */
    uint32_t rx_left;
    uint8_t hello[FRAME_HELLO_SIZE];
    uint8_t trash[4096];
    uint8_t tx[2 * FRAME_SIZE + FRAME_HELLO_SIZE + FRAME_FILL_SIZE];
    uint32_t tx_size, tx_done;
    const struct state_device *device; /* of stage */
    uint8_t *stage;

    uint64_t rx_bytes;  /* of blocks, so far */
    uint64_t rx_blocks; /* the number of these blocks */
    uint32_t lost;      /* servers that were lost, or were silent */
};

/* The list outlives it; its tensors are written until prefetch_free(). False:
 * out of memory. */
bool prefetch_init(struct prefetch *p, const struct state_list *list,
                   uint64_t max_stale, pccl_ns deadline, pccl_ns now);
void prefetch_free(struct prefetch *p);
/* Often, at least each tenth of the deadline. */
void prefetch_tick(struct prefetch *p, pccl_ns now);

/* ASKS: the answer of the master; or none came. */
void prefetch_servers(struct prefetch *p, const struct wire_msg *offers);
void prefetch_unanswered(struct prefetch *p);
/* DIALS: the result. */
void prefetch_dialed(struct prefetch *p, bool success);
/* RUNS: the connection has ended. */
void prefetch_closed(struct prefetch *p);

/* RUNS: where the next bytes go, and come from; 0: none now. */
size_t prefetch_rx_window(struct prefetch *p, uint8_t **to);
void prefetch_rx(struct prefetch *p, size_t size);
size_t prefetch_tx_window(struct prefetch *p, const uint8_t **from);
void prefetch_tx(struct prefetch *p, size_t size);

/* The oldest revision of a block; the one offered without blocks. */
uint64_t prefetch_oldest(const struct prefetch *p);

#endif
