/* middlebox.c - connection tracking, and the RST of a connection that is not
 * known. */
#include "middlebox.h"

#include "packet.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

void middlebox_free(struct middlebox *m)
{
    free(m->known);
    memset(m, 0, sizeof *m);
}

static uint64_t key_of(uint64_t flow)
{
    uint64_t back = packet_flow_back(flow);
    return flow < back ? flow : back;
}

static struct known_connection *find(struct middlebox *m, uint64_t key)
{
    for (uint32_t i = 0; i < m->count; i++)
        if (m->known[i].key == key) return &m->known[i];
    return NULL;
}

static struct known_connection *add(struct middlebox *m, uint64_t key)
{
    if (m->count == m->room) {
        m->room = m->room ? 2 * m->room : 64;
        m->known = realloc(m->known, m->room * sizeof *m->known);
        assert(m->known && "out of memory");
    }
    struct known_connection *c = &m->known[m->count++];
    *c = (struct known_connection){.key = key};
    return c;
}

enum passage middlebox_pass(struct middlebox *m,
                            const struct middlebox_rule *rule, wan_ns now,
                            const struct packet *p)
{
    if (!p->tcp || (rule->forget == 0 && rule->first == 0)) return PASSAGE_OPEN;
    uint64_t key = key_of(p->flow);
    struct known_connection *c = find(m, key);
    bool known = c && (rule->forget == 0 || now - c->at <= rule->forget);
    if (!known && rule->forget > 0 && !p->syn)
        return rule->resets ? PASSAGE_RESET : PASSAGE_VANISHES;
    if (!c) c = add(m, key);
    if (p->syn) c->passed[0] = c->passed[1] = 0;
    c->at = now;
    uint64_t *passed = &c->passed[key == p->flow];
    if (rule->first > 0 && *passed + p->payload > rule->first)
        return PASSAGE_VANISHES;
    *passed += p->payload;
    return PASSAGE_OPEN;
}

void middlebox_restart(struct middlebox *m, uint32_t a, uint32_t b)
{
    uint32_t kept = 0;
    for (uint32_t i = 0; i < m->count; i++) {
        if (!packet_flow_joins(m->known[i].key, a, b))
            m->known[kept++] = m->known[i];
    }
    m->count = kept;
}

void middlebox_answer(struct packet *p)
{
    uint16_t from = p->from;
    p->from = p->to;
    p->to = from;
    p->flow = packet_flow_back(p->flow);
    packet_write_reset(p);
}
