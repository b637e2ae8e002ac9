/* partition.c - members that cannot all reach each other: the largest set that
 * can goes on, and the others are told why they do not (rule R4). */
#include "../master.h"

#include <string.h>

/* Appends unless the text would exceed WIRE_TEXT_MAX bytes. */
static void append(char *text, const char *more)
{
    size_t used = strnlen(text, WIRE_TEXT_MAX);
    size_t size = strnlen(more, WIRE_TEXT_MAX - used);
    memcpy(text + used, more, size);
    text[used + size] = '\0';
}

static void add_number(char *text, uint32_t value)
{
    char digits[12];
    char *at = digits + sizeof digits;
    *--at = '\0';
    do *--at = (char)('0' + value % 10);
    while ((value /= 10) > 0);
    append(text, at);
}

static bool is_bad(const struct master *m, uint32_t group, uint32_t i,
                   uint32_t j)
{
    return order_is_missing(&m->groups[group], m->members[i].id,
                            m->members[j].id);
}

/* Names the members that this one cannot reach. Only those of `among` (NULL:
 * all) are of interest. */
static void name_pairs(const struct master *m, uint32_t group, uint32_t count,
                       uint32_t self, const bool *among, char *why)
{
    enum { NAMED_MAX = 4 };
    uint32_t named = 0;
    append(why, "cannot exchange data with ");
    for (uint32_t i = 0; i < count; i++) {
        if ((among && !among[i]) || !is_bad(m, group, self, i)) continue;
        if (named++ >= NAMED_MAX) continue;
        if (named > 1) append(why, ", ");
        append(why, "rank ");
        add_number(why, i);
        append(why, " (pid ");
        add_number(why, m->members[i].pid);
        append(why, ")");
    }
    if (named > NAMED_MAX) {
        append(why, " and ");
        add_number(why, named - NAMED_MAX);
        append(why, " more");
    }
    if (named == 0) append(why, "enough of the others");
}

/* ----------------------------------------------------------------- newcomers
 */

static uint32_t bad_pairs(const struct master *m, uint32_t group,
                          uint32_t count, uint32_t i)
{
    uint32_t bad = 0;
    for (uint32_t j = 0; j < count; j++) bad += is_bad(m, group, i, j);
    return bad;
}

/* Rule R4a: of the newcomers that lack links, the one that lacks most is
 * refused. */
static bool refuse_newcomer(struct master *m, uint32_t group, uint32_t count)
{
    uint32_t worst = 0;
    uint32_t most = 0;
    for (uint32_t i = count; i-- > 0;) {
        if (m->peers[m->sorted[i]].state != PEER_REGISTERED) continue;
        uint32_t bad = bad_pairs(m, group, count, i);
        if (bad <= most) continue;
        most = bad;
        worst = i;
    }
    if (most == 0) return false;
    char why[WIRE_TEXT_MAX + 1] = "";
    name_pairs(m, group, count, worst, NULL, why);
    append(why, ", and there is no ring without this pair: neither can "
                "dial the other");
    master_drop(m, m->sorted[worst], why);
    return true;
}

/* ------------------------------------------------------------------- members
 */

static bool may_evict(const struct master *m, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        if (m->peers[m->sorted[i]].stays) return false;
    }
    return true;
}

static bool evict(struct master *m, uint32_t group, uint32_t count)
{
    bool kept[PEERS_MAX];
    if (!may_evict(m, count)) return false;
    uint32_t left = order_split(m, group, count, kept);
    if (left == count) return false;
    for (uint32_t i = 0; i < count; i++) {
        if (kept[i]) continue;
        char why[WIRE_TEXT_MAX + 1] = "";
        name_pairs(m, group, count, i, kept, why);
        append(why, left == 1 ? "; that one goes on alone"
                              : "; the others can, and go on");
        master_drop(m, m->sorted[i], why);
    }
    return true;
}

bool partition_resolve(struct master *m, uint32_t group, uint32_t count)
{
    bool refused = false;
    while (refuse_newcomer(m, group, count)) {
        refused = true;
        count = round_next_view(m, group);
        if (count == 0) break;
        optimize_order(m, group, count);
        if (order_ring(m, group, count)) break;
    }
    if (!refused && !evict(m, group, count)) return false;
    m->groups[group].restart = true;
    return true;
}
