/* model.h - most rules (README.md says which) of src/AGREEMENT.md
 * again, written from their text alone, as a checker of traces.
 *
 * It keeps the state that the rules speak of, for the master and for each
 * process, and refuses the first event that no rule allows, or that comes
 * though a rule demands another one. It knows no time but deadlines, no bytes
 * but their hashes (of partial all-reduces: all), no plan of any algorithm.
 * model.c has the channels and the dispatch, model_master.c the master,
 * model_member.c the processes, model_heirs.c the next master, model_calls.c
 * the operations of all of them together; model_ledger.c, model_owed.c,
 * model_caller.c and model_data.c the partial all-reduces. README.md has a
 * table of the rules. */
#ifndef MODEL_H
#define MODEL_H

#include "trace.h"

struct model;

struct model *model_new(int64_t deadline); /* NULL: out of memory */
void model_free(struct model *m);

/* Takes one event. NULL, or what it breaks; after that the model is of no more
 * use. The text is borrowed. */
const char *model_take(struct model *m, const struct trace *t);

/* After the last event: a trace that ends early, or in which nothing happens,
 * is no proof. */
const char *model_end(struct model *m);

#endif
