/* dispute_text.c - the text about an operation whose members disagree: which
 * argument differs, its values, and the ranks that have them. Rule F9 of
 * AGREEMENT.md. */
#include "master.h"

#include "../base/arguments.h"
#include "../base/dtype.h"

#include <stdlib.h>
#include <string.h>

/* ------------------------------------------------------------------- writing
 */

/* A text that ends with an ellipsis where it would exceed WIRE_TEXT_MAX
 * bytes. */
struct text {
    char *bytes;
    size_t size;
};

static void add_bytes(struct text *t, const char *more, size_t size)
{
    static const char ellipsis[] = "...";
    size_t room = WIRE_TEXT_MAX - t->size;
    bool cut = size > room;
    if (cut) size = room;
    memcpy(t->bytes + t->size, more, size);
    t->size += size;
    t->bytes[t->size] = '\0';
    if (cut) memcpy(t->bytes + t->size - 3, ellipsis, 3);
}

static void add(struct text *t, const char *more)
{
    add_bytes(t, more, strlen(more));
}

static void add_number(struct text *t, uint64_t value)
{
    char digits[24];
    char *at = digits + sizeof digits;
    *--at = '\0';
    do *--at = (char)('0' + value % 10);
    while ((value /= 10) > 0);
    add(t, at);
}

/* Ascending ranks; three or more in a row as a range. */
static void add_ranks(struct text *t, const uint32_t *ranks, uint32_t count)
{
    add(t, count > 1 ? "ranks " : "rank ");
    for (uint32_t i = 0; i < count;) {
        uint32_t run = 1;
        while (i + run < count && ranks[i + run] == ranks[i] + run) run++;
        if (run == 2) run = 1;
        if (i > 0) add(t, ", ");
        add_number(t, ranks[i]);
        if (run > 1) add(t, "-");
        if (run > 1) add_number(t, ranks[i + run - 1]);
        i += run;
    }
}

/* ----------------------------------------------------------------- the words
 */

static const char *const coll_names[WIRE_COLLS] = {
    "all-reduce", "broadcast",  "barrier",
    "all-gather", "all-to-all", "reduce-scatter"};
static const char *const quant_names[WIRE_QUANTS] = {"none", "min-max",
                                                     "zero-point"};

static struct master_word word_of_text(const char *text)
{
    return (struct master_word){.text = text, .size = (uint32_t)strlen(text)};
}

static struct master_word word_of_number(uint64_t number)
{
    return (struct master_word){.number = number};
}

static struct master_word coll_word(const struct wire_args *a)
{
    return word_of_text(coll_names[a->coll]);
}

static struct master_word count_word(const struct wire_args *a)
{
    return word_of_number(a->count);
}

static struct master_word dtype_word(const struct wire_args *a)
{
    return word_of_text(dtype_name((enum dtype)a->dtype));
}

static struct master_word redop_word(const struct wire_args *a)
{
    return word_of_text(redop_name((enum redop)a->redop));
}

static struct master_word quant_word(const struct wire_args *a)
{
    return word_of_text(quant_names[a->quant]);
}

static struct master_word code_word(const struct wire_args *a)
{
    return word_of_text(a->quant > 0 ? dtype_name((enum dtype)a->code)
                                     : quant_names[0]);
}

static struct master_word root_word(const struct wire_args *a)
{
    return word_of_number(a->root);
}

/* Arguments of every operation, in the order of comparison. */
static const struct field {
    const char *name;
    struct master_word (*word)(const struct wire_args *a);
} fields[] = {{"kind", coll_word},          {"count", count_word},
              {"datatype", dtype_word},     {"operator", redop_word},
              {"quantization", quant_word}, {"datatype of codes", code_word},
              {"root", root_word}};

static bool same_word(const struct master_word *a, const struct master_word *b)
{
    if (a->absent || b->absent) return a->absent == b->absent;
    if (!a->text != !b->text || a->size != b->size) return false;
    return a->text ? memcmp(a->text, b->text, a->size) == 0
                   : a->number == b->number;
}

static bool words_differ(const struct master_dispute *d)
{
    for (uint32_t i = 1; i < d->count; i++) {
        if (!same_word(&d->reports[0].word, &d->reports[i].word)) return true;
    }
    return false;
}

static bool is_first_of_its_word(const struct master_dispute *d, uint32_t at)
{
    for (uint32_t i = 0; i < at; i++) {
        if (same_word(&d->reports[i].word, &d->reports[at].word)) return false;
    }
    return true;
}

static void add_word(struct text *t, const struct master_word *w)
{
    if (w->absent)
        add(t, "none");
    else if (w->text)
        add_bytes(t, w->text, w->size);
    else
        add_number(t, w->number);
}

/* Each word with its ranks. `digest`: the words say nothing themselves. */
static void add_words(struct text *t, struct master *m,
                      const struct master_dispute *d, bool digest)
{
    static const char *const others[] = {"one set", "another", "a third"};
    uint32_t words = 0;
    for (uint32_t i = 0; i < d->count; i++) {
        uint32_t count = 0;
        if (!is_first_of_its_word(d, i)) continue;
        for (uint32_t k = i; k < d->count; k++) {
            if (same_word(&d->reports[i].word, &d->reports[k].word))
                m->links[count++] = d->reports[k].rank;
        }
        add(t, words > 0 ? "; " : ": ");
        if (digest)
            add(t, words < ARRAY_COUNT(others) ? others[words] : "others");
        else
            add_word(t, &d->reports[i].word);
        add(t, " on ");
        add_ranks(t, m->links, count);
        words++;
    }
}

/* ----------------------------------------------------------- named arguments
 */

static bool find_named(const struct wire_args *a, const struct argument *like,
                       struct argument *out)
{
    size_t at = 0;
    while (arguments_next(a->named, a->named_size, &at, out)) {
        if (out->name_size == like->name_size &&
            memcmp(out->name, like->name, like->name_size) == 0)
            return true;
    }
    return false;
}

/* Sets the words of an argument, or of one entry of an array, and says whether
 * they differ. *end: the largest number of entries. */
static bool set_named(struct master_dispute *d, const struct argument *like,
                      uint32_t i, uint32_t *end)
{
    for (uint32_t k = 0; k < d->count; k++) {
        struct master_described *r = &d->reports[k];
        struct argument a;
        r->word = (struct master_word){.absent = true};
        if (!find_named(&r->args, like, &a)) continue;
        if (a.text_size > 0)
            r->word = (struct master_word){.text = a.text, .size = a.text_size};
        else if (i < a.count)
            r->word = word_of_number(argument_value(&a, i));
        if (a.count > *end) *end = a.count;
    }
    return words_differ(d);
}

/* -------------------------------------------------------------- the reports
 */

static int rank_order(const void *a, const void *b)
{
    const struct master_described *x = a, *y = b;
    return x->rank < y->rank ? -1 : x->rank > y->rank;
}

/* Members disagree on their ranks. */
static bool ranks_differ(struct master_dispute *d)
{
    static const char name[] = "members"; /* op_describe() */
    const struct argument members = {.name = name,
                                     .name_size = sizeof name - 1};
    uint32_t end = 1;
    for (uint32_t i = 0; i < end; i++) {
        if (set_named(d, &members, i, &end)) return true;
    }
    return false;
}

/* Sorts the reports of members that are there still by rank: that of the scope,
 * which the program knows, unless they disagree on it. */
static void sort(struct master *m, struct master_dispute *d)
{
    uint32_t live = 0;
    for (uint32_t i = 0; i < d->count; i++) {
        struct master_described *r = &d->reports[i], gone = *r;
        const struct master_peer *p = &m->peers[r->link];
        if (p->state != PEER_MEMBER || p->info.id != r->id) continue;
        *r = d->reports[live];
        d->reports[live++] = gone;
    }
    for (uint32_t i = live; i < d->count; i++)
        free((void *)(uintptr_t)d->reports[i].args.named);
    d->count = live;
    bool clash = ranks_differ(d);
    for (int turn = 0; turn < 2; turn++) {
        for (uint32_t i = 0; i < live; i++) {
            struct master_described *r = &d->reports[i];
            r->rank = clash ? m->peers[r->link].rank : r->args.rank;
        }
        if (live > 0) qsort(d->reports, live, sizeof *d->reports, rank_order);
        for (uint32_t i = 1; i < live; i++)
            clash |= d->reports[i - 1].rank == d->reports[i].rank;
        if (!clash) return;
    }
}

static const struct master_described *report_of(const struct master_dispute *d,
                                                uint64_t id)
{
    for (uint32_t i = 0; i < d->count; i++) {
        if (d->reports[i].id == id) return &d->reports[i];
    }
    return NULL;
}

/* The arguments that one member names. False: nobody has others. */
static bool add_named(struct text *t, struct master *m,
                      struct master_dispute *d,
                      const struct master_described *report, bool late)
{
    struct argument a;
    size_t at = 0;
    while (report && arguments_next(report->args.named, report->args.named_size,
                                    &at, &a)) {
        uint32_t end = 1;
        for (uint32_t i = 0; i < end && a.late == late; i++) {
            if (!set_named(d, &a, i, &end)) continue;
            bool digest = a.cut && i + 1 == a.count;
            add(t, "members disagree on ");
            add(t, end > 1 ? "" : "the ");
            add_bytes(t, a.name, a.name_size);
            if (end > 1) add(t, "[");
            if (end > 1) add_number(t, i);
            if (end > 1) add(t, digest ? "] or later" : "]");
            add_words(t, m, d, digest);
            return true;
        }
    }
    return false;
}

/* Two members whose digests differ name what differs, if anybody does. */
static bool add_any_named(struct text *t, struct master *m,
                          struct master_dispute *d, bool late)
{
    for (int i = 0; i < 2; i++) {
        if (add_named(t, m, d, report_of(d, d->pair[i]), late)) return true;
    }
    return d->count > 0 && add_named(t, m, d, &d->reports[0], late);
}

/* ------------------------------------------------------------------ the text
 */

/* What one of a pair sends and the other expects. */
static bool add_sizes(struct text *t, const struct master_described *from,
                      const struct master_described *to)
{
    if (!from || !to || from->args.sends == to->args.recvs) return false;
    add(t, "members disagree on the bytes from rank ");
    add_number(t, from->rank);
    add(t, " to rank ");
    add_number(t, to->rank);
    add(t, ": ");
    add_number(t, from->args.sends);
    add(t, " sent, ");
    add_number(t, to->args.recvs);
    add(t, " expected");
    return true;
}

static bool add_pair(struct text *t, const struct master_dispute *d)
{
    const struct master_described *a = report_of(d, d->pair[0]);
    const struct master_described *b = report_of(d, d->pair[1]);
    return add_sizes(t, a, b) || add_sizes(t, b, a);
}

/* What the operation is, where the program's own words do not say it. */
static void add_prefix(struct text *t, const struct master_dispute *d,
                       const char *kind)
{
    struct argument a;
    size_t at = 0;
    const struct wire_args *args = &d->reports[0].args;
    if (arguments_next(args->named, args->named_size, &at, &a) && !a.late)
        return;
    add(t, kind);
    add(t, " (tag ");
    add_number(t, d->op.tag);
    add(t, "): ");
}

static void add_field(struct text *t, struct master *m,
                      const struct master_dispute *d, const char *name,
                      bool digest)
{
    add(t, "members disagree on the ");
    add(t, name);
    add_words(t, m, d, digest);
}

void dispute_text(struct master *m, uint32_t group, char *text)
{
    struct master_dispute *d = &m->groups[group].dispute;
    struct text t = {.bytes = text};
    text[0] = '\0';
    sort(m, d);
    if (d->count == 0) return;
    const char *kind = coll_names[d->reports[d->count - 1].args.coll];
    add_prefix(&t, d, kind);
    if (add_any_named(&t, m, d, false)) return;
    for (uint32_t f = 0; f < ARRAY_COUNT(fields); f++) {
        for (uint32_t i = 0; i < d->count; i++)
            d->reports[i].word = fields[f].word(&d->reports[i].args);
        if (!words_differ(d)) continue;
        if (f == 0) t.size = 0;
        if (f == 0) add_prefix(&t, d, "collective");
        bool bytes =
            fields[f].word == count_word && strcmp(kind, coll_names[0]);
        add_field(&t, m, d, bytes ? "bytes" : fields[f].name, false);
        return;
    }
    if (add_pair(&t, d) || add_any_named(&t, m, d, true)) return;
    for (uint32_t i = 0; i < d->count; i++)
        d->reports[i].word = word_of_number(d->reports[i].args.digest);
    if (words_differ(d))
        add_field(&t, m, d, "further arguments", true);
    else
        text[0] = '\0';
}

/* The ranks whose member runs the operation in the place of another one. */
static uint32_t runners(struct master *m, const struct master_table *t,
                        uint32_t op)
{
    bool runs[PEERS_MAX] = {false};
    uint32_t count = 0;
    for (uint32_t i = 0; i < t->listing_count; i++)
        if (t->listings[i].op == op) runs[t->listings[i].rank] = true;
    for (uint32_t r = 0; r < PEERS_MAX; r++)
        if (runs[r]) m->links[count++] = r;
    return count;
}

void dispute_text_crossed(struct master *m, uint32_t group, uint64_t tag,
                          char *text)
{
    const struct master_table *t = &m->groups[group].table;
    struct text out = {.bytes = text};
    bool first = true;
    text[0] = '\0';
    add(&out, "collective (tag ");
    add_number(&out, tag);
    add(&out, "): members disagree on the scope");
    for (uint32_t i = 0; i < t->op_count && out.size < WIRE_TEXT_MAX; i++) {
        const struct master_op *op = &t->ops[i];
        uint32_t count = 0;
        if (op->commit || op->forced != VERDICT_CROSSED || op->op.tag != tag)
            continue;
        add(&out, first ? ": " : "; ");
        first = false;
        for (uint32_t r = 0; r < t->world; r++)
            if (table_has_rank(t, op->scope, r)) m->links[count++] = r;
        add_ranks(&out, m->links, count);
        add(&out, " on ");
        add_ranks(&out, m->links, runners(m, t, i));
    }
}

/* --------------------------------------------------------- synchronizations
 */

void dispute_text_strategy(uint32_t rank, uint8_t strategy,
                           char text[WIRE_TEXT_MAX + 1])
{
    static const char *const names[SYNC_STRATEGY_COUNT] = {
        [SYNC_ENFORCE_POPULAR] = "enforce-popular",
        [SYNC_RECEIVE_ONLY] = "receive-only",
        [SYNC_SEND_ONLY] = "send-only"};
    struct text t = {.bytes = text};
    add_ranks(&t, &rank, 1);
    add(&t, " called with another strategy than the group: ");
    add(&t, names[strategy]);
    add(&t, "; enforce-popular stands beside no other");
}
