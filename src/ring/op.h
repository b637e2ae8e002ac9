/* op.h - one collective operation, to the files of this folder.
 *
 * The face of the data plane is engine.h. */
#ifndef PCCL_OP_H
#define PCCL_OP_H

#include "engine.h"

void engine_apply_unexpected(struct engine *e, struct op *op,
                             struct endpoint *ep);
struct op *op_find(struct engine *e, uint64_t tag, uint32_t seq);
/* NULL: not seen in this epoch. */
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
struct endpoint *op_endpoint(struct op *op, const struct link *l);
/* Rule D2: such a transfer may be sent before READY. */
bool op_eager_fits(const struct endpoint *ep, uint32_t size);
void op_control_send(struct engine *e, const struct op *op, struct endpoint *ep,
                     enum frame_type type, uint32_t index, uint8_t flags);
/* op_send.c: next DATA frame for the connection; false: nothing can be sent
 * now. */
bool op_next_send(struct engine *e, struct conn *c, struct frame *f,
                  const uint8_t **from, struct op **op, struct endpoint **ep);
/* op_frame.c: operations as a client of the links. */
void op_use_links(struct engine *e);
void op_sent(struct engine *e, struct op *op, struct endpoint *ep);
/* The partner is known to have launched. */
void op_endpoint_ready(struct engine *e, struct endpoint *ep);
/* queue.c: operations by tag, and those with something to send. */
void op_enter(struct engine *e, struct op *op); /* has its tag now */
void op_leave(struct engine *e, struct op *op);
/* Under way; with as many transfers to send as its lanes say. */
void op_begin_sending(struct engine *e, struct op *op);
void op_unqueue(struct engine *e, struct op *op);
void op_end_activity(struct engine *e, struct op *op);
bool op_agrees(struct engine *e, struct op *op, const struct frame *f,
               uint64_t peer);
enum op_accept { ACCEPT_DISCARD, ACCEPT_BODY };
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
/* fold.c: the results of small all-reduces. */
void op_fold(struct op *op); /* slots to recv */
/* The same for an exchange of two, as it comes: first, and then each part. */
void op_fold_begin(struct op *op);
void op_reduce_two(struct op *op, size_t at, const uint8_t *bytes, size_t size);
void op_fold_star(struct engine *e, struct op *op); /* something came */
void op_take_result(struct op *op); /* what came from the center of a star */

/* pairwise.c: the sum of one's own chunk, partner by partner (rule D3), and of
 * the own site's parts of others (rule D15). */
bool op_pairwise_take(struct engine *e, struct op *op);
/* Where what comes before its turn goes; NULL: it is its turn. */
uint8_t *op_pairwise_slot(const struct op *op, const struct endpoint *ep,
                          uint32_t k);
/* lent.c: the same of an all-reduce through lent memory. */
bool op_single_copy_take(struct engine *e, struct op *op);
uint8_t *op_single_copy_slot(const struct op *op, const struct endpoint *ep,
                             uint32_t k);
/* A frame with FLAG_SINGLE_COPY for an operation that is launched here. */
void op_single_copy(struct engine *e, struct op *op, struct endpoint *ep,
                    const struct frame *f);
/* `f` has the transfer's size, also where FLAG_SINGLE_COPY says that it lies in
 * lent memory. */
void op_single_copy_received(struct engine *e, struct op *op,
                             const struct endpoint *ep, const struct frame *f,
                             const uint8_t *body);
/* Bytes from `at` on of the part of a piece whose turn it is. */
void op_pairwise_add(struct op *op, uint32_t piece, uint32_t turn, size_t at,
                     const uint8_t *bytes, size_t size);
/* `body` is what op_pairwise_slot said, or else was reduced if NULL. */
void op_pairwise_received(struct engine *e, struct op *op,
                          const struct endpoint *ep, const struct frame *f,
                          const uint8_t *body);

/* op_restore.c */
bool op_in_place(const struct op *op);
/* Before the first write to the target of transfer k from `prev`. */
void op_save(struct op *op, uint32_t k, const struct plan_xfer *x);
/* Pairwise: before every write to a piece; and of all that is left. */
void op_save_piece(struct op *op, uint32_t piece);
void op_save_pieces(struct op *op);

/* Quantized all-reduces: op_quant.c (rule D8). */
bool op_is_quantized(const struct op *op);
size_t op_vector_size(const struct op *op); /* bytes of the caller's vector */
uint64_t op_result_size(const struct op *op);
void op_to_elements(const struct op *op, struct plan_xfer *x);
bool op_quant_take(struct engine *e, struct op *op);
void op_quant_begin(struct op *op);
const uint8_t *op_quant_source(struct op *op, const struct plan_xfer *x);
void op_quant_received(struct op *op, uint32_t k, const struct plan_xfer *x,
                       const uint8_t *body);
void op_quant_fold(struct op *op);
bool op_uses_link(const struct engine *e, const struct link *l,
                  const struct op **which);

#endif
