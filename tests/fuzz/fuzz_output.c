/* fuzz_output.c - where an operator wants log lines and traces, and texts of
 * others in them: a log line is one line, and what is JSON is an object. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* The files are here. */
static ssize_t fuzz_write(int fd, const void *bytes, size_t size);
static int fuzz_open(const char *path, int flags, ...);
#define write fuzz_write
#define open fuzz_open
#include "../../src/base/quiet_write.c"

#include "../../src/base/log.c"
#include "../../src/peer/timeline.c"
#undef write
#undef open
#include "fuzz.h"

#include <assert.h>

enum { LOG_FD = 1000, TRACE_FD, CAPTURED_MAX = 1 << 20 };

static char captured[CAPTURED_MAX]; /* of the trace */
static size_t captured_size;
static bool tracing, refuses;
static uint8_t shortly; /* a write takes not all */

/* Bytes that begin a character are followed by as many as they say, and it is
 * no surrogate, nor has it a shorter form. */
static void assert_utf8(const char *text, size_t size)
{
    static const uint32_t least[] = {0, 0x80, 0x800, 0x10000};
    for (size_t i = 0; i < size; i++) {
        uint32_t c = (uint8_t)text[i], more = 0;
        if (c < 0x80) continue;
        more = c >= 0xf0 ? 3 : c >= 0xe0 ? 2 : 1;
        assert(c >= 0xc0 && c < 0xf8 && i + more < size);
        c &= 0x3fu >> more;
        for (uint32_t k = 0; k < more; k++) {
            assert(((uint8_t)text[++i] & 0xc0) == 0x80);
            c = c << 6 | ((uint8_t)text[i] & 0x3f);
        }
        assert(c >= least[more] && c <= 0x10ffff && (c < 0xd800 || c > 0xdfff));
    }
}

/* The text up to its end: objects and arrays that are closed, texts without
 * control characters. */
static void assert_json(const char *at, size_t size)
{
    assert_utf8(at, size);
    int depth = 0;
    bool inside = false;
    for (const char *end = at + size; at < end; at++) {
        assert((unsigned char)*at >= ' ');
        if (inside && *at == '\\') {
            at++;
            assert(at < end && strchr("\"\\u", *at));
        } else if (*at == '"') {
            inside = !inside;
        } else if (!inside) {
            depth += *at == '{';
            depth -= *at == '}';
        }
        assert(depth >= 0);
    }
    assert(depth == 0 && !inside);
}

static void log_came(const char *line, size_t size)
{
    assert(size > 1 && size <= HEAD_SIZE + 2 * TEXT_SIZE);
    assert(line[size - 1] == '\n' && !memchr(line, '\n', size - 1));
    if (json) assert(line[0] == '{');
    if (json) assert_json(line, size - 1);
}

/* A disk that is never slow: calls are made at once. */
void log_file_open(int fd, const char *path,
                   size_t (*make)(char line[LOG_FILE_LINE], uint64_t lost,
                                  const char *why))
{
    char line[LOG_FILE_LINE];
    assert(fd == LOG_FD && strlen(path) < PATH_MAX);
    log_came(line, make(line, 3, "it is full"));
}

void log_file_put(const char *line, size_t size)
{
    log_came(line, size);
}

static ssize_t fuzz_write(int fd, const void *bytes, size_t size)
{
    if (fd != TRACE_FD) {
        log_came(bytes, size);
        return (ssize_t)size;
    }
    if (shortly % 8 == 7 && refuses) return -1;
    if (shortly++ % 4 == 3 && size > 1) size /= 2;
    assert(captured_size + size <= sizeof captured);
    memcpy(captured + captured_size, bytes, size);
    captured_size += size;
    return (ssize_t)size;
}

static int fuzz_open(const char *path, int flags, ...)
{
    (void)flags;
    assert(strlen(path) < PATH_MAX);
    errno = EACCES;
    if (refuses) return -1;
    return tracing ? TRACE_FD : LOG_FD;
}

/* ------------------------------------------------------------ the variables */

static const char *const variables[] = {"PCCL_LOG_LEVEL", "PCCL_LOG_FILE",
                                        "PCCL_LOG_FORMAT", "PCCL_RANK",
                                        "PCCL_TRACE"};
static const char *const values[] = {
    "INFO", "none",        "trace", "json", "JSON",  "text",
    "yaml", "%r.%p",       "%h%%",  "%",    "f%q",   "",
    "3",    "99999999999", "-1",    "a/b",  "%r%r%r"};

static void set(struct fuzz_input *in)
{
    const char *name =
        variables[fuzz_below(in, sizeof variables / sizeof *variables)];
    uint8_t kind = fuzz_u8(in);
    static char text[2 * PATH_MAX];
    size_t size = 0;
    if (kind < 200) {
        (void)setenv(name, values[kind % (sizeof values / sizeof *values)], 1);
        return;
    }
    size_t most = kind < 245 ? 24 : 600;
    while (size < most && in->left > 0) {
        char c = (char)fuzz_u8(in);
        if (c == '\0') break;
        text[size++] = c;
    }
    if (kind > 250) /* longer than a path may be */
        while (size < sizeof text - 1) text[size++] = 'x';
    text[size] = '\0';
    (void)setenv(name, text, 1);
}

/* ----------------------------------------------------------------- texts */

static const char *text_of(struct fuzz_input *in)
{
    static char text[2 * TEXT_SIZE];
    size_t size = fuzz_u8(in) * (fuzz_u8(in) == 255 ? 7u : 1u), i = 0;
    for (; i < size && i < sizeof text - 1; i++) {
        char c = in->left > 0 ? (char)fuzz_u8(in) : '"';
        text[i] = c ? c : ' ';
    }
    text[i] = '\0';
    return text;
}

static void event(struct fuzz_input *in)
{
    static const char phases[] = "BEXbei";
    uint8_t bits = fuzz_u8(in);
    struct trace_event e = {
        .at = (pccl_ns)fuzz_number(in, bits & 1 ? 8 : 4),
        .took = (pccl_ns)fuzz_u16(in),
        .id = bits,
        .bytes = bits & 2 ? UINT64_MAX : bits,
        .scope = bits & 4 ? UINT64_MAX : 0,
        .epoch = bits >> 3 & 1,
        .partner = (int32_t)(bits >> 4) - 1,
        .count = bits,
        .result = (int16_t)(bits % 16),
        .phase = phases[fuzz_below(in, sizeof phases - 1)],
        .category = (uint8_t)fuzz_below(in, TRACE_VIEW + 1),
        .kind = "all-reduce",
        .algorithm = bits & 8 ? "ring" : NULL,
        .why = "it is large",
        .instead_of = bits & 16 ? "grid" : NULL,
        .unfit = "it has too few hosts",
    };
    if (e.took > e.at) e.took = 0;
    trace_set_name(&e, text_of(in));
    (void)trace_put(&e);
}

/* A line is an object with ts and pid first. */
static void judge_trace(void)
{
    static const char begin[] = "{\"ts\":";
    const char *end = captured + captured_size;
    for (const char *at = captured; at < end;) {
        const char *stop = memchr(at, '\n', (size_t)(end - at));
        assert(stop || refuses);
        if (!stop) return;
        size_t size = (size_t)(stop - at);
        if (size > 1) {
            assert(strncmp(at, begin, sizeof begin - 1) == 0);
            assert_json(at, size);
        }
        at = stop + 1;
    }
}

static void forget(void)
{
    for (size_t i = 0; i < sizeof variables / sizeof *variables; i++)
        (void)unsetenv(variables[i]);
    atomic_store(&cached, -1);
    log_set_rank(RANK_UNSET);
    log_set_epoch(0);
    opened = (pthread_once_t)PTHREAD_ONCE_INIT;
    atomic_store(&ends, false);
    atomic_store(&failure, 0);
    to_file = json = refuses = tracing = closed = forked = false;
    file = -1;
    buffered = captured_size = 0;
    if (own) atomic_store(&own->tail, atomic_load(&own->head));
    if (own) give_back(own);
    own = NULL;
    atomic_store(&trace_state, false);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    struct fuzz_input in = {bytes, size};
    forget();
    uint8_t bits = fuzz_u8(&in);
    for (int i = 0; i < 6 && i < bits >> 4; i++) set(&in);
    refuses = (bits & 7) == 7;
    shortly = bits;
    (void)log_level_get();
    log_line(LOG_WARN, "%s", text_of(&in));
    log_set_rank(bits & 8 ? 3 : -1);
    log_set_epoch(bits & 1);
    log_line(LOG_ERR, "%s", text_of(&in));
    tracing = true;
    forked = bits == 1;
    const char *why = trace_open(bits & 8 ? 3 : -1);
    assert(!why || *why);
    if (why) LOG(LOG_WARN, "%s", why);
    while (trace_is_on() && in.left > 0) event(&in);
    for (int i = 0; trace_is_on() && bits == 2 && i < 2 * RING_EVENTS; i++)
        (void)trace_put(&(struct trace_event){.phase = 'i', .name = "x"});
    finish();
    judge_trace();
    return 0;
}
