/* run_key.c - see run_key.h. */
#include "run_key.h"

#include "quiet_write.h"

#include "hex.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

static const char key_head[] = "pccl-key 1 ";
static const char token_head[] = "pccl-token 1 ";

bool run_key_make(struct run_key *key)
{
    memset(key->identity, 0, sizeof key->identity);
    return getrandom(key->bytes, sizeof key->bytes, 0) ==
           (ssize_t)sizeof key->bytes;
}

void run_key_psk(const struct run_key *key, struct secure_psk *psk)
{
    secure_psk_of_key(psk, key->bytes);
    if (run_key_is_token(key))
        memcpy(psk->identity, key->identity, sizeof psk->identity);
}

void run_key_print(const struct run_key *key, char text[RUN_KEY_TEXT])
{
    size_t skip = strlen(key->identity);
    memcpy(text, key->identity, skip);
    if (skip > 0) text[skip++] = ' ';
    hex_print(key->bytes, sizeof key->bytes, text + skip);
}

bool run_key_parse(struct run_key *key, const char *text)
{
    const char *space = strchr(text, ' ');
    size_t length = space ? (size_t)(space - text) : 0;
    if (length >= sizeof key->identity || (space && length == 0)) return false;
    memset(key->identity, 0, sizeof key->identity);
    memcpy(key->identity, text, length);
    return hex_read(space ? space + 1 : text, key->bytes, sizeof key->bytes);
}

size_t run_key_line(const struct run_key *key, char line[RUN_KEY_LINE])
{
    char text[RUN_KEY_TEXT];
    run_key_print(key, text);
    int size = snprintf(line, RUN_KEY_LINE, "%s%s\n",
                        run_key_is_token(key) ? token_head : key_head, text);
    run_key_forget(text, sizeof text);
    return (size_t)size;
}

void run_key_forget(void *secret, size_t size)
{
    explicit_bzero(secret, size);
}

/* What is wrong with the file, or NULL. */
static const char *fault_of(int fd, bool secret)
{
    struct stat st;
    if (fstat(fd, &st) != 0) return strerror(errno);
    if (!S_ISREG(st.st_mode)) return "it is no file";
    if (!secret) return NULL;
    if (st.st_uid != geteuid() && st.st_uid != 0)
        return "it belongs to another user";
    if (st.st_mode & (S_IRWXG | S_IRWXO))
        return "others than its owner may read or write it: chmod 600";
    return NULL;
}

bool run_key_read_line(const char *path, bool secret, char line[RUN_KEY_LINE],
                       char *error, size_t error_size)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
    const char *fault = fd < 0 ? strerror(errno) : fault_of(fd, secret);
    ssize_t size = fault ? 0 : pread(fd, line, RUN_KEY_LINE - 1, 0);
    if (size < 0) fault = strerror(errno);
    line[size > 0 ? size : 0] = '\0';
    line[strcspn(line, "\n")] = '\0';
    if (fd >= 0) close(fd);
    if (fault) snprintf(error, error_size, "%s: %s", path, fault);
    return !fault;
}

static bool take_line(struct run_key *key, const char *line)
{
    bool token = strncmp(line, token_head, sizeof token_head - 1) == 0;
    if (!token && strncmp(line, key_head, sizeof key_head - 1) != 0)
        return false;
    line += token ? sizeof token_head - 1 : sizeof key_head - 1;
    return run_key_parse(key, line) && run_key_is_token(key) == token;
}

bool run_key_read(struct run_key *key, const char *path, char *error,
                  size_t error_size)
{
    char line[RUN_KEY_LINE];
    if (!run_key_read_line(path, true, line, error, error_size)) return false;
    bool done = take_line(key, line);
    run_key_forget(line, sizeof line);
    if (!done)
        snprintf(error, error_size,
                 "%s: it is no token file (pccl-master --make-token makes one)",
                 path);
    return done;
}

bool run_key_write_line(const char *path, bool secret, const char *line,
                        char *error, size_t error_size)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC,
                  secret ? 0600 : 0644);
    int code = fd < 0 ? errno : quiet_write_all(fd, line, strlen(line));
    if (code == 0 && fsync(fd) != 0) code = errno;
    bool done = code == 0;
    errno = code;
    if (!done) snprintf(error, error_size, "%s: %s", path, strerror(errno));
    if (fd < 0) return false;
    close(fd);
    if (!done) (void)unlink(path);
    return done;
}

bool run_key_write(const struct run_key *key, const char *path, char *error,
                   size_t error_size)
{
    char line[RUN_KEY_LINE];
    (void)run_key_line(key, line);
    bool done = run_key_write_line(path, true, line, error, error_size);
    run_key_forget(line, sizeof line);
    return done;
}

static bool put_line(int fd, const struct run_key *key)
{
    char line[RUN_KEY_LINE];
    size_t size = run_key_line(key, line);
    bool done = quiet_write_all(fd, line, size) == 0;
    run_key_forget(line, sizeof line);
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
