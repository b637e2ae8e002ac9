/* random_reduce.h - the reductions of mpi_random.c. */

/* Operators on integers; see below for doubles and user-defined types. */
static uint64_t fold_integers(MPI_Op op, int64_t a, int64_t b)
{
    if (op == MPI_SUM) return (uint64_t)a + (uint64_t)b;
    if (op == MPI_PROD) return (uint64_t)a * (uint64_t)b;
    if (op == MPI_MIN) return (uint64_t)(a < b ? a : b);
    if (op == MPI_MAX) return (uint64_t)(a > b ? a : b);
    if (op == MPI_BAND) return (uint64_t)(a & b);
    if (op == MPI_BOR) return (uint64_t)(a | b);
    if (op == MPI_BXOR) return (uint64_t)(a ^ b);
    if (op == MPI_LAND) return a && b;
    if (op == MPI_LOR) return a || b;
    return !a != !b;
}

static int64_t sign_extend(uint64_t v, int unit)
{
    int shift = 64 - 8 * unit;
    return (int64_t)(v << shift) >> shift;
}

/* (a, b) o (c, d) = (a c, a d + b) in 32 bits: associative, not commutative. */
static void compose_pair(const uint32_t *first, const uint32_t *second,
                         uint32_t *out)
{
    uint32_t b = first[0] * second[1] + first[1];
    out[0] = first[0] * second[0];
    out[1] = b;
}

/* For any layout of the type: its elements are pairs, in order. */
static void compose_user(void *in, void *inout, int *count, MPI_Datatype *type)
{
    const struct layout *l = NULL;
    for (int i = 0; i < ACTS_MAX; i++)
        if (acts[i].live && acts[i].user != MPI_OP_NULL && acts[i].out.memory &&
            acts[i].out.layout.type == *type)
            l = &acts[i].out.layout;
    if (!l) {
        blame("operator", 0, "called with an unknown type");
        return;
    }
    for (int i = 0; i < *count * l->count; i += 2) {
        uint32_t a[2], b[2], c[2];
        for (int k = 0; k < 2; k++) {
            MPI_Aint at =
                (i + k) / l->count * l->extent + l->places[(i + k) % l->count];
            memcpy(&a[k], (char *)in + at, 4);
            memcpy(&b[k], (char *)inout + at, 4);
        }
        compose_pair(a, b, c);
        for (int k = 0; k < 2; k++)
            memcpy((char *)inout + (i + k) / l->count * l->extent +
                       l->places[(i + k) % l->count],
                   &c[k], 4);
    }
}

/* Element e of the input of rank `from`. */
static uint64_t operand(const struct act *act, int from, int e)
{
    uint64_t v = value(act, from, 0, e);
    if (act->user != MPI_OP_NULL) return v & 0xffffffffu;
    if (act->doubles) { /* double */
        double d = act->op == MPI_PROD ? (v & 1 ? 2 : 1) : (double)(v % 1000);
        memcpy(&v, &d, 8);
        return v;
    }
    /* often zero, for the logical operators */
    if (v % 3 == 0) return 0;
    return v;
}

static uint64_t fold(const struct act *act, uint64_t a, uint64_t b)
{
    if (act->doubles) {
        double x, y;
        uint64_t out;
        memcpy(&x, &a, 8);
        memcpy(&y, &b, 8);
        x = act->op == MPI_SUM    ? x + y
            : act->op == MPI_PROD ? x * y
            : act->op == MPI_MIN  ? (x < y ? x : y)
                                  : (x > y ? x : y);
        memcpy(&out, &x, 8);
        return out;
    }
    return fold_integers(act->op, sign_extend(a, act->unit),
                         sign_extend(b, act->unit));
}

/* Element e of the reduction over ranks first .. last. */
static uint64_t reduced(const struct act *act, int first, int last, int e)
{
    if (act->user != MPI_OP_NULL) {
        uint32_t all[2], next[2];
        int pair = e / 2 * 2;
        for (int r = first; r <= last; r++) {
            for (int k = 0; k < 2; k++)
                next[k] = (uint32_t)operand(act, r, pair + k);
            if (r == first)
                memcpy(all, next, sizeof all);
            else
                compose_pair(all, next, all);
        }
        return all[e % 2];
    }
    uint64_t all = operand(act, first, e);
    for (int r = first + 1; r <= last; r++)
        all = fold(act, all, operand(act, r, e));
    return all;
}

static void operator_roll(struct act *act, struct layout *l)
{
    static const MPI_Op integer_ops[] = {MPI_SUM,  MPI_PROD, MPI_MIN,  MPI_MAX,
                                         MPI_BAND, MPI_BOR,  MPI_BXOR, MPI_LAND,
                                         MPI_LOR,  MPI_LXOR};
    static const MPI_Datatype integers[] = {MPI_INT8_T, MPI_INT16_T,
                                            MPI_INT32_T, MPI_INT64_T};
    int kind = roll(&act->dice, 4);
    if (kind == 0) {
        act->unit = 4;
        do {
            layout_roll(&act->dice, l, 4, BLOCK);
            if (l->count % 2 == 0) break;
            layout_free(l);
        } while (1);
        OK(MPI_Op_create(compose_user, 0, &act->user));
        act->op = act->user;
        return;
    }
    if (kind == 1) {
        act->unit = 8;
        act->doubles = 1;
        act->op = integer_ops[roll(&act->dice, 4)];
        layout_plain(l, 8);
        return;
    }
    act->op = integer_ops[roll(&act->dice, 10)];
    int at = roll(&act->dice, 4);
    act->unit = 1 << at;
    layout_plain(l, act->unit);
    l->type = integers[at];
}

static int length_roll(struct dice *dice)
{
    int kind = roll(dice, 16);
    return kind == 0   ? 0
           : kind == 1 ? 3000 + roll(dice, 9000)
                       : 1 + roll(dice, 40);
}

/* Rank r gets counts[r] types from firsts[r] on, folded over 0 .. last. */
struct kept {
    int in_place, give, first, count, last, total;
};

/* The input, separate or in place, and the expected output. */
static void areas_reduce(struct act *act, const struct layout *l,
                         const struct kept *k)
{
    int me = act->team->rank, each = l->count, room = k->total;
    int low = k->first * each;
    if (!k->in_place) {
        area_new(&act->in, l, k->total);
        for (int e = 0; e < k->total * each; e++)
            area_input(&act->in, 0, e, operand(act, me, e));
        area_fill(&act->in);
        act->in.borrowed = 1; /* the type is freed with the output */
        room = k->count;
    }
    area_new(&act->out, l, room);
    for (int e = 0; k->in_place && e < k->total * each; e++)
        area_input(&act->out, 0, e, operand(act, me, e));
    for (int e = 0; k->give && e < k->count * each; e++)
        area_put(act->out.after, &act->out, 0, e,
                 reduced(act, 0, k->last, low + e));
    area_fill(&act->out);
}

static void act_reduce_scatter(struct act *act, const struct layout *l,
                               int block)
{
    const struct team *team = act->team;
    int n = team->size, me = team->rank, same = roll(&act->dice, 20);
    /* MPICH 4.0.2 computes wrong results there, and writes to the input. */
    if (mpich && act->user != MPI_OP_NULL) block = 0;
    struct kept k = {.in_place =
                         roll(&act->dice, 3) == 0 &&
                         !(late_in_mpich(act) && act->user != MPI_OP_NULL),
                     .give = 1,
                     .last = n - 1};
    for (int r = 0; r < n; r++) {
        int count = block ? same : roll(&act->dice, 20);
        act->counts[0][r] = count;
        act->wide_counts[0][r] = count;
        if (r < me) k.first += count;
        k.total += count;
    }
    k.count = act->counts[0][me];
    areas_reduce(act, l, &k);
    /* in place, the rest of the input is undefined afterwards */
    if (k.in_place) act->out.valid = k.count * l->count;
    void *sendbuf = k.in_place ? MPI_IN_PLACE : area_base(&act->in);
    act->name = block ? "reduce_scatter_block" : "reduce_scatter";
    if (block)
        RUN(Reduce_scatter_block, reduce_scatter_block, sendbuf,
            area_base(&act->out), same, l->type, act->op, team->comm);
    else
        RUN_BOTH(Reduce_scatter, reduce_scatter,
                 (sendbuf, area_base(&act->out), act->counts[0], l->type,
                  act->op, team->comm),
                 (sendbuf, area_base(&act->out), act->wide_counts[0], l->type,
                  act->op, team->comm));
}

static void act_reduce(struct act *act, int kind)
{
    const struct team *team = act->team;
    int n = team->size, me = team->rank, root = act->root;
    struct layout l;
    operator_roll(act, &l);
    if (kind == 8 || kind == 9) {
        act_reduce_scatter(act, &l, kind == 9);
        return;
    }
    int count = length_roll(&act->dice);
    struct kept k = {.in_place = roll(&act->dice, 3) == 0,
                     .give = 1,
                     .count = count,
                     .last = n - 1,
                     .total = count};
    void *sendbuf = MPI_IN_PLACE, *recvbuf;
    if (kind == 1 || kind == 5) { /* reduce */
        k.give = me == root;
        if (me != root) k.in_place = 0;
    }
    if (kind == 2 || kind == 6) k.last = me; /* scan */
    if (kind == 3 || kind == 7) {            /* exscan */
        k.last = me - 1;
        k.give = me > 0;
    }
    areas_reduce(act, &l, &k);
    if (!k.in_place) sendbuf = area_base(&act->in);
    recvbuf = area_base(&act->out);
    switch (kind) {
    case 1:
    case 5:
        act->name = "reduce";
        RUN(Reduce, reduce, sendbuf, recvbuf, count, l.type, act->op, root,
            team->comm);
        break;
    case 2:
    case 6:
        act->name = "scan";
        RUN(Scan, scan, sendbuf, recvbuf, count, l.type, act->op, team->comm);
        break;
    case 3:
    case 7:
        act->name = "exscan";
        RUN(Exscan, exscan, sendbuf, recvbuf, count, l.type, act->op,
            team->comm);
        break;
    default:
        act->name = "allreduce";
        RUN(Allreduce, allreduce, sendbuf, recvbuf, count, l.type, act->op,
            team->comm);
    }
}
