/* run_key.c - see run_key.h. */
#include "run_key.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

static const char head[] = "pccl-key 1 ";

enum {
    HEAD_SIZE = sizeof head - 1,
    LINE_SIZE = HEAD_SIZE + RUN_KEY_TEXT + 1, /* with '\n' and '\0' */
};

bool run_key_make(struct run_key *key)
{
    return getrandom(key->bytes, sizeof key->bytes, 0) ==
           (ssize_t)sizeof key->bytes;
}

void run_key_print(const struct run_key *key, char text[RUN_KEY_TEXT])
{
    static const char digits[] = "0123456789abcdef";
    for (size_t i = 0; i < SECURE_KEY_SIZE; i++) {
        text[2 * i] = digits[key->bytes[i] >> 4];
        text[2 * i + 1] = digits[key->bytes[i] & 15];
    }
    text[RUN_KEY_TEXT - 1] = '\0';
}

static int digit(char c)
{
    if (c >= '0' && c <= '9') return c - '0';
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

bool run_key_parse(struct run_key *key, const char *text)
{
    if (strnlen(text, RUN_KEY_TEXT) != RUN_KEY_TEXT - 1) return false;
    for (size_t i = 0; i < SECURE_KEY_SIZE; i++) {
        int high = digit(text[2 * i]), low = digit(text[2 * i + 1]);
        if (high < 0 || low < 0) return false;
        key->bytes[i] = (uint8_t)(high << 4 | low);
    }
    return true;
}

void run_key_forget(void *secret, size_t size)
{
    explicit_bzero(secret, size);
}

/* What is wrong with the file, or NULL. */
static const char *fault_of(int fd)
{
    struct stat st;
    if (fstat(fd, &st) != 0) return strerror(errno);
    if (!S_ISREG(st.st_mode)) return "it is no file";
    if (st.st_uid != geteuid() && st.st_uid != 0)
        return "it belongs to another user";
    if (st.st_mode & (S_IRWXG | S_IRWXO))
        return "others than its owner may read or write it: chmod 600";
    return NULL;
}

static bool take_line(struct run_key *key, char *line, ssize_t size)
{
    if (size < (ssize_t)(LINE_SIZE - 2) || memcmp(line, head, HEAD_SIZE) != 0)
        return false;
    line[HEAD_SIZE + RUN_KEY_TEXT - 1] = '\0';
    return run_key_parse(key, line + HEAD_SIZE);
}

bool run_key_read(struct run_key *key, const char *path, char *error,
                  size_t error_size)
{
    char line[LINE_SIZE];
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
    const char *fault = fd < 0 ? strerror(errno) : fault_of(fd);
    if (!fault) {
        ssize_t size = pread(fd, line, sizeof line - 1, 0);
        if (size < 0)
            fault = strerror(errno);
        else if (!take_line(key, line, size))
            fault = "it is no token file (pccl-master --make-token makes one)";
        run_key_forget(line, sizeof line);
    }
    if (fd >= 0) close(fd);
    if (fault) snprintf(error, error_size, "%s: %s", path, fault);
    return !fault;
}

static bool put_line(int fd, const struct run_key *key)
{
    char line[LINE_SIZE], text[RUN_KEY_TEXT];
    run_key_print(key, text);
    int size = snprintf(line, sizeof line, "%s%s\n", head, text);
    bool done = write(fd, line, (size_t)size) == size;
    run_key_forget(line, sizeof line);
    run_key_forget(text, sizeof text);
    return done;
}

bool run_key_write(const struct run_key *key, const char *path, char *error,
                   size_t error_size)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    bool done = fd >= 0 && put_line(fd, key) && fsync(fd) == 0;
    if (!done) snprintf(error, error_size, "%s: %s", path, strerror(errno));
    if (fd < 0) return false;
    close(fd);
    if (!done) (void)unlink(path);
    return done;
}

int run_key_lend(const struct run_key *key, char path[RUN_KEY_PATH])
{
    const int seals = F_SEAL_SEAL | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE;
    int fd = memfd_create("pccl-key", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    if (fd < 0) return -1;
    if (fchmod(fd, 0600) == 0 && put_line(fd, key) &&
        fcntl(fd, F_ADD_SEALS, seals) == 0) {
        snprintf(path, RUN_KEY_PATH, "/proc/%d/fd/%d", (int)getpid(), fd);
        return fd;
    }
    close(fd);
    return -1;
}
