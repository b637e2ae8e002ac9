/* sites.c - groups members into sites for hierarchical all-reduce (rule D15).
 * Pure.
 *
 * Members of one host and members with a short measured round trip are near
 * each other. A site is a connected set of near members. If all members form
 * one site, hosts count as sites. */
#include "../master.h"

#include "../../base/host_id.h"

/* Longest round trip within a site. */
#define SITE_RTT (3 * PCCL_MS)

/* Least number of members per site. A sum within a site costs two more hops and
 * must save more expensive ones between sites. */
enum { WORTH_IT = 2 };

static bool on_one_host(const struct wire_member *a,
                        const struct wire_member *b)
{
    return host_is_same(a->host, b->host);
}

static bool is_short(struct master *m, uint32_t from, uint32_t to)
{
    if (from == MASTER_NO_PLACE || to == MASTER_NO_PLACE) return false;
    struct bandwidth_edge edge = bandwidth_look(m->edges, from, to);
    return edge.state == EDGE_MEASURED && edge.rtt > 0 &&
           edge.rtt <= (uint64_t)SITE_RTT;
}

static bool near(struct master *m, uint32_t i, uint32_t k, bool measured)
{
    if (on_one_host(&m->members[i], &m->members[k])) return true;
    if (!measured || !m->edges) return false;
    uint32_t x = m->peers[m->sorted[i]].slot;
    uint32_t y = m->peers[m->sorted[k]].slot;
    return is_short(m, x, y) || is_short(m, y, x);
}

/* The lowest index of its members names a site. Returns the number of sites. */
static uint32_t find(struct master *m, uint32_t count, bool measured)
{
    uint16_t *site = m->sites;
    uint32_t sites = count;
    for (uint32_t i = 0; i < count; i++) site[i] = (uint16_t)i;
    for (uint32_t i = 0; i < count; i++) {
        for (uint32_t k = 0; k < i; k++) {
            if (site[i] == site[k] || !near(m, i, k, measured)) continue;
            uint16_t low = site[i] < site[k] ? site[i] : site[k];
            uint16_t high = site[i] < site[k] ? site[k] : site[i];
            for (uint32_t j = 0; j <= i; j++)
                if (site[j] == high) site[j] = low;
            sites--;
        }
    }
    return sites;
}

uint32_t sites_find(struct master *m, uint32_t count)
{
    if (count < 3 || count > HIERARCHY_MAX) return 0;
    uint32_t sites = find(m, count, true);
    if (sites == 1) sites = find(m, count, false);
    return sites > 1 && WORTH_IT * sites <= count ? count : 0;
}
