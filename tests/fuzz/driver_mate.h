/* driver_mate.h - shared by driver_world.c and driver_mate.c. */
#ifndef PCCL_FUZZ_DRIVER_MATE_H
#define PCCL_FUZZ_DRIVER_MATE_H

#include "driver_world.h"

extern struct world_options world_options;

void world_open(struct world_end *e, uint32_t stream, int side);
void world_hang_up(struct world_end *e, bool reset);
size_t world_get(struct world_end *e, uint8_t *to, size_t size);
size_t world_put(struct world_end *e, const uint8_t *from, size_t size);
bool world_ended(const struct world_end *e);
void world_send(struct world_control *c, const struct wire_msg *msg);
bool world_fill(struct world_control *c);
bool world_next(struct world_control *c, struct wire_msg *msg, size_t *used);
bool world_has_newcomer(void); /* who waits to be admitted */
void world_used(struct world_control *c, size_t size);

void mates_begin(void);
bool mate_turn(struct mate *m);
void mate_tick(struct mate *m);
uint32_t mate_number(const struct mate *m);

/* --- driver_wish.c --- */
void wishes_begin(void);
bool wishes_fulfil(struct mate *m); /* in a view */
void wishes_take(struct mate *m);
void wishes_end(struct mate *m);
/* The tensor that all have. */
void mate_describe(struct mate *m, struct state_list *list, bool hashes);

#endif
