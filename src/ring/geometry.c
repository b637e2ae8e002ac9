/* geometry.c - see geometry.h. */
#include "geometry.h"

uint32_t plan_at(const struct plan *p, uint32_t position)
{
    return p->r.order ? p->r.order[position] : position;
}

uint32_t plan_position(const struct plan *p, uint32_t rank)
{
    if (!p->r.order) return rank;
    for (uint32_t i = 0; i < p->r.world; i++) {
        if (p->r.order[i] == rank) return i;
    }
    PCCL_ASSERT(false && "plan_position: the rank is not in the ring");
    return 0;
}

uint32_t plan_wrap(const struct plan *p, uint32_t from, uint32_t back)
{
    return (from + p->r.world - back % p->r.world) % p->r.world;
}

/* ---------------------------------------------------- chunks and segments */

static uint64_t chunk_first(const struct plan *p, uint32_t chunk)
{
    uint64_t base = p->r.count / p->chunks;
    uint64_t rest = p->r.count % p->chunks;
    return base * chunk + (chunk < rest ? chunk : rest);
}

uint64_t plan_chunk_size(const struct plan *p, uint32_t chunk)
{
    uint64_t first = chunk_first(p, chunk);
    uint64_t next = chunk_first(p, chunk + 1);
    uint64_t size = (next - first) * p->r.element;
    return next > first && next == p->r.count ? size - p->r.spare : size;
}

uint64_t plan_result_first(const struct plan *p)
{
    if (p->r.coll != COLL_REDUCE_SCATTER) return 0;
    return chunk_first(p, p->r.rank) * p->r.element;
}

void plan_cut(const struct plan *p, uint64_t first, uint64_t size, uint32_t g,
              struct plan_xfer *x)
{
    uint64_t begin = g * p->segment;
    uint64_t left = begin < size ? size - begin : 0;
    x->offset = first + (begin < size ? begin : size);
    x->size = (uint32_t)(left < p->segment ? left : p->segment);
}

void plan_chunk_cut(const struct plan *p, uint32_t chunk, uint32_t g,
                    struct plan_xfer *x)
{
    plan_cut(p, chunk_first(p, chunk) * p->r.element, plan_chunk_size(p, chunk),
             g, x);
}

uint32_t plan_block_transfers(uint64_t size)
{
    if (size == 0) return 1;
    return (uint32_t)((size + PLAN_SEGMENT_MAX - 1) / PLAN_SEGMENT_MAX);
}

void plan_block_cut(const size_t *bytes, const size_t *displs, uint32_t rank,
                    uint32_t k, struct plan_xfer *x)
{
    uint64_t begin = (uint64_t)k * PLAN_SEGMENT_MAX;
    uint64_t left = bytes[rank] - begin;
    x->offset = displs[rank] + begin;
    x->size = (uint32_t)(left < PLAN_SEGMENT_MAX ? left : PLAN_SEGMENT_MAX);
}

/* Segments are small enough to overlap transfer and reduction, and large enough
 * to make a frame header cheap. Between hosts each of many connections needs
 * one segment under way and a next one to follow. */
uint64_t plan_segment_of(const struct plan *p, uint64_t size)
{
    uint64_t least = p->r.one_host ? PLAN_SEGMENT_MIN : PLAN_SEGMENT_WAN_MIN;
    uint64_t segment = size / (p->r.one_host ? 4 : 64);
    return segment < least ? least : segment;
}

void plan_choose_segment(struct plan *p, uint64_t segment, uint64_t size)
{
    if (segment > PLAN_SEGMENT_MAX) segment = PLAN_SEGMENT_MAX;
    /* An element is a power of two of at most 64 bytes, or a larger block. */
    segment -= segment % (p->r.element > 64 ? p->r.element : 64);
    p->segment = segment;
    p->segments = (uint32_t)((size + segment - 1) / segment);
    if (p->segments == 0) p->segments = 1;
}

/* --------------------------------------------------------------- partners */

uint32_t plan_all_partners(const struct plan *p)
{
    return p->r.world - 1;
}

uint32_t plan_all_partner(const struct plan *p, uint32_t i)
{
    return i < p->r.rank ? i : i + 1;
}

void plan_shape_root(struct plan *p)
{
    p->done = DONE_TREE;
    p->parent = p->root;
}

uint32_t plan_root_partners(const struct plan *p)
{
    return p->r.rank == p->root ? p->r.world - 1 : 1;
}

uint32_t plan_root_partner(const struct plan *p, uint32_t i)
{
    return p->r.rank == p->root ? plan_all_partner(p, i) : p->root;
}

void plan_shape_tree(struct plan *p)
{
    const struct plan_request *r = &p->r;
    uint32_t width = r->tree_width;
    /* Rule D17: a level less is a turn less of all processes. */
    if (width == 0 && r->mesh && r->one_host) width = r->world - 1;
    tree_find(r->world, width, plan_position(p, r->rank), &p->tree);
    p->done = DONE_TREE;
    p->root = plan_at(p, 0);
    p->parent = plan_at(p, p->tree.parent);
}

uint32_t plan_tree_partners(const struct plan *p)
{
    return p->tree.children + !plan_is_root(p);
}

uint32_t plan_tree_partner(const struct plan *p, uint32_t i)
{
    uint32_t size;
    if (i == p->tree.children) return p->parent;
    return plan_at(p, tree_child(&p->tree, i, &size));
}

uint32_t plan_tree_child(const struct plan *p, uint32_t rank,
                         struct tree_node *part)
{
    uint32_t i = 0;
    while (i < p->tree.children && plan_tree_partner(p, i) != rank) i++;
    if (i < p->tree.children)
        part->position = tree_child(&p->tree, i, &part->size);
    return i;
}

uint32_t plan_one_transfer(const struct plan *p, uint32_t rank)
{
    (void)p;
    (void)rank;
    return 1;
}

/* ------------------------------------------------------------------- grids */

void plan_grid_find(const struct plan *p, uint32_t rank, struct grid_node *node)
{
    grid_find(p->r.world, plan_position(p, rank), node);
}

uint32_t plan_grid_columns(const struct plan *p)
{
    return p->r.world / p->grid.rows;
}

uint32_t plan_grid_partners(const struct plan *p)
{
    return grid_partners(&p->grid);
}

uint32_t plan_grid_partner(const struct plan *p, uint32_t i)
{
    return plan_at(p, grid_partner(&p->grid, i));
}
