/* agent_link.h - frames between the launcher and the agent of another host,
 * over the agent's standard input and output (through ssh).
 *
 * A frame is size (4 bytes, of what follows the header), rank (4) and type (4),
 * all big-endian, then its bytes. Lists of texts are texts that end with '\0',
 * numbers among them in decimal. */
#ifndef PCCL_LAUNCH_AGENT_LINK_H
#define PCCL_LAUNCH_AGENT_LINK_H

#include "launch_base.h"

#include <ev.h>

/* First bytes of an agent; a login script may print text before them. */
#define LINK_MAGIC "\n\001pccl-agent " PCCL_VERSION_STRING "\n"

#define LINK_HEARTBEAT 2.0 /* s between heartbeats, in both directions */
#define LINK_SILENCE 60.0  /* s without a frame: the peer is lost */

enum {
    LINK_HEADER = 12,
    LINK_FRAME_MAX = 8 * 1024 * 1024,
    LINK_PREFIX_MAX = 64 * 1024, /* before the magic */
};

enum link_type {
    /* launcher to agent */
    LINK_SETUP = 1, /* directory, whether the address is the user's choice, the
                       key of the run or "", its ranks, those with an input,
                       addresses of the coordinator */
    LINK_START,     /* see remote_start */
    LINK_INPUT,     /* input of a rank; empty: end of input */
    LINK_SIGNAL,    /* number; to the process group of the rank */
    LINK_CLOSE,     /* "1" or "2": this output has no reader any more */
    LINK_LOOK,      /* a silent peer's id, host and process id */
    LINK_EVICT,     /* a process's host and id, milliseconds that it has to
                       end by itself; or -1, it stays */
    /* agent to launcher */
    LINK_READY,   /* address of the coordinator as seen from the agent */
    LINK_REFUSED, /* the agent cannot work; the reason */
    LINK_STARTED, /* process id, its host, its processors or "" */
    LINK_FAILED,  /* not started: exit status, text */
    LINK_OUT,
    LINK_ERR,
    LINK_TAKEN,  /* INPUT was written; 1: more is wanted, 0: not */
    LINK_ENDED,  /* wait status; 1: it was left, 0 */
    LINK_EVICTS, /* the answer to EVICT, if it is this rank: 0, it stays */
    LINK_GONE,   /* the process group is empty, and all output was sent */
    LINK_SEEN,   /* id of LOOK, and the evidence; of the peer's host only */
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
/* Decodes the frame at bytes[0, size); it borrows its bytes. */
enum link_result link_decode(const char *bytes, size_t size,
                             struct link_frame *frame);

/* A list of texts to write or to read. */
struct link_texts {
    char *bytes;
    size_t size, at;
};

/* Those of a frame, which it borrows. */
static inline struct link_texts link_texts_of(const struct link_frame *frame)
{
    return (struct link_texts){.bytes = (char *)(uintptr_t)frame->bytes,
                               .size = frame->size};
}

void link_put(struct link_texts *texts, const char *text);
void link_put_number(struct link_texts *texts, int64_t number);
/* The next text, or NULL. */
const char *link_get(struct link_texts *texts);
/* False: no further text, or not a number. */
bool link_get_number(struct link_texts *texts, int64_t *number);

/* One end of the connection. `on_frame` gets received frames; output is
 * buffered. */
struct agent_link {
    struct ev_loop *loop;
    ev_io in, out; /* out: unused in an agent, which writes through a sink */
    char *rx, *tx;
    size_t rx_size, rx_space, tx_begin, tx_end, tx_space;
    ev_tstamp last_recv, judged;
    uint32_t heartbeats; /* of ours since then */
    bool broken, paused;
    bool prefixed; /* the magic has not arrived yet */
    /* False: not now; link_resume delivers the frame again. */
    bool (*on_frame)(struct agent_link *link, const struct link_frame *frame);
    /* Called once; the link is already closed. */
    void (*on_closed)(struct agent_link *link, const char *why);
    void *user;
};

/* Takes over both descriptors; out_fd may be -1. */
void link_open(struct agent_link *link, struct ev_loop *loop, int in_fd,
               int out_fd);
void link_send(struct agent_link *link, enum link_type type, uint32_t rank,
               const void *bytes, size_t size);
void link_resume(struct agent_link *link);
/* Called with each heartbeat: whether the peer has been silent for too long.
 * Time in which this process was stopped does not count. */
bool link_is_silent(struct agent_link *link);
/* Shuts down the output, which the peer notices. */
void link_finish(struct agent_link *link);
void link_close(struct agent_link *link);

#endif
