/* agent_link.h - frames between the launcher and the agent that starts ranks on
 * another host; they travel over the agent's standard input and output, that
 * is, inside ssh.
 *
 * A frame is size (4 bytes, of what follows the header), rank (4), type (1),
 * three zeros, all little-endian, then its bytes. Lists of texts are texts
 * that end with '\0', numbers among them in decimal. */
#ifndef PCCL_LAUNCH_LINK_H
#define PCCL_LAUNCH_LINK_H

#include "launch_base.h"

#include <ev.h>

/* What an agent says first; a login script may have said something before. */
#define LINK_MAGIC "\n\001pccl-agent " PCCL_VERSION_STRING "\n"

#define LINK_BEAT 2.0     /* s between signs of life, both ways */
#define LINK_SILENCE 60.0 /* s without one after which the other is gone */

enum {
    LINK_HEADER = 12,
    LINK_FRAME_MAX = 8 * 1024 * 1024,
    LINK_PREFIX_MAX = 64 * 1024, /* before the magic */
};

enum link_type {
    /* launcher to agent */
    LINK_SETUP = 1, /* directory, silence, then addresses of the coordinator */
    LINK_START,     /* see remote_start */
    LINK_INPUT,     /* for a rank's standard input; nothing: its end */
    LINK_SIGNAL,    /* number; to the process group of the rank */
    LINK_CLOSE,     /* "1" or "2": nobody reads this output any more */
    /* agent to launcher */
    LINK_READY,   /* how the coordinator is reached from there */
    LINK_REFUSED, /* the agent cannot work, and why */
    LINK_STARTED, /* process id */
    LINK_FAILED,  /* not started: exit status, text */
    LINK_OUT,
    LINK_ERR,
    LINK_TAKEN, /* the INPUT has been written; 1 or 0: more is wanted */
    LINK_ENDED, /* wait status */
    LINK_GONE,  /* nothing of the process is left, all its output was sent */
    /* both */
    LINK_ALIVE,
};

struct link_frame {
    enum link_type type;
    uint32_t rank;
    const char *bytes;
    size_t size;
};

void link_header(char header[LINK_HEADER], enum link_type type, uint32_t rank,
                 size_t size);

enum link_result { LINK_OK, LINK_MORE, LINK_BAD };
/* Reads the frame at bytes[0, size); its bytes are borrowed. */
enum link_result link_decode(const char *bytes, size_t size,
                             struct link_frame *frame);

/* A list of texts being written, or read. */
struct link_texts {
    char *bytes;
    size_t size, at;
};

void link_put(struct link_texts *texts, const char *text);
void link_put_number(struct link_texts *texts, int64_t number);
/* NULL when there is no further one. */
const char *link_get(struct link_texts *texts);
/* False when there is none, or it is no number. */
bool link_get_number(struct link_texts *texts, int64_t *number);

/* One end: frames come in by `took`, what is sent waits in memory. */
struct agent_link {
    struct ev_loop *loop;
    ev_io in, out; /* out: not used by an agent, who writes through a sink */
    char *rx, *tx;
    size_t rx_size, rx_space, tx_begin, tx_end, tx_space;
    ev_tstamp heard;
    bool broken, paused;
    bool prefixed; /* the magic is still to come */
    /* False: not now; the frame comes again after link_resume. */
    bool (*took)(struct agent_link *link, const struct link_frame *frame);
    /* Once; the link is closed already. */
    void (*broke)(struct agent_link *link, const char *why);
    void *user;
};

/* Takes both descriptors; out_fd may be -1. */
void link_open(struct agent_link *link, struct ev_loop *loop, int in_fd,
               int out_fd);
void link_send(struct agent_link *link, enum link_type type, uint32_t rank,
               const void *bytes, size_t size);
void link_resume(struct agent_link *link);
/* Nothing more is sent, and the other side learns it. */
void link_finish(struct agent_link *link);
void link_close(struct agent_link *link);

#endif
