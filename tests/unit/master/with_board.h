/* with_board.h - a coordinator and its switchboard, whose peers are buffers:
 * the test moves the bytes. A text says what happens. */
#ifndef CORE_WITH_BOARD_H
#define CORE_WITH_BOARD_H

#include "founded.h"

#include "../../../src/master/server/switchboard.h"

enum { BOARD_PEERS = 12 };

static struct switchboard *board;
static struct master_conn *conns[BOARD_PEERS];
static size_t room[BOARD_PEERS]; /* bytes that the peer still takes */
static bool finished[BOARD_PEERS];
/* Learns what a peer was sent; or NULL. */
static void (*taken)(uint32_t peer, const uint8_t *bytes, size_t size);

static inline uint32_t peer_of(const struct master_conn *c)
{
    return (uint32_t)(uintptr_t)c->user;
}

static inline void board_step(void *user, struct master_event *e)
{
    (void)user;
    static const char *const names[] = {
        [MASTER_CONNECTED] = "connected", [MASTER_CLOSED] = "closed"};
    if (e->type == MASTER_CONNECTED || e->type == MASTER_CLOSED)
        say("%s %u\n", names[e->type], e->link);
    if (e->type == MASTER_RECEIVED)
        say("%u: %s\n", e->link, wire_type_name(e->msg->type));
    e->now = now;
    master_step(master, e);
}

static inline enum conn_result board_flush(void *user, struct master_conn *c)
{
    (void)user;
    struct master_chunk part;
    size_t *left = &room[peer_of(c)];
    while (master_conn_parts(c, &part, 1) > 0) {
        if (*left == 0) return CONN_WAIT;
        if (part.size > *left) part.size = *left;
        *left -= part.size;
        if (taken) taken(peer_of(c), part.bytes, part.size);
        master_conn_sent(c, part.size);
    }
    return CONN_DONE;
}

static inline void board_finish(void *user, struct master_conn *c)
{
    (void)user;
    say("finish %u\n", peer_of(c));
    finished[peer_of(c)] = true;
}

static inline void board_end(void *user, struct master_conn *c)
{
    (void)user;
    if (c->lost) say("end %u: %s\n", peer_of(c), c->lost);
    conns[peer_of(c)] = NULL;
}

static inline void board_send(void *user, const uint32_t *links, uint32_t count,
                              const struct wire_msg *msg)
{
    (void)user;
    switchboard_send(board, links, count, msg);
}

static inline void board_close(void *user, uint32_t link, const char *reason)
{
    say_close(user, link, reason);
    switchboard_close(board, link);
}

static inline void board_relay(void *user, uint32_t link,
                               const struct wire_msg *msg)
{
    (void)user;
    switchboard_relay(board, link, msg);
}

/* Returns 0, as a setup does. */
static inline int open_board(struct master_config config,
                             struct switchboard_limits limits)
{
    const struct switchboard_output out = {NULL, board_step, board_flush,
                                           board_finish, board_end};
    config.out = (struct master_output){
        .send = board_send, .close = board_close, .relay = board_relay};
    config.deadline = PCCL_S;
    board = calloc(1, sizeof *board);
    if (!board || !serve(&config)) return 1;
    switchboard_init(board, master, &out, &limits);
    now = 0;
    memset(finished, 0, sizeof finished);
    for (uint32_t i = 0; i < BOARD_PEERS; i++) room[i] = SIZE_MAX;
    return 0;
}

static inline int close_board(void **state)
{
    switchboard_free(board);
    free(board);
    return teardown(state);
}

#endif
