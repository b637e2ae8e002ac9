/* waiting.h - tells the operator what a blocking call waits in, once it has
 * waited for a while. A call that ends soon tells nothing, and writes nothing
 * but two words of its stack. */
#ifndef WAITING_H
#define WAITING_H

#include "../../include/pccl.h"
#include "facade.h"

struct receive;
struct request;
struct send;

struct call_wait {
    unsigned turn, polls;
    pcclWait_t wait; /* once it was told */
};

enum { WAITING_POLLS = 64 }; /* before it; of a millisecond at most */

static inline void waiting_begins(struct call_wait *w)
{
    w->turn = w->polls = 0;
}

/* A moment between two polls; ends sooner if something has come. True: the call
 * has waited for so long that it should tell what for. */
bool waiting_turn(struct call_wait *w);

void waiting_receive(struct call_wait *w, const struct receive *receive,
                     const char *function);
void waiting_send(struct call_wait *w, const struct send *send,
                  const char *function);
/* `source`: a member, or MATCH_ANY_SOURCE. */
void waiting_probe(struct call_wait *w, const struct comm *comm,
                   uint64_t source, int tag, const char *function);
/* A request, as its kind tells it; NULL: any. */
void waiting_request(struct call_wait *w, struct request *request,
                     const char *function);
/* Any request, or a collective among others. */
void waiting_requests(struct call_wait *w, const char *function);

void waiting_takes_back(struct call_wait *w);

/* The call goes on. */
static inline void waiting_over(struct call_wait *w)
{
    if (w->polls >= WAITING_POLLS) waiting_takes_back(w);
}

/* Names the communicator of a collective, by the tag of its operation. */
void waiting_name(uint64_t tag, char *text, size_t size);

#endif
