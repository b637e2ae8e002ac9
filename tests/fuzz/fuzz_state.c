/* fuzz_state.c - files of anybody's making as the state of a detached job, and
 * the folder where it is looked for. */
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "../../src/launch/state_file.c"
#include "../run/checkpoint/scratch.h"
#include "fuzz.h"

#include <assert.h>

enum { TEXT_MOST = 2000 };

static char here[300]; /* the state file */

static void put(const char *name, const char *text, size_t size, mode_t mode)
{
    char path[300];
    (void)snprintf(path, sizeof path, "%s/%s", scratch, name);
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    assert(fd >= 0);
    (void)!write(fd, text, size);
    (void)fchmod(fd, mode);
    (void)close(fd);
}

/* Lines that are nearly right, and any. */
static size_t make(struct fuzz_input *in, char *text)
{
    static const char *const lines[] = {
        STATE_HEAD "\n",
        "process 7 123 ab-12\n",
        "process -7 123 ab-12\n",
        "process 99999999999 5 ab\n",
        "ended 3\n",
        "ended -1\n",
        "ended 256\n",
        "ended x\n",
        "coordinator 127.0.0.1:5\n",
        "\n",
        "process 7 18446744073709551616 "
        "0123456789abcdef0123456789abcdef012345678"
        "\n",
    };
    size_t size = 0;
    uint8_t count = fuzz_u8(in) % 16;
    if (fuzz_u8(in) & 7) size = sizeof STATE_HEAD;
    memcpy(text, lines[0], sizeof STATE_HEAD);
    for (uint8_t i = 0; i < count; i++) {
        uint8_t which = fuzz_u8(in);
        const char *line = lines[which % ARRAY_COUNT(lines)];
        size_t length = strlen(line);
        if (which > 200) {
            line = (const char *)in->at;
            length = which % 32u < in->left ? which % 32u : in->left;
            in->at += length;
            in->left -= length;
        }
        if (size + length > TEXT_MOST) break;
        memcpy(text + size, line, length);
        size += length;
    }
    return size;
}

static void read_state(void)
{
    struct state s;
    char line[MESSAGE_SIZE] = "";
    bool good = state_read(here, &s, line);
    assert(good == (*line == '\0'));
    if (!good) return;
    assert(s.launcher > 0 && !s.runs);
    assert(s.status >= 0 && s.status < 256);
}

static void find(struct fuzz_input *in)
{
    char path[PATH_MAX] = "", line[MESSAGE_SIZE] = "";
    uint8_t bits = fuzz_u8(in);
    if (bits & 1) put(STATE_PREFIX "8" STATE_SUFFIX, "", 0, 0600);
    if (bits & 2) put(STATE_PREFIX "8.other", "", 0, 0600);
    if (bits & 4) put("x", "", 0, 0600);
    (void)setenv("XDG_RUNTIME_DIR", bits == 255 ? "/nonexistent" : scratch, 1);
    if (bits == 254) (void)unsetenv("XDG_RUNTIME_DIR");
    bool found = state_find(path, line);
    assert(found == (*line == '\0'));
    assert(!found || strncmp(path, scratch, strlen(scratch)) == 0);
}

static void end(void)
{
    (void)scratch_remove(NULL);
}

static void begin(void)
{
    if (access("/dev/shm", W_OK) == 0) (void)setenv("TMPDIR", "/dev/shm", 1);
    if (scratch_make(NULL) != 0) abort();
    (void)snprintf(here, sizeof here, "%s/" STATE_PREFIX "7" STATE_SUFFIX,
                   scratch);
    (void)atexit(end);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    char text[TEXT_MOST + 1];
    struct fuzz_input in = {bytes, size};
    if (!*here) begin();
    scratch_empty();
    uint8_t bits = fuzz_u8(&in);
    size_t length = make(&in, text);
    /* Others may write it, it is no file, or it is not there. */
    if (bits < 200)
        put(STATE_PREFIX "7" STATE_SUFFIX, text, length, 0600);
    else if (bits < 220)
        put(STATE_PREFIX "7" STATE_SUFFIX, text, length, 0622);
    else if (bits < 230)
        (void)mkfifo(here, 0600);
    else if (bits < 240)
        (void)symlink("/dev/null", here);
    read_state();
    find(&in);
    return 0;
}
