/* churn_check.c - compares the histories of a job, as Jepsen does: what each
 * process was told must be one story.
 *
 *   Z1  A history is whole; the last line of a process that was killed may be
 *       torn. A process that was not to end has not ended.
 *   Z2  A process's epochs grow while it stays connected; an epoch has one list
 *       of members, which each process that was in it saw alike, and was in.
 *   Z3  All that an operation succeeded for have the same bits and the same
 *       contributors, of which each of them is one, as many as it was told, all
 *       of them members of the view. (That the bits are the sum of exactly
 *       these, the process itself has checked.)
 *   Z4  An operation that failed for a survivor of its epoch succeeded for no
 *       other survivor (contract C1).
 *   Z5  A member that goes on has every operation of the step behind it.
 *   Z6  Shared state has one content after each synchronization, and a member
 *       that stepped with the others received nothing.
 *   Z7  Nobody is evicted who was not stopped for half a deadline or cut off.
 *       Nobody is refused but for these, and by a coordinator that was stopped.
 *   Z8  No call had a result that the contract has not. */
#include "churn.h"

#include <dirent.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

enum {
    ALL_OPS = (1 << CHURN_OPS) - 1,
    SETTLED = 256, /* steps, after which all buffers have been used */
};

/* Why an eviction that is told now may have been one then: a process that gets
 * no processor hears of it late. */
#define EXCUSED INT64_C(60000000000)

static bool is_excused(const struct churn_log *log, uint32_t n, uint64_t at,
                       bool connects)
{
    for (size_t i = 0; i < log->row_count; i++) {
        const struct churn_row *r = &log->rows[i];
        if (r->tag != 'F') continue;
        bool stopped = (r->v[2] == CHURN_STOP || r->v[2] == CHURN_PAUSE) &&
                       r->v[3] == n &&
                       (int64_t)(r->v[1] - r->v[0]) * 2 >= log->deadline;
        bool cut =
            r->v[2] == CHURN_PARTITION || (connects && r->v[2] == CHURN_MASTER);
        if ((stopped || cut) && r->v[0] < at &&
            at < r->v[1] + (uint64_t)EXCUSED)
            return true;
    }
    return false;
}

/* ------------------------------------------------------------- one process */

struct churn_walk {
    const struct churn_log *log;
    const struct churn_life *life;
    struct churn_totals *to;
    uint64_t epoch, world, step, done;
    bool connected, has_step, alone;
};

/* Z5, and that steps follow each other. */
static void walk_sync(struct churn_walk *w, const struct churn_row *r)
{
    bool well = r->v[2] == pcclSuccess;
    bool lost = r->v[2] == pcclNoSharedStateAvailable &&
                (w->log->over == 0 || r->v[0] < w->log->over);
    w->to->lost += lost;
    if (lost && !is_excused(w->log, 0, r->v[0], false))
        churn_violation(w->to, "%s: the state was lost for no reason",
                        w->life->name);
    if (w->has_step && w->done != ALL_OPS && !w->alone)
        churn_violation(w->to,
                        "%s: of step %llu only operations %llx succeeded",
                        w->life->name, (unsigned long long)w->step,
                        (unsigned long long)w->done);
    if (well && w->has_step && r->v[3] != w->step + 1)
        churn_violation(w->to, "%s: step %llu follows step %llu", w->life->name,
                        (unsigned long long)r->v[3],
                        (unsigned long long)w->step);
    if (well && w->has_step && r->v[6] != 0)
        churn_violation(w->to,
                        "%s: has stepped with the others, and received %llu "
                        "bytes in step %llu",
                        w->life->name, (unsigned long long)r->v[6],
                        (unsigned long long)r->v[3]);
    w->has_step = well;
    w->step = r->v[3];
    w->done = 0;
    w->alone = !w->life->mpi && w->world == 1;
}

static void walk_view(struct churn_walk *w, const struct churn_row *r)
{
    bool inside = false;
    if (r->v[1] <= w->epoch)
        churn_violation(w->to, "%s: epoch %llu after epoch %llu", w->life->name,
                        (unsigned long long)r->v[1],
                        (unsigned long long)w->epoch);
    for (uint64_t i = 0; i < r->v[3] && 4 + i < r->count; i++)
        inside |= r->v[4 + i] == w->life->n && i == r->v[2];
    if (!inside || r->count != 4 + r->v[3])
        churn_violation(w->to, "%s: is no member of its epoch %llu",
                        w->life->name, (unsigned long long)r->v[1]);
    w->epoch = r->v[1];
    w->world = r->v[3];
    w->alone |= w->world == 1;
}

static void walk_op(struct churn_walk *w, const struct churn_row *r)
{
    if (!w->life->mpi && r->v[6] > w->epoch)
        churn_violation(w->to, "%s: operation of epoch %llu within epoch %llu",
                        w->life->name, (unsigned long long)r->v[6],
                        (unsigned long long)w->epoch);
    if (!w->has_step || r->v[3] != w->step)
        churn_violation(w->to, "%s: operation of step %llu in step %llu",
                        w->life->name, (unsigned long long)r->v[3],
                        (unsigned long long)w->step);
    if (w->life->mpi) w->alone |= r->v[7] == 1;
    if (r->v[2] != pcclSuccess) return;
    if (w->done >> r->v[4] & 1)
        churn_violation(w->to, "%s: operation %llu of step %llu, twice",
                        w->life->name, (unsigned long long)r->v[4],
                        (unsigned long long)r->v[3]);
    w->done |= 1u << r->v[4];
    w->to->sums++;
    w->to->bytes += r->v[10];
}

static void walk_connect(struct churn_walk *w, const struct churn_row *r)
{
    w->connected = r->v[2] == pcclSuccess;
    w->has_step = false;
    w->epoch = w->world = 0;
    if (w->connected) return;
    w->to->refused++;
    if (!is_excused(w->log, w->life->n, r->v[1], true))
        churn_violation(w->to, "%s: refused for no reason: %s", w->life->name,
                        r->text);
}

static void walk_row(struct churn_walk *w, const struct churn_row *r)
{
    switch (r->tag) {
    case 'J':
        walk_connect(w, r);
        break;
    case 'V':
        walk_view(w, r);
        break;
    case 'S':
        walk_sync(w, r);
        break;
    case 'O':
        walk_op(w, r);
        break;
    case 'X':
        churn_violation(w->to, "%s: %s", w->life->name, r->text);
        break;
    case 'G':
        w->to->evictions++;
        w->connected = false;
        if (!is_excused(w->log, w->life->n, r->v[0], false))
            churn_violation(w->to, "%s: evicted for no reason: %s",
                            w->life->name, r->text);
        break;
    default:
        break;
    }
}

static void check_life(const struct churn_log *log,
                       const struct churn_life *life, struct churn_totals *to)
{
    struct churn_walk w = {.log = log, .life = life, .to = to};
    uint64_t first = 0;
    for (size_t i = 0; i < life->count; i++) {
        const struct churn_row *r = &log->rows[life->first + i];
        walk_row(&w, r);
        if (r->tag != 'M' || r->v[2] < SETTLED) continue;
        int64_t more = (int64_t)(r->v[1] - (first ? first : r->v[1]));
        if (more > to->member_growth) to->member_growth = more;
        if (first == 0) first = r->v[1];
    }
    if (life->ended && life->torn)
        churn_violation(to, "%s: ended well with a torn line", life->name);
}

/* Of a process that nobody killed, all lines are there. (What became of a rank
 * of pccl-master only its launcher knows.) */
static void check_ends(const struct churn_log *log, struct churn_totals *to)
{
    uint32_t most = 0;
    for (size_t i = 0; i < log->life_count; i++)
        if (log->lives[i].n > most) most = log->lives[i].n;
    bool *killed = calloc(most + 1u, sizeof *killed);
    for (size_t i = 0; killed && i < log->row_count; i++) {
        const struct churn_row *r = &log->rows[i];
        if (r->tag == 'D' && r->v[1] <= most && r->v[2] == SIGKILL)
            killed[r->v[1]] = true;
    }
    for (size_t i = 0; killed && i < log->life_count; i++) {
        const struct churn_life *life = &log->lives[i];
        if (!life->faults && !life->mpi && !life->ended && !killed[life->n])
            churn_violation(to, "%s: stops, and nobody killed it", life->name);
    }
    free(killed);
}

/* ------------------------------------------------------- what others wrote */

static const struct churn_log *sorted_log;

static int compare(uint64_t a, uint64_t b)
{
    return (a > b) - (a < b);
}

/* By tag, then by what must be one: epoch; step (of votes); step, operation and
 * attempt; revision. */
static int by_event(const void *a, const void *b)
{
    const struct churn_row *x = &sorted_log->rows[*(const size_t *)a];
    const struct churn_row *y = &sorted_log->rows[*(const size_t *)b];
    if (x->tag != y->tag) return (x->tag > y->tag) - (x->tag < y->tag);
    if (x->tag == 'V') return compare(x->v[1], y->v[1]);
    if (x->tag == 'S') return compare(x->v[4], y->v[4]);
    if (x->tag != 'O') return compare(x->v[3], y->v[3]);
    for (int i = 3; i < 6; i++)
        if (x->v[i] != y->v[i]) return compare(x->v[i], y->v[i]);
    return 0;
}

struct event {
    const struct churn_log *log;
    const size_t *rows; /* numbers of rows, of one event */
    size_t count;
    struct churn_totals *to;
};

static const struct churn_row *row_of(const struct event *e, size_t i)
{
    return &e->log->rows[e->rows[i]];
}

static const char *name_of(const struct event *e, const struct churn_row *r)
{
    return e->log->lives[r->life].name;
}

static void check_view(const struct event *e)
{
    const struct churn_row *a = row_of(e, 0);
    e->to->epochs++;
    for (size_t i = 1; i < e->count; i++) {
        const struct churn_row *b = row_of(e, i);
        if (a->v[3] != b->v[3] ||
            memcmp(a->v + 4, b->v + 4, a->v[3] * sizeof *a->v) != 0)
            churn_violation(e->to, "%s and %s: other members in epoch %llu",
                            name_of(e, a), name_of(e, b),
                            (unsigned long long)a->v[1]);
    }
}

static void check_sync(const struct event *e)
{
    const struct churn_row *a = NULL;
    for (size_t i = 0; i < e->count; i++) {
        const struct churn_row *b = row_of(e, i);
        if (b->v[2] != pcclSuccess) continue;
        if (!a) a = b;
        if (a->v[3] != b->v[3] || a->v[5] != b->v[5])
            churn_violation(e->to, "%s and %s: other content in revision %llu",
                            name_of(e, a), name_of(e, b),
                            (unsigned long long)a->v[4]);
    }
    if (a) e->to->votes++;
}

/* Whether the process saw a later view in the same connection; a rank of MPI,
 * which is told no epochs: whether it came to the next synchronization. */
static bool survived(const struct event *e, size_t row)
{
    const struct churn_row *r = &e->log->rows[row];
    const struct churn_life *life = &e->log->lives[r->life];
    uint64_t epoch = r->v[6];
    for (size_t i = row + 1; i < life->first + life->count; i++) {
        const struct churn_row *s = &e->log->rows[i];
        if (s->tag == 'G' || s->tag == 'J') return false;
        if (s->tag == 'V' && s->v[1] > epoch) return true;
        if (s->tag == 'S' && life->mpi) return true;
    }
    return false;
}

/* The slots of the members of the view that this process was in, at this
 * line. */
static uint64_t view_slots(const struct event *e, size_t row, uint64_t epoch)
{
    const struct churn_life *life = &e->log->lives[e->log->rows[row].life];
    uint64_t slots = 0;
    for (size_t i = row; i-- > life->first;) {
        const struct churn_row *r = &e->log->rows[i];
        if (r->tag != 'V' || r->v[1] != epoch) continue;
        for (uint64_t k = 0; k < r->v[3]; k++)
            slots |= 1u << r->v[4 + k] % CHURN_SLOTS;
        return slots;
    }
    return 0;
}

/* Z3, for one that succeeded; `a` is the first one. */
static void check_success(const struct event *e, const struct churn_row *a,
                          size_t row)
{
    const struct churn_row *b = &e->log->rows[row];
    const struct churn_life *life = &e->log->lives[b->life];
    unsigned long long step = b->v[3];
    unsigned long long op = b->v[4];
    uint64_t set = b->v[8];
    if (a->v[9] != b->v[9] || a->v[8] != b->v[8] || a->v[7] != b->v[7])
        churn_violation(e->to,
                        "%s and %s: step %llu, operation %llu: other bits or "
                        "contributors (%llx, %llx)",
                        name_of(e, a), life->name, step, op,
                        (unsigned long long)a->v[8], (unsigned long long)set);
    if (set != 0 && !(set >> life->n % CHURN_SLOTS & 1))
        churn_violation(e->to,
                        "%s: is not in its result: step %llu, operation "
                        "%llu (%llx)",
                        life->name, step, op, (unsigned long long)set);
    if (set != 0 && (uint64_t)__builtin_popcountll(set) != b->v[7])
        churn_violation(e->to,
                        "%s: %llu contributors are told, and they are "
                        "%llx: step %llu, operation %llu",
                        life->name, (unsigned long long)b->v[7],
                        (unsigned long long)set, step, op);
    if (!life->mpi && (set & ~view_slots(e, row, b->v[6])) != 0)
        churn_violation(e->to,
                        "%s: contributors (%llx) that are no members: "
                        "step %llu, operation %llu",
                        life->name, (unsigned long long)set, step, op);
}

static void check_op(const struct event *e)
{
    size_t won = SIZE_MAX; /* a survivor for which it succeeded */
    size_t lost = SIZE_MAX;
    const struct churn_row *first = NULL;
    bool contested = false;
    for (size_t i = 0; i < e->count; i++) {
        const struct churn_row *r = row_of(e, i);
        bool well = r->v[2] == pcclSuccess;
        contested |= !well;
        /* The library of an MPI program repeats by itself, so that one who is
         * lost meanwhile may have the result of the first attempt. */
        if (e->log->lives[r->life].mpi && !survived(e, e->rows[i])) continue;
        if (well && !first) first = r;
        if (well) check_success(e, first, e->rows[i]);
    }
    e->to->operations += first != NULL;
    if (!contested) return;
    e->to->agreed++;
    for (size_t i = 0; i < e->count; i++) {
        const struct churn_row *r = row_of(e, i);
        if (!survived(e, e->rows[i])) continue;
        if (r->v[2] == pcclSuccess) won = e->rows[i];
        if (r->v[2] != pcclSuccess) lost = e->rows[i];
    }
    if (won == SIZE_MAX || lost == SIZE_MAX) return;
    const struct churn_row *a = &e->log->rows[won];
    churn_violation(e->to,
                    "step %llu, operation %llu, attempt %llu: succeeded "
                    "for %s, failed for %s",
                    (unsigned long long)a->v[3], (unsigned long long)a->v[4],
                    (unsigned long long)a->v[5], name_of(e, a),
                    name_of(e, &e->log->rows[lost]));
}

static void check_events(const struct churn_log *log, struct churn_totals *to)
{
    size_t *order = malloc((log->row_count + 1) * sizeof *order);
    size_t count = 0;
    if (!order) return;
    for (size_t i = 0; i < log->row_count; i++)
        if (strchr("PUVSO", log->rows[i].tag)) order[count++] = i;
    sorted_log = log;
    qsort(order, count, sizeof *order, by_event);
    for (size_t i = 0; i < count;) {
        struct event e = {.log = log, .rows = order + i, .to = to};
        while (i < count && by_event(&order[i], e.rows) == 0) i++, e.count++;
        char tag = row_of(&e, 0)->tag;
        to->votes += tag == 'P' || tag == 'U';
        if (tag == 'V') check_view(&e);
        if (tag == 'S') check_sync(&e);
        if (tag == 'O') check_op(&e);
    }
    free(order);
}

static void check_faults(const struct churn_log *log, struct churn_totals *to)
{
    for (size_t i = 0; i < log->row_count; i++) {
        const struct churn_row *r = &log->rows[i];
        if (r->tag == 'F' && r->v[2] < CHURN_FAULTS) to->faults[r->v[2]]++;
        if (r->tag == 'D' && r->v[3] == 0)
            churn_violation(to, "process %llu ended with status %#llx",
                            (unsigned long long)r->v[1],
                            (unsigned long long)r->v[2]);
        if (r->tag == 'R' && (int64_t)(r->v[1] - r->v[0]) > to->master_growth)
            to->master_growth = (int64_t)(r->v[1] - r->v[0]);
    }
}

void churn_check(const char *folder, struct churn_totals *to)
{
    struct churn_log log;
    uint64_t operations = to->operations;
    uint64_t lives = 0;
    bool faults = false;
    churn_load(&log, folder, to);
    for (size_t i = 0; i < log.life_count; i++) {
        faults |= log.lives[i].faults;
        lives += !log.lives[i].faults;
        if (!log.lives[i].faults) check_life(&log, &log.lives[i], to);
    }
    to->histories += lives;
    to->records += log.row_count;
    to->wanted |= log.wanted;
    check_ends(&log, to);
    check_events(&log, to);
    check_faults(&log, to);
    churn_stalls(&log, to);
    if (!faults) churn_violation(to, "%s: no history of faults", folder);
    if (lives < 2 || to->operations == operations)
        churn_violation(to, "%s: no operation of two processes", folder);
    churn_unload(&log);
}

bool churn_check_all(const char *folder, struct churn_totals *to)
{
    DIR *dir = opendir(folder);
    bool any = false;
    for (const struct dirent *d; dir && (d = readdir(dir));) {
        char path[CHURN_PATH];
        if (d->d_name[0] == '.' || !strchr(d->d_name, '.')) continue;
        snprintf(path, sizeof path, "%.250s/%.200s", folder, d->d_name);
        churn_check(path, to);
        any = true;
    }
    if (dir) (void)closedir(dir);
    return any;
}

/* A run without faults shows nothing. */
void churn_require(uint32_t kinds, struct churn_totals *to)
{
    if ((kinds & ~(1u << CHURN_JOIN)) == 0)
        churn_violation(to, "a run without faults");
    for (int k = 0; k < CHURN_FAULTS; k++)
        if ((kinds >> k & 1) && to->faults[k] == 0)
            churn_violation(to, "no fault of the kind %s",
                            churn_fault_names[k]);
}
