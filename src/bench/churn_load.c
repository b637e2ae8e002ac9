/* churn_load.c - reads all histories of a job. */
#include "churn.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

void churn_violation(struct churn_totals *to, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    if (to->violations < CHURN_KEPT)
        (void)vsnprintf(to->texts[to->violations], sizeof to->texts[0], format,
                        args);
    va_end(args);
    to->violations++;
}

void churn_sample(struct churn_samples *s, double value)
{
    if (s->count == s->room) {
        size_t room = 2 * s->room + 256;
        double *v = realloc(s->v, room * sizeof *v);
        if (!v) return;
        s->v = v;
        s->room = room;
    }
    s->v[s->count++] = value;
}

static void grow(void *at, size_t *room, size_t wanted, size_t size)
{
    void *old;
    if (wanted <= *room) return;
    *room = 2 * *room + wanted;
    memcpy(&old, at, sizeof old);
    void *more = realloc(old, *room * size);
    if (!more) {
        fputs("pccl-bench: no memory for the histories\n", stderr);
        exit(1);
    }
    memcpy(at, &more, sizeof more);
}

/* `v` and `text` are numbers of fields and bytes until all is read. */
static void add_row(struct churn_log *log, const struct churn_record *r)
{
    size_t length = strlen(r->text) + 1;
    grow(&log->rows, &log->row_room, log->row_count + 1, sizeof *log->rows);
    grow(&log->fields, &log->field_room, log->field_count + r->count + 1,
         sizeof *log->fields);
    grow(&log->texts, &log->text_room, log->text_count + length, 1);
    log->rows[log->row_count++] =
        (struct churn_row){.tag = r->tag,
                           .count = (uint8_t)r->count,
                           .life = (uint32_t)log->life_count - 1};
    memcpy(log->fields + log->field_count, r->v,
           r->count * sizeof *log->fields);
    log->field_count += r->count;
    /* Every row has one field more: where its text is. */
    log->fields[log->field_count++] = length > 1 ? log->text_count : 0;
    if (length == 1) return;
    memcpy(log->texts + log->text_count, r->text, length);
    log->text_count += length;
}

static const struct {
    char tag;
    uint8_t least; /* fields */
} tags[] = {{'B', 4},  {'J', 3}, {'V', 4}, {'P', 5}, {'U', 4}, {'S', 8},
            {'O', 11}, {'G', 1}, {'X', 1}, {'M', 3}, {'E', 1}, {'F', 5},
            {'D', 4},  {'R', 3}, {'C', 2}, {'T', 3}, {'W', 3}};

static bool is_known(const struct churn_record *r)
{
    for (size_t i = 0; i < sizeof tags / sizeof tags[0]; i++)
        if (tags[i].tag == r->tag) return r->count >= tags[i].least;
    return false;
}

static void parse(struct churn_log *log, struct churn_life *life,
                  const char *text, size_t size, struct churn_totals *to)
{
    struct churn_record r = {.tag = 0};
    size_t at = 0;
    enum churn_line line;
    while ((line = churn_read(text, size, &at, life->count, &r)) ==
           CHURN_LINE) {
        char first = life->faults ? 'C' : 'B';
        if (!is_known(&r) || (life->count == 0) != (r.tag == first)) {
            churn_violation(to, "%s: line %zu is out of place", life->name,
                            life->count);
            return;
        }
        if (r.tag == 'B') {
            life->n = (uint32_t)r.v[1];
            life->mpi = r.v[2] != 0;
        }
        life->ended |= r.tag == 'E';
        add_row(log, &r);
        life->count++;
    }
    life->torn = line == CHURN_TORN;
    if (line == CHURN_BROKEN)
        churn_violation(to, "%s: line %zu is broken", life->name, life->count);
    if (life->torn && life->faults)
        churn_violation(to, "%s: the last line is torn", life->name);
}

static void read_file(struct churn_log *log, const char *folder,
                      const char *name, struct churn_totals *to)
{
    char path[CHURN_PATH];
    struct stat st = {.st_size = 0};
    snprintf(path, sizeof path, "%.400s/%.80s", folder, name);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    bool ok = fd >= 0 && fstat(fd, &st) == 0;
    void *text = ok && st.st_size > 0 ? mmap(NULL, (size_t)st.st_size,
                                             PROT_READ, MAP_PRIVATE, fd, 0)
                                      : MAP_FAILED;
    struct churn_life *more =
        realloc(log->lives, (log->life_count + 1) * sizeof *more);
    if (more) log->lives = more;
    if (more && text != MAP_FAILED) {
        struct churn_life *life = &log->lives[log->life_count++];
        *life = (struct churn_life){.first = log->row_count};
        snprintf(life->name, sizeof life->name, "%.31s", name);
        life->faults = strcmp(name, "faults.hist") == 0;
        parse(log, life, text, (size_t)st.st_size, to);
    }
    if (text != MAP_FAILED) (void)munmap(text, (size_t)st.st_size);
    if (fd >= 0) close(fd);
}

/* One that was killed before it could write is not there or empty. */
void churn_load(struct churn_log *log, const char *folder,
                struct churn_totals *to)
{
    *log = (struct churn_log){.text_count = 1};
    DIR *dir = opendir(folder);
    grow(&log->texts, &log->text_room, 1, 1);
    log->texts[0] = '\0';
    for (const struct dirent *d; dir && (d = readdir(dir));) {
        size_t length = strlen(d->d_name);
        if (length > 5 && strcmp(d->d_name + length - 5, ".hist") == 0)
            read_file(log, folder, d->d_name, to);
    }
    if (dir) (void)closedir(dir);
    const uint64_t *v = log->fields;
    for (size_t i = 0; i < log->row_count; i++) {
        struct churn_row *r = &log->rows[i];
        r->v = v;
        r->text = log->texts + v[r->count];
        v += r->count + 1;
        if (r->tag == 'R') log->over = r->v[2];
        if (r->tag != 'C') continue;
        log->deadline = (int64_t)r->v[0];
        log->wanted = (uint32_t)r->v[1];
    }
}

void churn_unload(struct churn_log *log)
{
    free(log->lives);
    free(log->rows);
    free(log->fields);
    free(log->texts);
}
