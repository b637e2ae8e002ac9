/* tree.c - see tree.h. */
#include "tree.h"

/* As few members as possible have children, because each of them is waited for;
 * no tree of that width is less deep. */
static uint32_t children_of(uint32_t size, uint32_t width)
{
    uint32_t below = 1; /* members in the largest part of a child */
    if (size - 1 <= width) return size - 1;
    while (width * below < size - 1) below = 1 + width * below;
    uint32_t children = (size - 1 + below - 1) / below;
    return children < 2 ? 2 : children;
}

uint32_t tree_width(uint32_t world)
{
    uint32_t width = TREE_WIDTH;
    while (1 + width + width * width < world) width++;
    return width;
}

uint32_t tree_child(const struct tree_node *node, uint32_t i, uint32_t *size)
{
    uint32_t each = (node->size - 1) / node->children;
    uint32_t rest = (node->size - 1) % node->children;
    *size = each + (i < rest);
    return node->position + 1 + i * each + (i < rest ? i : rest);
}

void tree_find(uint32_t world, uint32_t width, uint32_t position,
               struct tree_node *node)
{
    if (width == 0) width = tree_width(world);
    *node = (struct tree_node){.size = world,
                               .children = children_of(world, width)};
    while (node->position != position) {
        struct tree_node next = {.parent = node->position};
        uint32_t i = 0;
        do {
            next.position = tree_child(node, i++, &next.size);
        } while (position >= next.position + next.size);
        next.children = children_of(next.size, width);
        *node = next;
    }
}
