/* random_move.h - the collectives of mpi_random.c that move data. */

/* A random layout of this rank that a block fits. */
static void layout_own(struct act *act, struct layout *l)
{
    layout_roll(&own, l, act->unit, BLOCK);
}

/* Number of types that hold `blocks` blocks. */
static int types_of(const struct area *a, int blocks)
{
    return blocks * BLOCK / a->layout.count;
}

static void area_prepare(struct act *act, struct area *a, MPI_Aint blocks)
{
    struct layout l;
    layout_own(act, &l);
    area_new(a, &l, blocks * BLOCK / l.count);
}

static void act_broadcast(struct act *act)
{
    const struct team *team = act->team;
    int blocks = roll(&act->dice, 5) * (roll(&act->dice, 8) ? 1 : 900);
    act->name = "bcast";
    area_prepare(act, &act->out, blocks);
    for (int e = 0; e < blocks * BLOCK; e++) {
        uint64_t v = value(act, act->root, 0, e);
        area_put(act->out.after, &act->out, 0, e, v);
        if (team->rank == act->root)
            area_put(act->out.before, &act->out, 0, e, v);
    }
    area_fill(&act->out);
    RUN(Bcast, bcast, area_base(&act->out), types_of(&act->out, blocks),
        act->out.layout.type, act->root, team->comm);
}

/* Places a block per rank: `side` 0 for sending, 1 for receiving. Writes counts
 * and displacements of types to the arrays, in a random order with gaps.
 * blocks[r] for each. */
static void places_roll(struct act *act, int side, const int *blocks,
                        struct area *a, int even)
{
    int n = act->team->size, order[RANKS_MAX], at = 0;
    struct layout l;
    layout_own(act, &l);
    for (int r = 0; r < n; r++) order[r] = r;
    for (int r = n - 1; r > 0 && !even; r--) {
        int other = roll(&own, r + 1), kept = order[r];
        order[r] = order[other];
        order[other] = kept;
    }
    for (int i = 0; i < n; i++) {
        int r = order[i];
        if (!even) at += roll(&own, 3);
        act->displs[side][r] = at;
        act->counts[side][r] = blocks[r] * BLOCK / l.count;
        act->wide_displs[side][r] = act->displs[side][r];
        act->wide_counts[side][r] = act->counts[side][r];
        at += act->counts[side][r];
    }
    area_new(a, &l, at);
}

static void block_in(struct act *act, struct area *a, int side, int place,
                     int from, int to, int blocks)
{
    for (int e = 0; e < blocks * BLOCK; e++)
        area_put(a->after, a, act->displs[side][place], e,
                 value(act, from, to, e));
}

static void block_out(struct act *act, struct area *a, int side, int place,
                      int from, int to, int blocks)
{
    for (int e = 0; e < blocks * BLOCK; e++)
        area_input(a, act->displs[side][place], e, value(act, from, to, e));
}

static void blocks_roll(struct act *act, int *blocks, int even)
{
    int same = roll(&act->dice, 4);
    int factor = roll(&act->dice, 8) ? 1 : 200;
    for (int r = 0; r < act->team->size; r++)
        blocks[r] = factor * (even ? same : roll(&act->dice, 4));
}

static void act_gather(struct act *act, int even)
{
    const struct team *team = act->team;
    int blocks[RANKS_MAX], me = team->rank, root = act->root, n = team->size;
    int in_place = roll(&act->dice, 3) == 0 && me == root;
    act->name = even ? "gather" : "gatherv";
    blocks_roll(act, blocks, even);
    void *sendbuf = MPI_IN_PLACE, *recvbuf = NULL;
    int sendcount = 0;
    MPI_Datatype sendtype = MPI_DATATYPE_NULL, recvtype = MPI_DATATYPE_NULL;
    if (!in_place) {
        area_prepare(act, &act->in, blocks[me]);
        block_out(act, &act->in, 0, 0, me, 0, blocks[me]);
        area_fill(&act->in);
        sendbuf = area_base(&act->in);
        sendcount = types_of(&act->in, blocks[me]);
        sendtype = act->in.layout.type;
    }
    if (me == root) {
        places_roll(act, 1, blocks, &act->out, even);
        for (int r = 0; r < n; r++) {
            if (r == me && in_place)
                block_out(act, &act->out, 1, r, r, 0, blocks[r]);
            else
                block_in(act, &act->out, 1, r, r, 0, blocks[r]);
        }
        area_fill(&act->out);
        recvbuf = area_base(&act->out);
        recvtype = act->out.layout.type;
    }
    if (even)
        RUN(Gather, gather, sendbuf, sendcount, sendtype, recvbuf,
            act->counts[1][0], recvtype, root, team->comm);
    else
        RUN_BOTH(Gatherv, gatherv,
                 (sendbuf, sendcount, sendtype, recvbuf, act->counts[1],
                  act->displs[1], recvtype, root, team->comm),
                 (sendbuf, sendcount, sendtype, recvbuf, act->wide_counts[1],
                  act->wide_displs[1], recvtype, root, team->comm));
}

static void act_scatter(struct act *act, int even)
{
    const struct team *team = act->team;
    int blocks[RANKS_MAX], me = team->rank, root = act->root, n = team->size;
    int in_place = roll(&act->dice, 3) == 0 && me == root;
    act->name = even ? "scatter" : "scatterv";
    blocks_roll(act, blocks, even);
    void *sendbuf = NULL, *recvbuf = MPI_IN_PLACE;
    int recvcount = 0;
    MPI_Datatype sendtype = MPI_DATATYPE_NULL, recvtype = MPI_DATATYPE_NULL;
    if (!in_place) {
        area_prepare(act, &act->out, blocks[me]);
        block_in(act, &act->out, 1, 0, root, me, blocks[me]);
        area_fill(&act->out);
        recvbuf = area_base(&act->out);
        recvcount = types_of(&act->out, blocks[me]);
        recvtype = act->out.layout.type;
    }
    if (me == root) {
        places_roll(act, 0, blocks, &act->in, even);
        for (int r = 0; r < n; r++)
            block_out(act, &act->in, 0, r, root, r, blocks[r]);
        area_fill(&act->in);
        sendbuf = area_base(&act->in);
        sendtype = act->in.layout.type;
    }
    if (even)
        RUN(Scatter, scatter, sendbuf, act->counts[0][0], sendtype, recvbuf,
            recvcount, recvtype, root, team->comm);
    else
        RUN_BOTH(Scatterv, scatterv,
                 (sendbuf, act->counts[0], act->displs[0], sendtype, recvbuf,
                  recvcount, recvtype, root, team->comm),
                 (sendbuf, act->wide_counts[0], act->wide_displs[0], sendtype,
                  recvbuf, recvcount, recvtype, root, team->comm));
}

static void act_allgather(struct act *act, int even)
{
    const struct team *team = act->team;
    int blocks[RANKS_MAX], me = team->rank, n = team->size;
    int in_place = roll(&act->dice, 3) == 0;
    act->name = even ? "allgather" : "allgatherv";
    blocks_roll(act, blocks, even);
    void *sendbuf = MPI_IN_PLACE;
    int sendcount = 0;
    MPI_Datatype sendtype = MPI_DATATYPE_NULL;
    if (!in_place) {
        area_prepare(act, &act->in, blocks[me]);
        block_out(act, &act->in, 0, 0, me, 0, blocks[me]);
        area_fill(&act->in);
        sendbuf = area_base(&act->in);
        sendcount = types_of(&act->in, blocks[me]);
        sendtype = act->in.layout.type;
    }
    /* MPICH 4.0.2 ignores displacements if there is only one rank */
    places_roll(act, 1, blocks, &act->out, even || mpich);
    for (int r = 0; r < n; r++) {
        if (r == me && in_place)
            block_out(act, &act->out, 1, r, r, 0, blocks[r]);
        else
            block_in(act, &act->out, 1, r, r, 0, blocks[r]);
    }
    area_fill(&act->out);
    void *recvbuf = area_base(&act->out);
    MPI_Datatype recvtype = act->out.layout.type;
    if (even)
        RUN(Allgather, allgather, sendbuf, sendcount, sendtype, recvbuf,
            act->counts[1][0], recvtype, team->comm);
    else
        RUN_BOTH(Allgatherv, allgatherv,
                 (sendbuf, sendcount, sendtype, recvbuf, act->counts[1],
                  act->displs[1], recvtype, team->comm),
                 (sendbuf, sendcount, sendtype, recvbuf, act->wide_counts[1],
                  act->wide_displs[1], recvtype, team->comm));
}

/* Number of blocks between two ranks; in place it is symmetric. */
static int blocks_between(struct act *act, int from, int to, int even,
                          int in_place)
{
    if (in_place && from > to) return blocks_between(act, to, from, even, 1);
    struct dice dice = {value(act, from, to, -1)};
    struct dice all = {value(act, 0, 0, -2)};
    int factor = roll(&all, 8) ? 1 : 100;
    return factor * (even ? roll(&all, 4) : roll(&dice, 4));
}

static void act_alltoall(struct act *act, int even)
{
    const struct team *team = act->team;
    int out[RANKS_MAX] = {0}, in[RANKS_MAX] = {0}, me = team->rank,
        n = team->size;
    int in_place = roll(&act->dice, 3) == 0;
    void *sendbuf = MPI_IN_PLACE;
    MPI_Datatype sendtype = MPI_DATATYPE_NULL;
    act->name = even ? "alltoall" : "alltoallv";
    for (int r = 0; r < n; r++) {
        out[r] = blocks_between(act, me, r, even, in_place);
        in[r] = blocks_between(act, r, me, even, in_place);
    }
    if (!in_place) {
        places_roll(act, 0, out, &act->in, even);
        for (int r = 0; r < n; r++)
            block_out(act, &act->in, 0, r, me, r, out[r]);
        area_fill(&act->in);
        sendbuf = area_base(&act->in);
        sendtype = act->in.layout.type;
    }
    places_roll(act, 1, in, &act->out, even);
    for (int r = 0; r < n; r++) {
        if (in_place) block_out(act, &act->out, 1, r, me, r, out[r]);
        block_in(act, &act->out, 1, r, r, me, in[r]);
    }
    area_fill(&act->out);
    void *recvbuf = area_base(&act->out);
    MPI_Datatype recvtype = act->out.layout.type;
    if (even)
        RUN(Alltoall, alltoall, sendbuf, act->counts[0][0], sendtype, recvbuf,
            act->counts[1][0], recvtype, team->comm);
    else
        RUN_BOTH(Alltoallv, alltoallv,
                 (sendbuf, act->counts[0], act->displs[0], sendtype, recvbuf,
                  act->counts[1], act->displs[1], recvtype, team->comm),
                 (sendbuf, act->wide_counts[0], act->wide_displs[0], sendtype,
                  recvbuf, act->wide_counts[1], act->wide_displs[1], recvtype,
                  team->comm));
}

/* A separate type for each partner, with displacements in bytes. */
static void bytes_roll(struct act *act, int side, const int *blocks,
                       struct area *a)
{
    int n = act->team->size;
    MPI_Aint at = 0;
    struct layout bytes;
    for (int r = 0; r < n; r++) {
        struct layout *l = &act->layouts[side][r];
        layout_own(act, l);
        int count = blocks[r] * BLOCK / l->count;
        MPI_Aint low = l->low < 0 ? -l->low : 0;
        act->types[side][r] = l->type;
        act->counts[side][r] = count;
        act->displs[side][r] = (int)(at + low);
        act->wide_counts[side][r] = count;
        act->wide_displs[side][r] = at + low;
        at += low + (l->low > 0 ? l->low : 0) + count * l->extent;
        at = (at + 15) / 16 * 16;
    }
    layout_plain(&bytes, 1);
    area_new(a, &bytes, at + 1);
}

static void bytes_put(const struct act *act, struct area *a, int side, int r,
                      int from, int to, int before, int after)
{
    const struct layout *l = &act->layouts[side][r];
    for (int e = 0; e < act->counts[side][r] * l->count; e++) {
        uint64_t v = value(act, from, to, e);
        size_t at =
            (size_t)(a->shift + act->displs[side][r] +
                     e / l->count * l->extent + l->places[e % l->count]);
        if (before) memcpy(a->before + at, &v, (size_t)act->unit);
        if (after) memcpy(a->after + at, &v, (size_t)act->unit);
    }
}

static void act_alltoallw(struct act *act)
{
    const struct team *team = act->team;
    int out[RANKS_MAX] = {0}, in[RANKS_MAX] = {0}, me = team->rank,
        n = team->size;
    int in_place = roll(&act->dice, 3) == 0 && !late_in_mpich(act);
    void *sendbuf = MPI_IN_PLACE;
    act->name = "alltoallw";
    act->kinds = n;
    for (int r = 0; r < n; r++) {
        out[r] = blocks_between(act, me, r, 0, in_place);
        in[r] = blocks_between(act, r, me, 0, in_place);
    }
    if (!in_place) {
        bytes_roll(act, 0, out, &act->in);
        for (int r = 0; r < n; r++) bytes_put(act, &act->in, 0, r, me, r, 1, 1);
        area_fill(&act->in);
        sendbuf = area_base(&act->in);
    }
    bytes_roll(act, 1, in, &act->out);
    for (int r = 0; r < n; r++) {
        if (in_place) bytes_put(act, &act->out, 1, r, me, r, 1, 0);
        bytes_put(act, &act->out, 1, r, r, me, 0, 1);
    }
    area_fill(&act->out);
    void *recvbuf = area_base(&act->out);
    RUN_BOTH(Alltoallw, alltoallw,
             (sendbuf, act->counts[0], act->displs[0], act->types[0], recvbuf,
              act->counts[1], act->displs[1], act->types[1], team->comm),
             (sendbuf, act->wide_counts[0], act->wide_displs[0], act->types[0],
              recvbuf, act->wide_counts[1], act->wide_displs[1], act->types[1],
              team->comm));
}
