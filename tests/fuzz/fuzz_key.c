/* fuzz_key.c - token files and the keys of issuers, as files of anybody's
 * making, and the key that an agent is told: which key a job gets by them, and
 * the variable by which its ranks get the same one. */
#include "fuzz.h"

#include "../../src/base/run_key.h"
#include "../../src/launch/key.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#define VARIABLE "PCCL_TOKEN_FILE"

enum { LINE_MAX_HERE = 700 };

/* What the launcher prints to its user; reports of sanitizers do not go by the
 * stream. */
static FILE *quiet, *loud;

static void begin_quiet(void)
{
    if (!quiet) quiet = fopen("/dev/null", "w");
    assert(quiet);
    loud = stderr;
    stderr = quiet;
}

static void end_quiet(void)
{
    stderr = loud;
}

/* ------------------------------------------------------------------- files */

static size_t put_digits(struct fuzz_input *in, char *to, size_t count)
{
    static const char digits[] = "0123456789abcdef";
    for (size_t i = 0; i < count; i++) to[i] = digits[fuzz_u8(in) % 16];
    return count;
}

/* A line that is one of those, or nearly: there is no way to one by chance. */
static size_t make_text(struct fuzz_input *in, char *text)
{
    static const char *const heads[] = {"pccl-key 1 ", "pccl-token 1 ",
                                        "pccl-issuer 1 ",
                                        "pccl-issuer-public 1 ", ""};
    uint8_t bits = fuzz_u8(in);
    const char *head = heads[bits % ARRAY_COUNT(heads)];
    size_t size = strlen(head);
    memcpy(text, head, size);
    bool named = bits % ARRAY_COUNT(heads) == 1 || bits > 240;
    if (named && bits < 220) {
        size += put_digits(in, text + size, bits > 200 ? 399 : 1 + bits);
        text[size++] = ' ';
    }
    size_t digits = 2 * SECURE_KEY_SIZE;
    uint8_t odd = fuzz_u8(in);
    if (odd > 230) digits = odd % 71;
    size += put_digits(in, text + size, digits);
    if (odd & 1) text[size++] = '\n';
    if (odd > 240 && size > 0) text[fuzz_u16(in) % size] = (char)fuzz_u8(in);
    for (int i = 0; i < 16 && in->left > 0 && odd & 2; i++)
        text[size++] = (char)fuzz_u8(in);
    return size;
}

/* A file of that text in memory, with a name; -1: there is none. */
static int make_file(struct fuzz_input *in, char *path, size_t room)
{
    char text[LINE_MAX_HERE];
    uint8_t how = fuzz_u8(in);
    int fd = memfd_create("key", MFD_CLOEXEC);
    assert(fd >= 0);
    size_t size = how > 230 ? 0 : make_text(in, text);
    for (; how > 240 && size < sizeof text && in->left > 0; size++)
        text[size] = (char)fuzz_u8(in);
    assert(size <= sizeof text);
    ssize_t done = write(fd, text, size);
    assert(done == (ssize_t)size);
    int rc = fchmod(fd, how % 16 == 15 ? 0640 : 0600);
    assert(rc == 0);
    (void)snprintf(path, room, "/proc/self/fd/%d", fd);
    if (how % 64 == 62) (void)snprintf(path, room, "/proc/self");
    if (how % 64 == 61) (void)snprintf(path, room, "/nonexistent/key");
    return fd;
}

static bool same(const struct run_key *a, const struct run_key *b)
{
    return memcmp(a->bytes, b->bytes, sizeof a->bytes) == 0 &&
           strcmp(a->identity, b->identity) == 0;
}

/* The key of a file is printed as it was read, and a process dials by it. */
static void read_files(const char *path)
{
    struct run_key key = {{0}, {0}}, again = {{0}, {0}};
    struct secure_psk psk;
    uint8_t seed[ISSUER_KEY_SIZE];
    char error[300] = "", text[RUN_KEY_TEXT];
    if (run_key_read(&key, path, error, sizeof error)) {
        run_key_print(&key, text);
        assert(run_key_parse(&again, text) && same(&key, &again));
        run_key_psk(&key, &psk);
        assert(!run_key_is_token(&key) ||
               strcmp(psk.identity, key.identity) == 0);
    } else {
        assert(error[0] != '\0');
    }
    error[0] = '\0';
    bool is_private = run_issuer_read(path, true, seed, error, sizeof error);
    assert(is_private || error[0] != '\0');
    error[0] = '\0';
    bool is_public = run_issuer_read(path, false, seed, error, sizeof error);
    assert(is_public || error[0] != '\0');
    assert(!is_private || !is_public);
}

/* ---------------------------------------------------------------- the job's */

/* Ranks find the same key by the variable, and lose it with this process: here
 * after each input, which would run out of descriptors. */
static void check_lent(const struct run_key *key)
{
    struct run_key lent = {{0}, {0}};
    char error[300];
    const char *variable = key_variable();
    assert(variable && strncmp(variable, VARIABLE "=", sizeof VARIABLE) == 0);
    const char *path = variable + sizeof VARIABLE;
    assert(getenv(VARIABLE) && strcmp(getenv(VARIABLE), path) == 0);
    assert(run_key_read(&lent, path, error, sizeof error));
    assert(same(key, &lent));
    int fd = -1;
    assert(sscanf(path, "/proc/%*d/fd/%d", &fd) == 1);
    close(fd);
}

static void begin_job(const char *path, struct fuzz_input *in)
{
    static struct options o;
    uint8_t bits = fuzz_u8(in);
    memset(&o, 0, sizeof o);
    o.join = bits & 1;
    o.insecure = (bits & 14) == 2;
    o.issuer = bits & 16 ? "issuer" : NULL;
    o.mode = bits & 32 ? MODE_STATUS : MODE_LAUNCH;
    if (bits & 64) o.token_file = path;
    if (bits & 128) (void)setenv(VARIABLE, path, 1);
    if ((bits & 14) == 4) (void)setenv("PCCL_INSECURE", "1", 1);
    bool far = bits & 8;
    bool begun = key_begin(&o, far);
    const struct run_key *key = key_of(&o);
    assert(!begun || !o.insecure || !getenv(VARIABLE));
    if (begun && key) check_lent(key);
    assert(!begun || key || o.insecure || !far || o.join);
    if (begun) (void)key_coordinates(&o);
}

/* What an agent is told. */
static void take_text(struct fuzz_input *in)
{
    char text[LINE_MAX_HERE];
    struct run_key key;
    size_t size = make_text(in, text);
    text[size < sizeof text ? size : sizeof text - 1] = '\0';
    if (key_take(text) && text[0] != '\0') {
        assert(run_key_parse(&key, text));
        check_lent(&key);
    }
}

/* Files that are made are read as what they are, and never made twice. */
static void make_files(void)
{
    char folder[] = "/tmp/pccl-fuzz-XXXXXX", path[64], error[300];
    uint8_t seed[ISSUER_KEY_SIZE];
    struct run_key key;
    if (!mkdtemp(folder)) return;
    (void)snprintf(path, sizeof path, "%s/key", folder);
    assert(key_make_file(path) == EXIT_SUCCESS);
    assert(run_key_read(&key, path, error, sizeof error));
    assert(!run_key_is_token(&key));
    assert(key_make_file(path) == EXIT_FAILURE);
    (void)unlink(path);
    assert(run_issuer_make(path, error, sizeof error));
    assert(run_issuer_read(path, true, seed, error, sizeof error));
    assert(!run_issuer_read(path, false, seed, error, sizeof error));
    assert(!run_issuer_make(path, error, sizeof error));
    (void)unlink(path);
    (void)snprintf(path, sizeof path, "%s/key.pub", folder);
    assert(run_issuer_read(path, false, seed, error, sizeof error));
    (void)unlink(path);
    (void)rmdir(folder);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    struct fuzz_input in = {bytes, size};
    const char *missing;
    char path[64];
    if (!secure_is_available(&missing)) return 0;
    uint8_t what = fuzz_u8(&in);
    begin_quiet();
    if (what % 4 == 3) {
        take_text(&in);
    } else if (what == 248 && size < 4) { /* few inputs: it writes to a disk */
        make_files();
    } else {
        uint8_t job[2] = {fuzz_u8(&in), 0};
        struct fuzz_input facts = {job, sizeof job};
        int fd = make_file(&in, path, sizeof path);
        read_files(path);
        begin_job(path, &facts);
        close(fd);
    }
    end_quiet();
    (void)unsetenv(VARIABLE);
    (void)unsetenv("PCCL_INSECURE");
    return 0;
}
