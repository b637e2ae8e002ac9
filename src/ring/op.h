/* op.h - one collective operation, to the files of this folder.
 *
 * The face of the data plane is engine.h. */
#ifndef PCCL_OP_H
#define PCCL_OP_H

#include "engine.h"

/* Search and launch: op.c. */
void engine_apply_unexpected(struct engine *e, struct op *op,
                             struct endpoint *ep);
struct op *op_find(struct engine *e, uint64_t tag, uint32_t seq);
struct endpoint *op_endpoint(struct op *op, const struct link *l);
bool op_agrees(struct engine *e, struct op *op, const struct frame *f,
               uint64_t peer);
bool op_uses_link(const struct engine *e, const struct link *l,
                  const struct op **which);
bool op_in_place(const struct op *op);
uint64_t op_result_size(const struct op *op); /* in r.recvbuf */
/* What a request asks for in the view in force, for plan_init(). */
void op_plan_request(const struct engine *e, const struct op_request *r,
                     struct plan_request *p);
/* op->state of an algorithm: `zeroed` bytes, and more after them that are not.
 * It is given back after the algorithm's end(). */
void *op_take_state(struct engine *e, struct op *op, size_t zeroed,
                    size_t more);
void op_free_run(struct engine *e, struct op *op); /* all but the request */
void op_control_send(struct engine *e, const struct op *op, struct endpoint *ep,
                     enum frame_type type, uint32_t index, uint8_t flags);

/* Results kept for others: result_cache.c. NULL: not seen in this epoch. */
struct tag_entry *op_tag_entry(const struct engine *e, uint64_t tag);
bool op_take_sequence(struct engine *e, uint64_t tag, uint32_t *seq);
/* Reserves a slot for the result of an operation of this tag, if there is one.
 */
bool op_reserve_result(struct engine *e, struct op *op);
void op_release_result(struct engine *e, struct op *op);
bool op_cache_result(struct engine *e, struct op *op, uint32_t size);
struct cached_result *op_cached_result(struct engine *e,
                                       uint64_t tag); /* or NULL */
void op_drop_results(struct engine *e);               /* all of them */
void op_drop_older(struct engine *e, uint64_t tag, uint32_t seq);
void op_drop_finished_before(struct engine *e, uint64_t launched);

/* What it sends next: op_send.c. Rule D2: such a transfer may be sent before
 * READY. */
bool op_eager_fits(const struct endpoint *ep, uint32_t size);
/* Next DATA frame for the connection; false: nothing can be sent now. */
bool op_next_send(struct engine *e, struct conn *c, struct frame *f,
                  const uint8_t **from, struct op **op, struct endpoint **ep);
/* Operations as a client of the links: op_frame.c. */
void op_use_links(struct engine *e);
void op_sent(struct engine *e, struct op *op, struct endpoint *ep);

/* By tag, and with something to send: op_queue.c. */
void op_enter(struct engine *e, struct op *op); /* has its tag now */
void op_leave(struct engine *e, struct op *op);
/* Under way; with as many transfers to send as its endpoints say. */
void op_begin_sending(struct engine *e, struct op *op);
void op_unqueue(struct engine *e, struct op *op);
void op_end_activity(struct engine *e, struct op *op);

/* What is received: op_receive.c. */
enum op_accept {
    ACCEPT_DISCARD,
    ACCEPT_BODY,
    ACCEPT_STREAM, /* as BODY; it need not be in the caches */
};
/* A body may be reduced as it comes, part by part. */
bool op_takes_parts(const struct op *op);
/* Without scratch *to stays NULL for a body that is to be reduced. */
enum op_accept op_accept(struct engine *e, struct op *op, struct endpoint *ep,
                         const struct frame *f, uint8_t *scratch, uint8_t **to);
void op_received(struct engine *e, struct op *op, struct endpoint *ep,
                 const struct frame *f, const uint8_t *body);
/* Part of a body that is reduced as it comes; `at` bytes came before. */
void op_reduce(struct op *op, const struct endpoint *ep, const struct frame *f,
               size_t at, const uint8_t *bytes, size_t size);
void op_control(struct engine *e, struct op *op, struct endpoint *ep,
                const struct frame *f);
/* A frame with FLAG_SINGLE_COPY for an operation that is launched here. */
void op_single_copy(struct engine *e, struct op *op, struct endpoint *ep,
                    const struct frame *f);
/* The partner is known to have launched. */
void op_endpoint_ready(struct engine *e, struct endpoint *ep);

/* Quantized all-reduces (rule D8), of which the plan's elements are blocks of
 * codes: quantized.c. In a world of one nothing is sent, and it is exact. */
bool op_is_quantized(const struct op *op);
size_t op_vector_size(const struct op *op); /* bytes of the caller's vector */
/* From bytes of codes to bytes of the caller's vector, if it is quantized. */
void op_to_elements(const struct op *op, struct plan_xfer *x);

/* Completion: op_done.c. */
/* Everything is sent and here; or only DONE is missing. */
void op_hold(struct engine *e, struct op *op);
void op_check_endpoint(struct engine *e, struct op *op,
                       const struct endpoint *ep);
/* Whether by the plan alone, equal on all members, everyone confirms. */
bool op_all_confirm(const struct op *op);
void op_take_done(struct engine *e, struct op *op, struct endpoint *ep,
                  const struct frame *f);

#endif
