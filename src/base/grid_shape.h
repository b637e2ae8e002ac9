/* grid_shape.h - the shape of the grid in which small collectives of many hosts
 * go (rule D20): rows and columns of positions. Pure.
 *
 * The members of a row have consecutive positions, so a sum over a row is a sum
 * over a part of the order. The lengths of two rows differ by one at most. A
 * member exchanges data with its row, and then gets the sum of each other row
 * from one member of that row: the one in its own column, or, if that row is
 * too short, the one that the number of its own row selects. */
#ifndef PCCL_GRID_SHAPE_H
#define PCCL_GRID_SHAPE_H

#include "base.h"

struct grid_node {
    uint32_t world, position;
    uint32_t rows;
    uint32_t row, column; /* of this position */
    uint32_t first, size; /* its row: first position, members */
};

/* world >= 1, position < world. */
void grid_find(uint32_t world, uint32_t position, struct grid_node *node);
/* First position of a row, and its members. */
uint32_t grid_row(const struct grid_node *node, uint32_t row, uint32_t *size);

/* This position sends what it knows to that one: its own data within the row,
 * the sum of the row to another one. */
bool grid_sends(const struct grid_node *node, uint32_t to);

/* The positions with which this one exchanges anything, in either direction:
 * first the others of its row. */
uint32_t grid_partners(const struct grid_node *node);
uint32_t grid_partner(const struct grid_node *node, uint32_t i);

#endif
