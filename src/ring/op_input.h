/* op_input.h - an operation that does not succeed leaves its input as it was
 * (contract C2). One mechanism for all algorithms. Pure.
 *
 * Where the result would replace the input, or has no place, the algorithm
 * writes to scratch memory instead (op->r.recvbuf), and the caller's buffer
 * gets the result when all members are known to hold it: by an exchange of
 * pages (rule D18), or by a copy. A large vector whose pages cannot be
 * exchanged would be read from memory once more for that. An algorithm that
 * announces its writes (`announces_writes` of algorithm.h) makes such a result
 * in place, and what it overwrites is saved, block by block, and put back on
 * failure. */
#ifndef PCCL_OP_INPUT_H
#define PCCL_OP_INPUT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct engine;
struct op;

/* Saved and then overwritten while it is in the nearest caches, bytes. */
enum { INPUT_BLOCK = 32 * 1024 };

/* Part of an operation. */
struct op_input {
    bool aside;      /* r.recvbuf is scratch memory, in place of */
    uint8_t *target; /* the caller's buffer; NULL: it has no place */
    uint8_t *block;  /* of the pool, for the result or for what is saved */
    uint8_t *saved;  /* bit set over the blocks; NULL: nothing is saved */
    bool exchanges;  /* the pages of the result become those of the target */
    size_t size;     /* of the result */
    size_t each;     /* bytes of a block */
};

/* Chooses where the algorithm writes. False: no memory. */
bool input_begin(struct engine *e, struct op *op);
/* The algorithm is about to write there. */
void input_overwrite(struct op *op, const uint8_t *to, size_t size);
/* The operation has succeeded: the result is in the caller's buffer. */
void input_commit(const struct engine *e, const struct op *op);
/* It has not: the caller's buffer is as it was at the launch. */
void input_restore(const struct op *op);
/* The request has the caller's buffer again. */
void input_end(struct engine *e, struct op *op);

#endif
