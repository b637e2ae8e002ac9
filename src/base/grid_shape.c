/* grid_shape.c - see grid_shape.h. */
#include "grid_shape.h"

/* The largest number of rows that are not shorter than their number. */
static uint32_t rows_of(uint32_t world)
{
    uint32_t rows = 1;
    while ((rows + 1) * (rows + 1) <= world) rows++;
    return rows;
}

uint32_t grid_row(const struct grid_node *node, uint32_t row, uint32_t *size)
{
    uint32_t each = node->world / node->rows;
    uint32_t rest = node->world % node->rows;
    *size = each + (row < rest);
    return row * each + (row < rest ? row : rest);
}

void grid_find(uint32_t world, uint32_t position, struct grid_node *node)
{
    *node = (struct grid_node){
        .world = world, .position = position, .rows = rows_of(world)};
    uint32_t each = world / node->rows, rest = world % node->rows;
    uint32_t longer = rest * (each + 1); /* members of the longer rows */
    node->row = position < longer ? position / (each + 1)
                                  : rest + (position - longer) / each;
    node->first = grid_row(node, node->row, &node->size);
    node->column = position - node->first;
}

static uint32_t source_of(const struct grid_node *to, uint32_t row)
{
    uint32_t size, first = grid_row(to, row, &size);
    return first + (to->column < size ? to->column : to->row % size);
}

bool grid_sends(const struct grid_node *node, uint32_t to)
{
    struct grid_node other;
    grid_find(node->world, to, &other);
    if (other.row == node->row) return to != node->position;
    return source_of(&other, node->row) == node->position;
}

/* Of another row: its members that this one sends to, and its source there.
 * Those that it sends to are the one in its column and, in a longer row, the
 * last one. Returns the i-th of them, or the world. */
static uint32_t partner_in(const struct grid_node *node, uint32_t row,
                           uint32_t i)
{
    uint32_t size, first = grid_row(node, row, &size);
    uint32_t source = source_of(node, row), last = first + size - 1;
    if (i == 0) return source;
    bool sends_last =
        size > node->size && last != source && grid_sends(node, last);
    return i == 1 && sends_last ? last : node->world;
}

uint32_t grid_partners(const struct grid_node *node)
{
    uint32_t count = node->size - 1;
    for (uint32_t row = 0; row < node->rows; row++) {
        if (row == node->row) continue;
        count += partner_in(node, row, 1) < node->world ? 2 : 1;
    }
    return count;
}

uint32_t grid_partner(const struct grid_node *node, uint32_t i)
{
    if (i < node->size - 1) return node->first + i + (i >= node->column);
    i -= node->size - 1;
    for (uint32_t row = 0; row < node->rows; row++) {
        if (row == node->row) continue;
        for (uint32_t k = 0; k < 2; k++) {
            uint32_t at = partner_in(node, row, k);
            if (at < node->world && i-- == 0) return at;
        }
    }
    PCCL_ASSERT(false && "grid_partner: there are not so many");
    return 0;
}
