/* fuzz_trace.c - files of anybody's making as traces of the ranks of a run,
 * which pccl-trace merges: any bytes, and lines that are nearly right. */
#include "fuzz.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

static int trace_main(int argc, char **argv);
#define main trace_main
#include "../../src/trace/trace_main.c"
#undef main

enum { FILES = 3, OUT = FILES, PATH_SIZE = 32, LINES = 48 };

static int fds[FILES + 1];
static char paths[FILES + 1][PATH_SIZE];
static FILE *quiet;

static const char *const numbers[] = {
    "0",
    "1.5",
    "-3",
    "1000.001",
    "20000000.5",
    "9223372036854775.807",
    "9223372036854775807",
    "-9223372036854775808",
    "99999999999999999999",
    "",
    "x",
    "1e9",
};

/* Mostly of a run of some seconds. */
static const char *number(struct fuzz_input *in, char text[24])
{
    uint8_t kind = fuzz_u8(in);
    if (kind < 40) return numbers[kind % (sizeof numbers / sizeof *numbers)];
    (void)snprintf(text, 24, "%u.%03u", fuzz_u16(in) * (kind & 3 ? 7u : 70000u),
                   kind * 3u);
    return text;
}

static void head(struct fuzz_input *in, FILE *to)
{
    char a[24], b[24], c[24];
    uint8_t bits = fuzz_u8(in);
    fprintf(
        to,
        "{\"ts\":0,\"pid\":7,\"tid\":0,\"ph\":\"M\",\"name\":\"pccl_clock\","
        "\"args\":{\"rank\":%s,\"host\":\"h%u\",\"clock\":\"c%u\","
        "\"monotonic_ns\":%s,\"realtime_ns\":%s}},\n",
        number(in, a), bits & 3u, bits >> 2 & 3u, number(in, b), number(in, c));
}

static void event(struct fuzz_input *in, FILE *to)
{
    static const char *const kinds[] = {"all-reduce", "barrier", "broadcast",
                                        "reduce-scatter"};
    char a[24], b[24];
    uint8_t bits = fuzz_u8(in);
    bool whole = bits & 1;
    fprintf(
        to,
        "{\"ts\":%s,\"pid\":7,\"tid\":1,\"ph\":\"%s\",\"cat\":\"operation\","
        "\"name\":\"sum\"",
        number(in, a), whole ? "X" : "e");
    if (whole) fprintf(to, ",\"dur\":%s", number(in, b));
    fprintf(to, ",\"args\":{\"kind\":\"%s\",\"result\":\"%s\"",
            kinds[bits >> 1 & 3], bits & 8 ? "lost" : "success");
    if (!whole) fprintf(to, ",\"began\":%s", number(in, b));
    fprintf(to, ",\"op\":\"0.1.0.%u\"}},\n", bits >> 4 & 7u);
}

static void raw(struct fuzz_input *in, FILE *to)
{
    size_t size = fuzz_u8(in);
    if (size > in->left) size = in->left;
    (void)fwrite(in->at, 1, size, to);
    in->at += size;
    in->left -= size;
}

static void line(struct fuzz_input *in, FILE *to)
{
    uint8_t kind = fuzz_u8(in);
    switch (kind % 16) {
    case 0:
    case 1:
        head(in, to);
        break;
    case 2:
        raw(in, to);
        break;
    case 3:
        fputs(
            "{\"ts\":0,\"pid\":7,\"tid\":0,\"ph\":\"M\",\"name\":\"pccl_end\","
            "\"args\":{}}\n]\n",
            to);
        break;
    case 4: /* longer than any line of a trace */
        fprintf(to, "{\"ts\":%0*d}},\n", 100 + kind * 100, 1);
        break;
    default:
        event(in, to);
        break;
    }
}

/* The files, one after the other. Each begins with its clock, mostly. */
static void make(struct fuzz_input *in, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        if (ftruncate(fds[i], 0) != 0) abort();
        FILE *to = fopen(paths[i], "w");
        if (!to) abort();
        uint8_t lines = fuzz_u8(in);
        if (lines < 250) fputs("[\n", to);
        if (lines < 250) head(in, to);
        for (int k = 0; k < lines % LINES && in->left > 0; k++) line(in, to);
        if (fclose(to) != 0) abort();
    }
}

/* Each line is copied once, and a few numbers are added to it. */
static void judge(uint32_t count, int status)
{
    off_t in = 0;
    for (uint32_t i = 0; i < count; i++) in += lseek(fds[i], 0, SEEK_END);
    if (status == EXIT_SUCCESS)
        assert(lseek(fds[OUT], 0, SEEK_END) <= in * 4 + 1000 * (off_t)count);
}

static void merge_all(uint32_t count, uint8_t how)
{
    char option[] = "-o", quietly[] = "-q", end[] = "--", bad[] = "-x";
    char missing[] = "/nonexistent/trace", help_word[] = "--help";
    char *argv[12] = {option};
    int argc = 1;
    FILE *error = stderr, *out = stdout;
    if (how & 1) argv[argc++] = quietly;
    if (how < 250) argv[argc++] = option;
    if (how < 250) argv[argc++] = paths[OUT];
    if (how == 251) argv[argc++] = bad;
    if (how == 252) argv[argc++] = help_word;
    if (how & 2) argv[argc++] = end;
    for (uint32_t i = 0; i < count; i++) argv[argc++] = paths[i];
    if (how == 253) argv[argc++] = missing;
    stderr = stdout = quiet;
    int status = trace_main(argc, argv);
    stderr = error;
    stdout = out;
    if (how < 250) judge(count, status);
}

static void begin(void)
{
    quiet = fopen("/dev/null", "w");
    for (int i = 0; i <= FILES; i++) {
        fds[i] = memfd_create("trace", MFD_CLOEXEC);
        (void)snprintf(paths[i], PATH_SIZE, "/proc/self/fd/%d", fds[i]);
        if (fds[i] < 0 || !quiet) abort();
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    struct fuzz_input in = {bytes, size};
    if (!quiet) begin();
    uint8_t how = fuzz_u8(&in);
    uint32_t count = fuzz_below(&in, FILES + 1);
    make(&in, count);
    merge_all(count, how);
    return 0;
}
