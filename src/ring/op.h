/* op.h - one collective operation, for the files of this folder.
 *
 * The face of the data plane is ring.h, its structs are in engine.h. */
#ifndef PCCL_OP_H
#define PCCL_OP_H

#include "engine.h"

/* The members of its scope, as bits over the ranks of the view: flush.c. */
void op_write_set(const struct engine *e, const struct op *op, uint8_t *set);

/* Search and launch: op.c. */
/* Applies the frames of one link that came before the launch. */
void engine_apply_unexpected(struct engine *e, struct op *op, struct link *l);
struct op *op_find(struct engine *e, uint64_t scope, uint64_t tag,
                   uint32_t seq);
struct endpoint *op_endpoint(struct op *op, const struct link *l);
bool op_has_member(const struct op *op, uint64_t id); /* of its scope */
/* Reports once that the arguments here are not those of that member, which may
 * be this one. */
void op_disagrees(struct engine *e, struct op *op, uint64_t peer);
bool op_agrees(struct engine *e, struct op *op, const struct endpoint *ep,
               const struct frame *f, uint64_t peer);
/* Rule D2c: sizes that only the two of a pair know are part of the digest
 * between them. */
uint64_t op_pair_digest(uint64_t digest, size_t there, size_t back);
bool op_uses_link(const struct engine *e, const struct link *l,
                  const struct op **which);
uint64_t op_result_size(const struct op *op); /* in r.recvbuf */
/* Fills in what the view in force says of the plan of a call; NULL: of one of
 * the whole view. */
void op_plan_request(const struct engine *e, const struct op_call *call,
                     struct plan_request *p);
/* Allocates op->state of an algorithm: `zeroed` bytes of zeros and `more` bytes
 * without a value. op_free_run() frees it, after the algorithm's end(). */
void *op_take_state(struct engine *e, struct op *op, size_t zeroed,
                    size_t more);
void op_free_run(struct engine *e, struct op *op); /* all but the request */
/* Any partner may be sent something now. */
void op_wake(struct engine *e, const struct op *op);
/* Takes its memory back from the connections. Without endpoints it has none
 * there. */
void op_forget(struct engine *e, const struct op *op);
void op_control_send(struct engine *e, const struct op *op, struct endpoint *ep,
                     enum frame_type type, uint32_t index, uint8_t flags);

/* Sequence numbers and the result cache: result_cache.c. NULL: this epoch has
 * not seen the tag in this scope. */
struct tag_entry *op_tag_entry(const struct engine *e, uint64_t scope,
                               uint64_t tag);
/* The sequence number of the operation; takes it. False: the table of tags is
 * full. */
uint32_t op_next_sequence(const struct engine *e, const struct op *op);
bool op_take_sequence(struct engine *e, const struct op *op);
/* Reserves a slot of the result cache for this operation. False: none is
 * free. */
bool op_reserve_result(struct engine *e, struct op *op);
void op_release_result(struct engine *e, struct op *op);
bool op_cache_result(struct engine *e, struct op *op, uint32_t size);
struct cached_result *op_cached_result(struct engine *e, uint64_t scope,
                                       uint64_t tag); /* or NULL */
void op_drop_results(struct engine *e);               /* all of them */
void op_drop_older(struct engine *e, const struct op *op);
/* Rule D7, at the launch and at the success of a confirmed operation. */
void op_begin_sweep(struct engine *e, const struct op *op);
void op_sweep(struct engine *e, const struct op *op);

/* Rule D2b: tells the partner of the launch, by the first transfer to it or by
 * READY. The credit of that transfer is reserved, as no other frame tells it.
 */
void op_announce(struct engine *e, struct op *op, struct endpoint *ep);
/* The next transfer to send: op_send.c. The dependency of transfer k is met. */
bool op_may_send(const struct op *op, const struct endpoint *ep, uint32_t k,
                 struct plan_xfer *x);
/* Rule D2b: a transfer of that size may be sent before `ready`. */
bool op_eager_fits(const struct endpoint *ep, uint32_t size);
/* Chooses the next DATA frame for the connection. False: nothing can be sent
 * now. */
bool op_next_send(struct engine *e, struct conn *c, struct frame *f,
                  const uint8_t **from, struct op **op, struct endpoint **ep);
/* Operations as a client of the links: op_frame.c. */
void op_use_links(struct engine *e);
void op_sent(struct engine *e, struct op *op, struct endpoint *ep);

/* Operations by tag, and operations with something to send: op_queue.c. */
void op_enter(struct engine *e, struct op *op); /* its tag is set */
void op_leave(struct engine *e, struct op *op);
/* The operation is under way: queues as many transfers as its endpoints
 * have. */
void op_begin_sending(struct engine *e, struct op *op);
void op_unqueue(struct engine *e, struct op *op);
void op_end_activity(struct engine *e, struct op *op);

/* Received frames: op_receive.c. */
enum op_accept {
    ACCEPT_DISCARD,
    ACCEPT_BODY,
    ACCEPT_STREAM, /* as BODY, but the body need not be in the caches */
};
/* The algorithm reduces a body part by part as it arrives. */
bool op_takes_parts(const struct op *op);
/* Without scratch, *to stays NULL for a body that is to be reduced. */
enum op_accept op_accept(struct engine *e, struct op *op, struct endpoint *ep,
                         const struct frame *f, uint8_t *scratch, uint8_t **to);
void op_received(struct engine *e, struct op *op, struct endpoint *ep,
                 const struct frame *f, const uint8_t *body);
/* Reduces a part of a body that is still arriving; `at` bytes came before
 * it. */
void op_reduce(struct op *op, const struct endpoint *ep, const struct frame *f,
               size_t at, const uint8_t *bytes, size_t size);
void op_control(struct engine *e, struct op *op, struct endpoint *ep,
                const struct frame *f);
/* Receives a frame with FLAG_SINGLE_COPY for an operation that is launched
 * here. */
void op_single_copy(struct engine *e, struct op *op, struct endpoint *ep,
                    const struct frame *f);
/* A frame with the right digest has come. */
void op_endpoint_ready(struct engine *e, struct op *op, struct endpoint *ep);

/* Quantized all-reduces (rule D8): quantized.c. The elements of the plan are
 * blocks of codes. A world of one sends nothing, and its result is exact. */
bool op_is_quantized(const struct op *op);
size_t op_vector_size(const struct op *op); /* bytes of the caller's vector */
/* If the operation is quantized, converts bytes of codes to bytes of the
 * caller's vector. */
void op_to_elements(const struct op *op, struct plan_xfer *x);

/* Completion: op_done.c. */
/* This member has sent and received everything: the operation is done, or only
 * DONE is missing. */
void op_hold(struct engine *e, struct op *op);
void op_check_endpoint(struct engine *e, struct op *op,
                       const struct endpoint *ep);
/* By the plan alone, which is equal on all members, all members send DONE. */
bool op_all_confirm(const struct op *op);
void op_take_done(struct engine *e, struct op *op, struct endpoint *ep,
                  const struct frame *f);

#endif
