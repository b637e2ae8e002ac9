/* tree.h - the shape of the tree that small collectives of many members use
 * (rule D17): which positions are beside each other in it. Pure.
 *
 * A member and all that are below it have consecutive positions, its own is the
 * first of them. So a sum over them is a sum over a part of the order. */
#ifndef PCCL_TREE_H
#define PCCL_TREE_H

#include <stdint.h>

struct tree_node {
    uint32_t position;
    uint32_t parent;   /* position; its own one: the root, position 0 */
    uint32_t size;     /* members in its part of the tree, with itself */
    uint32_t children; /* at most the width */
};

enum {
    /* One that waits for more children spends its time in reading frames; fewer
     * make the tree deeper. Within a host there are more (rule D17). */
    TREE_WIDTH = 8,
};

/* Children of a member at most: TREE_WIDTH, or as many as it takes for two
 * levels below the root. So a result takes four distances in any world. */
uint32_t tree_width(uint32_t world);
/* Position of `world`; width >= 2, or 0: tree_width(world). */
void tree_find(uint32_t world, uint32_t width, uint32_t position,
               struct tree_node *node);
/* Child i: its position and the number of members in its part. */
uint32_t tree_child(const struct tree_node *node, uint32_t i, uint32_t *size);

#endif
