/* counted.c - the samples of a step (rules G), beside everything else that
 * happens: each program reports as it goes on.
 *
 * No member is told of more samples than were ever made for a step, nor that a
 * step is reached that had too few and that nobody has left behind; what is
 * told once stays. The coordinator's sum is that of its members' reports. When
 * nobody reports any more, all members are told the same, and it is true. */
#include "witness.h"

#include <string.h>

/* Universes in which members do: by the seed alone, which draws nothing. */
bool counted_is(uint64_t seed)
{
    static const uint8_t some[] = {3, 13, 17, 18, 23, 26};
    for (size_t i = 0; i < ARRAY_COUNT(some); i++)
        if (seed % 29 == some[i]) return true;
    return false;
}

static uint64_t target_of(const struct sim *s, uint64_t step)
{
    return 1 + sim_mix(s->seed, 91, step, 0) % 60;
}

static struct sim_made *made_of(struct sim *s, uint32_t group, uint64_t step)
{
    return &s->made[group][step % SIM_STEPS_KEPT];
}

static void make(struct sim *s, struct sim_proc *p)
{
    struct sim_counted *c = &p->counted;
    uint64_t step = p->program.step;
    struct sim_made *made = made_of(s, p->group, step);
    uint64_t more = sim_mix(s->seed, 92, p->uid, ++c->made) % 4;
    if (made->step != step && made->step < step)
        *made = (struct sim_made){.step = step};
    if (c->step != step) c->count = 0;
    c->step = step;
    c->count += more;
    c->reached = c->used && c->reached && c->told_for == step;
    c->used = true;
    if (made->step == step) made->count += more;
    if (step > s->highest_made[p->group]) s->highest_made[p->group] = step;
    struct sample_report r = {
        .step = step, .count = c->count, .target = target_of(s, step)};
    witness_made(p, &r);
    session_report_samples(p->session, &r);
    sim_coverage.counted++;
}

static void look(struct sim *s, struct sim_proc *p)
{
    struct sim_counted *c = &p->counted;
    struct sample_sum sum = sample_look(&p->session->samples);
    if (c->used) witness_sum(p, &sum);
    if (!sum.known) return;
    const struct sim_made *made = made_of(s, p->group, sum.step);
    SIM_CHECK(s, made->step != sum.step || sum.count <= made->count,
              "G2: %llu samples of step %llu, and %llu were made",
              (unsigned long long)sum.count, (unsigned long long)sum.step,
              (unsigned long long)made->count);
    if (!c->used) return;
    made = made_of(s, p->group, c->step);
    bool left = s->highest_made[p->group] > c->step;
    bool full = made->step != c->step || made->count >= target_of(s, c->step);
    SIM_CHECK(s, !sum.reached || left || full,
              "G3: step %llu is reached with %llu samples of %llu",
              (unsigned long long)c->step, (unsigned long long)made->count,
              (unsigned long long)target_of(s, c->step));
    SIM_CHECK(s, sum.reached || !c->reached || c->told_for != c->step,
              "G3: step %llu is not reached any more",
              (unsigned long long)c->step);
    sim_coverage.counted_reached += sum.reached && sum.step == c->step;
    sim_coverage.counted_over += sum.reached && sum.step > c->step;
    c->reached = sum.reached;
    c->told_for = c->step;
}

void counted_turn(struct sim *s, struct sim_proc *p)
{
    if (!s->options.counts || p->session->state != SESSION_MEMBER) return;
    if (!s->healing && ++p->counted.turns % 16 == 0 && !p->program.resync)
        make(s, p);
    look(s, p);
}

/* What the coordinator tells, by the reports that it has. */
void counted_told(struct sim *s, uint32_t link, const struct wire_msg *m)
{
    const struct master *master = s->master;
    uint32_t group = master->peers[link].group, members = 0;
    uint64_t sum = 0, step = 0;
    for (uint32_t i = 0; i < master->link_end; i++) {
        const struct master_peer *p = &master->peers[i];
        if (p->state != PEER_MEMBER || p->leaving || p->group != group ||
            !p->samples.used || p->samples.step < step)
            continue;
        if (p->samples.step > step) sum = members = 0;
        step = p->samples.step;
        sum += p->samples.count;
        members++;
    }
    SIM_CHECK(s, sum == m->samples.count && members == m->samples.members,
              "G2: the sum told is %llu of %u, and the members have %llu of %u",
              (unsigned long long)m->samples.count, m->samples.members,
              (unsigned long long)sum, members);
    SIM_CHECK(s, members == 0 || step == m->samples.step,
              "G2: the step told is %llu, and a member is in %llu",
              (unsigned long long)m->samples.step, (unsigned long long)step);
    sim_coverage.counted_none += members == 0;
}

/* What the live members of the group have made. */
static void expect(const struct sim *s, uint32_t group, uint64_t *step,
                   uint64_t *sum)
{
    *step = *sum = 0;
    for (uint32_t left = s->live, i; sim_next(s, &left, &i);) {
        const struct sim_proc *p = &s->procs[i];
        if (p->group != group || !p->counted.used) continue;
        if (p->counted.step > *step) *sum = 0;
        if (p->counted.step < *step) continue;
        *step = p->counted.step;
        *sum += p->counted.count;
    }
}

bool counted_settled(const struct sim *s)
{
    if (!s->options.counts) return true;
    for (uint32_t left = s->live, i; sim_next(s, &left, &i);) {
        const struct sim_proc *p = &s->procs[i];
        struct sample_sum sum = p->session->samples.told;
        uint64_t step, count;
        expect(s, p->group, &step, &count);
        if (!sum.known && step == 0) continue;
        if (!sum.known || sum.count != count) return false;
        if (count > 0 && sum.step != step) return false;
        if (count >= target_of(s, step) && !sum.reached) return false;
    }
    return true;
}
