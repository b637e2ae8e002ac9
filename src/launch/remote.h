/* remote.h - the launcher's side of an agent: the command that starts it (ssh),
 * the connection through that command, and its end. */
#ifndef PCCL_LAUNCH_REMOTE_H
#define PCCL_LAUNCH_REMOTE_H

#include "host_room.h"
#include "options.h"
#include "proc.h"

struct remote;

/* Callbacks; `user` is the caller's. */
struct remote_events {
    /* The agent is ready; master is the coordinator's address as seen from
     * there. */
    void (*ready)(void *user, const char *master);
    /* There is no connection, or no longer. At most once. */
    void (*lost)(void *user, const char *why);
    /* A frame about a rank. False: no room; remote_wait was called. */
    bool (*on_frame)(void *user, const struct link_frame *frame);
    void *user;
};

struct remote_setup {
    struct ev_loop *loop;
    int guard_fd;
    const char *host;
    const struct options *options; /* launcher and its command */
    struct sink *err;              /* for the output of ssh */
    struct rlimit files;
    bool fixed;                         /* the user chose the address */
    const struct link_texts *addresses; /* of the coordinator */
    struct host_load load;              /* that the agent will start */
    struct remote_events events;
};

/* NULL: the command could not be started; the reason is in error. */
struct remote *remote_open(const struct remote_setup *setup, char *error,
                           size_t error_size);

void remote_send(struct remote *remote, enum link_type type, uint32_t rank,
                 const void *bytes, size_t size);
void remote_send_number(struct remote *remote, enum link_type type,
                        uint32_t rank, int64_t number);

/* Continues reading when sink has room. */
void remote_wait(struct remote *remote, struct sink *sink);

/* Call it after every turn: notices the end of the command. */
void remote_settle(struct remote *remote);
/* Asks the agent to end with all its ranks. */
void remote_finish(struct remote *remote);
/* Treats the agent as lost. */
void remote_give_up(struct remote *remote);
/* Two heartbeats of its agent are missing. */
bool remote_is_silent(const struct remote *remote);
bool remote_is_gone(const struct remote *remote);
/* Kills the command; the agent then ends by itself. */
void remote_close(struct remote *remote);

#endif
