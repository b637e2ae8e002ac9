/* churn_history.c - writes and reads the histories of pccl-bench churn. */
#include "churn.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

const char *const churn_fault_names[CHURN_FAULTS] = {
    "kill", "pause", "stop", "join", "leave", "partition", "master"};

struct churn_board *churn_board_open(const char *folder, bool create)
{
    char path[CHURN_PATH];
    snprintf(path, sizeof path, "%.480s/board", folder);
    int fd = open(path, O_RDWR | O_CLOEXEC | (create ? O_CREAT : 0), 0600);
    if (fd < 0) return NULL;
    bool ok = !create || ftruncate(fd, sizeof(struct churn_board)) == 0;
    void *at = ok ? mmap(NULL, sizeof(struct churn_board),
                         PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0)
                  : MAP_FAILED;
    close(fd);
    return at == MAP_FAILED ? NULL : at;
}

static uint32_t checksum(const char *text, size_t size)
{
    uint32_t hash = 0x811c9dc5u;
    for (size_t i = 0; i < size; i++)
        hash = (hash ^ (uint8_t)text[i]) * 0x01000193u;
    return hash;
}

bool churn_history_open(struct churn_history *h, const char *folder,
                        const char *name)
{
    char path[CHURN_PATH];
    snprintf(path, sizeof path, "%.400s/%.80s.hist", folder, name);
    *h = (struct churn_history){
        .fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_APPEND | O_CLOEXEC,
                   0600)};
    return h->fd >= 0;
}

/* Of what the line cannot hold the rest is left out. */
void churn_write(struct churn_history *h, char tag, const uint64_t *v,
                 uint32_t count, const char *text)
{
    char line[1024];
    int at = snprintf(line, sizeof line, "%" PRIu64 " %c", h->lines++, tag);
    for (uint32_t i = 0; i < count && i < CHURN_FIELDS; i++)
        at += snprintf(line + at, sizeof line - (size_t)at, " %" PRIu64, v[i]);
    if (text) {
        int begin = at;
        at += snprintf(line + at, sizeof line - (size_t)at, " ;%.240s", text);
        for (int i = begin; i < at; i++)
            if (line[i] == '\n' || line[i] == '#') line[i] = ' ';
    }
    at += snprintf(line + at, sizeof line - (size_t)at, " #%08" PRIx32 "\n",
                   checksum(line, (size_t)at));
    ssize_t ignored = write(h->fd, line, (size_t)at);
    (void)ignored;
}

static bool parse(const char *line, const char *end, uint64_t number,
                  struct churn_record *r)
{
    char *p;
    if (strtoull(line, &p, 10) != number || p == line || *p != ' ')
        return false;
    r->tag = p[1];
    r->count = 0;
    r->text[0] = '\0';
    p += 2;
    while (p < end && *p == ' ') {
        p++;
        if (*p == ';') {
            snprintf(r->text, sizeof r->text, "%.*s", (int)(end - p - 1),
                     p + 1);
            return true;
        }
        char *after;
        if (r->count == CHURN_FIELDS) return false;
        r->v[r->count++] = strtoull(p, &after, 10);
        if (after == p) return false;
        p = after;
    }
    return p == end;
}

enum churn_line churn_read(const char *text, size_t size, size_t *at,
                           uint64_t number, struct churn_record *r)
{
    if (*at >= size) return CHURN_END;
    const char *line = text + *at;
    const char *end = memchr(line, '\n', size - *at);
    enum churn_line bad = end ? CHURN_BROKEN : CHURN_TORN;
    *at = end ? (size_t)(end + 1 - text) : size;
    if (!end || end - line < 12) return bad;
    const char *mark = end - 10; /* " #" and eight digits */
    if (mark[0] != ' ' || mark[1] != '#') return bad;
    if (strtoul(mark + 2, NULL, 16) != checksum(line, (size_t)(mark - line)))
        return bad;
    /* With a checksum the line is as it was written. */
    return parse(line, mark, number, r) ? CHURN_LINE : CHURN_BROKEN;
}
