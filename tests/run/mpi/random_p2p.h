/* random_p2p.h - the messages of mpi_random.c. */

enum { MESSAGES_MAX = 24, TAGS = 3 };

struct message {
    int from, to, tag, blocks, number, taken;
    struct area area;
    MPI_Request request;
};

static uint64_t item(const struct message *m, int e)
{
    return mix(mix((uint64_t)seed << 20 | (uint64_t)step,
                   (uint64_t)m->number + 500000),
               (uint64_t)e);
}

static void message_area(struct message *m, int unit, int arriving)
{
    struct layout l;
    layout_roll(&own, &l, unit, BLOCK);
    area_new(&m->area, &l, m->blocks * BLOCK / l.count);
    for (int e = 0; e < m->blocks * BLOCK; e++) {
        if (!arriving) area_put(m->area.before, &m->area, 0, e, item(m, e));
        area_put(m->area.after, &m->area, 0, e, item(m, e));
    }
    area_fill(&m->area);
    m->request = MPI_REQUEST_NULL;
}

static void message_send(struct message *m, MPI_Comm comm)
{
    void *at = area_base(&m->area);
    int count = m->blocks * BLOCK / m->area.layout.count;
    MPI_Datatype type = m->area.layout.type;
    int how = roll(&own, 7);
    /* a buffered message must fit the attached buffer */
    if (how == 3 && m->blocks * BLOCK * m->area.layout.unit > 20000) how = 0;
    if (how == 0)
        OK(MPI_Isend(at, count, type, m->to, m->tag, comm, &m->request));
    if (how == 1)
        OK(MPI_Issend(at, count, type, m->to, m->tag, comm, &m->request));
    if (how == 2)
        OK(MPI_Isend_c(at, count, type, m->to, m->tag, comm, &m->request));
    if (how == 3)
        OK(MPI_Ibsend(at, count, type, m->to, m->tag, comm, &m->request));
    if (how == 4)
        OK(MPI_Issend_c(at, count, type, m->to, m->tag, comm, &m->request));
    if (how == 5)
        OK(MPI_Send_init(at, count, type, m->to, m->tag, comm, &m->request));
    if (how == 6)
        OK(MPI_Ssend_init(at, count, type, m->to, m->tag, comm, &m->request));
    if (how >= 5) OK(MPI_Start(&m->request));
}

/* The first message of a stream (sender and tag) that is not received yet. */
static struct message *message_next(struct message *all, int n, int me,
                                    int from, int tag)
{
    for (int i = 0; i < n; i++)
        if (all[i].to == me && !all[i].taken &&
            (from == MPI_ANY_SOURCE || all[i].from == from) &&
            (tag == MPI_ANY_TAG || all[i].tag == tag))
            return &all[i];
    return NULL;
}

static void status_check(const struct message *m, const MPI_Status *status)
{
    int count = -1, elements = -1;
    const struct layout *l = &m->area.layout;
    if (status->MPI_SOURCE != m->from || status->MPI_TAG != m->tag)
        blame("message", 0, "wrong source or tag in the status");
    OK(MPI_Get_count(status, l->type, &count));
    OK(MPI_Get_elements(status, l->type, &elements));
    if (count != m->blocks * BLOCK / l->count || elements != m->blocks * BLOCK)
        blame("message", 0, "wrong count in the status");
}

static void message_check(struct message *m, const MPI_Status *status)
{
    status_check(m, status);
    if (!area_good(&m->area)) blame("message", 0, "wrong data");
}

/* Posts receives per stream, in a random order; later ones may be posted while
 * earlier ones are in flight. */
static void receive_posted(struct message *all, int n, int unit,
                           const struct team *team)
{
    struct message *posted[MESSAGES_MAX];
    MPI_Request requests[MESSAGES_MAX];
    MPI_Status statuses[MESSAGES_MAX];
    int count = 0;
    for (;;) {
        struct message *any =
            message_next(all, n, team->rank, MPI_ANY_SOURCE, MPI_ANY_TAG);
        if (!any) break;
        struct message *m = message_next(
            all, n, team->rank, roll(&own, team->size), roll(&own, TAGS));
        if (!m) m = any;
        m = message_next(all, n, team->rank, m->from, m->tag);
        m->taken = 1;
        message_area(m, unit, 1);
        int types = m->blocks * BLOCK / m->area.layout.count;
        int spare = roll(&own, 2); /* the receive may be longer */
        (void)spare;
        if (roll(&own, 2))
            OK(MPI_Irecv(area_base(&m->area), types, m->area.layout.type,
                         m->from, m->tag, team->comm, &requests[count]));
        else
            OK(MPI_Irecv_c(area_base(&m->area), types, m->area.layout.type,
                           m->from, m->tag, team->comm, &requests[count]));
        posted[count++] = m;
    }
    if (roll(&own, 2)) {
        OK(MPI_Waitall(count, requests, statuses));
        for (int i = 0; i < count; i++) message_check(posted[i], &statuses[i]);
        return;
    }
    for (int left = count; left > 0; left--) {
        int index = -1;
        MPI_Status status;
        OK(MPI_Waitany(count, requests, &index, &status));
        message_check(posted[index], &status);
    }
}

/* Probes for any message or for a stream, then receives what it found. */
static void receive_probed(struct message *all, int n, int unit,
                           const struct team *team)
{
    while (message_next(all, n, team->rank, MPI_ANY_SOURCE, MPI_ANY_TAG)) {
        MPI_Status status, last;
        MPI_Message handle = MPI_MESSAGE_NULL;
        int how = roll(&own, 5), flag = 0;
        int source = MPI_ANY_SOURCE, tag = MPI_ANY_TAG;
        struct message *m =
            message_next(all, n, team->rank, MPI_ANY_SOURCE, MPI_ANY_TAG);
        if (roll(&own, 2)) source = m->from;
        if (roll(&own, 2)) tag = m->tag;
        if (how == 0) OK(MPI_Probe(source, tag, team->comm, &status));
        while (how == 1 && !flag)
            OK(MPI_Iprobe(source, tag, team->comm, &flag, &status));
        if (how == 2 || how == 3)
            OK(MPI_Mprobe(source, tag, team->comm, &handle, &status));
        while (how == 4 && !flag)
            OK(MPI_Improbe(source, tag, team->comm, &flag, &handle, &status));
        m = message_next(all, n, team->rank, status.MPI_SOURCE, status.MPI_TAG);
        if (!m) {
            blame("probe", how, "nobody has sent that");
            return;
        }
        m->taken = 1;
        message_area(m, unit, 1);
        status_check(m, &status);
        void *at = area_base(&m->area);
        MPI_Datatype type = m->area.layout.type;
        int types = m->blocks * BLOCK / m->area.layout.count;
        if (how < 2)
            OK(MPI_Recv(at, types, type, status.MPI_SOURCE, status.MPI_TAG,
                        team->comm, &last));
        if (how == 2 || how == 4)
            OK(MPI_Mrecv(at, types, type, &handle, &last));
        if (how == 3) {
            OK(MPI_Imrecv(at, types, type, &handle, &m->request));
            OK(MPI_Wait(&m->request, &last));
        }
        message_check(m, &last);
    }
}

/* From any source with any tag. The status identifies the message; within a
 * stream the order of posting holds. */
static void receive_any(struct message *all, int n, int unit,
                        const struct team *team)
{
    struct area areas[MESSAGES_MAX];
    MPI_Request requests[MESSAGES_MAX];
    MPI_Status statuses[MESSAGES_MAX];
    int count = 0, longest = 0;
    for (int i = 0; i < n; i++) {
        if (all[i].to != team->rank) continue;
        if (all[i].blocks > longest) longest = all[i].blocks;
        count++;
    }
    for (int i = 0; i < count; i++) {
        struct layout l;
        layout_plain(&l, unit);
        memset(&areas[i], 0, sizeof areas[i]);
        area_new(&areas[i], &l, longest * BLOCK);
        area_fill(&areas[i]);
        OK(MPI_Irecv(area_base(&areas[i]), longest * BLOCK, l.type,
                     MPI_ANY_SOURCE, MPI_ANY_TAG, team->comm, &requests[i]));
    }
    OK(MPI_Waitall(count, requests, statuses));
    for (int i = 0; i < count; i++) {
        struct message *m = message_next(
            all, n, team->rank, statuses[i].MPI_SOURCE, statuses[i].MPI_TAG);
        if (!m) {
            blame("message", 0, "nobody has sent that");
        } else {
            m->taken = 1;
            for (int e = 0; e < m->blocks * BLOCK; e++)
                area_put(areas[i].after, &areas[i], 0, e, item(m, e));
            if (!area_good(&areas[i])) blame("message", 1, "wrong data");
        }
        area_free(&areas[i]);
    }
}

static void messages(struct dice *dice, const struct team *team)
{
    static const int units[] = {1, 2, 4, 8};
    struct message all[MESSAGES_MAX];
    int n = 1 + roll(dice, MESSAGES_MAX), unit = units[roll(dice, 4)];
    memset(all, 0, sizeof all);
    for (int i = 0; i < n; i++) {
        int kind = roll(dice, 6);
        all[i].number = i;
        all[i].from = roll(dice, team->size);
        all[i].to = roll(dice, team->size);
        all[i].tag = roll(dice, TAGS);
        all[i].blocks = kind == 0   ? 0
                        : kind == 1 ? 700 + roll(dice, 2000)
                                    : roll(dice, 12);
    }
    /* a message to oneself has two areas: it is sent from a copy */
    struct message sent[MESSAGES_MAX];
    memcpy(sent, all, sizeof all);
    for (int i = 0; i < n; i++) {
        if (sent[i].from != team->rank) continue;
        message_area(&sent[i], unit, 0);
        message_send(&sent[i], team->comm);
    }
    int how = roll(&own, 3);
    if (how == 0) receive_posted(all, n, unit, team);
    if (how == 1) receive_probed(all, n, unit, team);
    if (how == 2) receive_any(all, n, unit, team);
    for (int i = 0; i < n; i++) {
        if (sent[i].from == team->rank) {
            OK(MPI_Wait(&sent[i].request, MPI_STATUS_IGNORE));
            if (sent[i].request != MPI_REQUEST_NULL)
                OK(MPI_Request_free(&sent[i].request));
            if (!area_good(&sent[i].area))
                blame("message", 2, "the sent data have changed");
        }
        area_free(&sent[i].area);
        area_free(&all[i].area);
    }
    /* A receive from any source must not match a message of a later step. */
    OK(MPI_Barrier(team->comm));
}
