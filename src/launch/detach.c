/* detach.c - see detach.h. */
#include "detach.h"

#include "descriptor.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#define HEAD "pccl-master state 1"
#define PREFIX "pccl-master."
#define SUFFIX ".state"

enum { STATE_SIZE_MAX = 4096, COPY_SIZE = 16384 };

/* What tells a process from a later one of its number: when it began, and in
 * which life of the host. */
struct identity {
    unsigned long long began;
    char boot[40];
};

struct state {
    int pid;
    struct identity who;
    bool ended;
    int status;
};

__attribute__((format(printf, 2, 3))) static bool say(char *line,
                                                      const char *format, ...)
{
    va_list args;
    va_start(args, format);
    vsnprintf(line, MESSAGE_SIZE, format, args);
    va_end(args);
    return false;
}

/* The text of a small file. */
static bool slurp(int fd, char *text, size_t size)
{
    ssize_t got = fd < 0 ? -1 : pread(fd, text, size - 1, 0);
    text[got > 0 ? got : 0] = '\0';
    return got > 0;
}

static bool slurp_path(const char *path, char *text, size_t size)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    bool good = slurp(fd, text, size);
    if (fd >= 0) close(fd);
    return good;
}

static bool identify(int pid, struct identity *who)
{
    char path[64], text[1024];
    *who = (struct identity){.began = 0};
    snprintf(path, sizeof path, "/proc/%d/stat", pid);
    if (!slurp_path("/proc/sys/kernel/random/boot_id", who->boot,
                    sizeof who->boot))
        return false;
    who->boot[strcspn(who->boot, "\n")] = '\0';
    if (!slurp_path(path, text, sizeof text)) return false;
    char *at = strrchr(text, ')'); /* the name may have blanks */
    for (int field = 2; at && field < 22; field++) at = strchr(at + 1, ' ');
    if (!at) return false;
    who->began = strtoull(at + 1, NULL, 10);
    return true;
}

static bool is_same(const struct identity *a, const struct identity *b)
{
    return a->began == b->began && strcmp(a->boot, b->boot) == 0;
}

/* Lines that are not whole do not count: they are being written. */
static bool state_parse(struct state *s, char *text)
{
    *s = (struct state){.pid = 0};
    char *end = strrchr(text, '\n');
    if (!end || strncmp(text, HEAD "\n", sizeof HEAD) != 0) return false;
    *end = '\0';
    for (char *at = text; at; at = strchr(at, '\n')) {
        at += *at == '\n';
        (void)sscanf(at, "process %d %llu %39[0-9a-f-]", &s->pid, &s->who.began,
                     s->who.boot);
        if (sscanf(at, "ended %d", &s->status) == 1) s->ended = true;
    }
    return s->pid > 0 && *s->who.boot && s->status >= 0 && s->status < 256;
}

/* Ours, and nobody else can have written it. */
static bool is_trusted(int fd)
{
    struct stat info;
    return fstat(fd, &info) == 0 && S_ISREG(info.st_mode) &&
           info.st_uid == geteuid() && (info.st_mode & 022) == 0;
}

static bool state_read(const char *file, struct state *s, char *line)
{
    char text[STATE_SIZE_MAX];
    int fd = open(file, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    if (fd < 0) return say(line, "%s: %s", file, strerror(errno));
    bool trusted = is_trusted(fd);
    bool good = trusted && slurp(fd, text, sizeof text) && state_parse(s, text);
    close(fd);
    if (good) return true;
    return say(line,
               trusted ? "%s is not the state of a job"
                       : "%s is not a file that only this user can write",
               file);
}

static bool is_running(const struct state *s)
{
    struct identity now;
    return !s->ended && identify(s->pid, &now) && is_same(&now, &s->who);
}

/* ------------------------------------------------------------------ detach */

static int create(const char *file, const char *suffix)
{
    char path[PATH_MAX + 8];
    snprintf(path, sizeof path, "%s%s", file, suffix);
    (void)unlink(path); /* of a former job */
    return open(path, O_RDWR | O_CREAT | O_EXCL | O_APPEND | O_CLOEXEC, 0600);
}

static bool file_choose(char *path, const char *file, int pid, char *line)
{
    const char *folder = getenv("XDG_RUNTIME_DIR");
    if (file) {
        snprintf(path, PATH_MAX - 8, "%s", file);
        return true;
    }
    if (!folder || *folder == '\0')
        return say(line, "XDG_RUNTIME_DIR is not set: --state FILE says where "
                         "the state of the job is to be");
    snprintf(path, PATH_MAX - 8, "%s/" PREFIX "%d" SUFFIX, folder, pid);
    return true;
}

static bool is_free(const char *path, char *line)
{
    struct state s;
    char ignored[MESSAGE_SIZE];
    if (access(path, F_OK) != 0) return true;
    if (!state_read(path, &s, ignored))
        return say(line, "%s is there, and is not the state of a job", path);
    if (!is_running(&s)) return true;
    return say(line, "%s: that job runs, as process %d", path, s.pid);
}

/* In the child, whose output goes to files from here on. */
static bool begin_session(struct detached *d, const char *path)
{
    struct identity who;
    int out = create(path, ".out");
    int err = create(path, ".err");
    int null = descriptor_null();
    d->fd = create(path, "");
    if (out < 0 || err < 0 || null < 0 || d->fd < 0) return false;
    if (setsid() < 0 || !identify(getpid(), &who)) return false;
    dup2(null, 0);
    dup2(out, 1);
    dup2(err, 2);
    close(out);
    close(err);
    if (null > 2) close(null);
    detach_note(d, HEAD "\nprocess %d %llu %s", (int)getpid(), who.began,
                who.boot);
    return true;
}

/* The child tells by a byte that its state file is there. */
enum detach_result detach_begin(struct detached *d, const char *file,
                                char line[static MESSAGE_SIZE])
{
    char path[PATH_MAX], told = 0;
    int ends[2];
    d->fd = -1;
    if (descriptor_pipe(ends) != 0 || fflush(NULL) != 0) {
        say(line, "--detach: %s", strerror(errno));
        return DETACH_FAILED;
    }
    pid_t pid = fork();
    if (pid == 0) {
        close(ends[0]);
        bool good =
            file_choose(path, file, getpid(), line) && is_free(path, line);
        if (good && !(good = begin_session(d, path)))
            say(line, "%s: %s", path, strerror(errno));
        else if (good)
            say(line,
                "the job runs as process %d; pccl-master --attach "
                "--state %s",
                (int)getpid(), path);
        ssize_t ignored = write(ends[1], good ? "+" : "-", 1);
        ignored = write(ends[1], line, strlen(line));
        (void)ignored;
        close(ends[1]);
        if (!good) _exit(EXIT_FAILURE);
        return DETACH_CHILD;
    }
    close(ends[1]);
    size_t got = 0;
    if (pid > 0 && read(ends[0], &told, 1) == 1) {
        ssize_t size;
        while (got < MESSAGE_SIZE - 1 &&
               (size = read(ends[0], line + got, MESSAGE_SIZE - 1 - got)) > 0)
            got += (size_t)size;
    }
    line[got] = '\0';
    close(ends[0]);
    if (told == 0) say(line, "--detach: the launcher did not start");
    return told == '+' ? DETACH_PARENT : DETACH_FAILED;
}

void detach_note(const struct detached *d, const char *format, ...)
{
    char text[STATE_SIZE_MAX / 4];
    va_list args;
    if (d->fd < 0) return;
    va_start(args, format);
    int size = vsnprintf(text, sizeof text - 1, format, args);
    va_end(args);
    if (size < 0 || (size_t)size > sizeof text - 2) return;
    text[size++] = '\n';
    ssize_t ignored = write(d->fd, text, (size_t)size); /* one write: whole */
    (void)ignored;
}

/* ------------------------------------------------------------------ attach */

static bool file_find(char *path, char *line)
{
    const char *folder = getenv("XDG_RUNTIME_DIR");
    DIR *dir = folder ? opendir(folder) : NULL;
    int count = 0;
    if (!dir)
        return say(line, "--attach: --state FILE names the job, as there is no "
                         "XDG_RUNTIME_DIR to look for it");
    for (const struct dirent *e; (e = readdir(dir));) {
        size_t length = strlen(e->d_name);
        if (strncmp(e->d_name, PREFIX, sizeof PREFIX - 1) != 0 ||
            length < sizeof SUFFIX ||
            strcmp(e->d_name + length - (sizeof SUFFIX - 1), SUFFIX) != 0)
            continue;
        if (count++ == 0)
            snprintf(path, PATH_MAX - 8, "%s/%s", folder, e->d_name);
    }
    closedir(dir);
    if (count == 1) return true;
    return say(line,
               count ? "%d jobs have a state in %s: --state FILE names one"
                     : "%d jobs have a state in %s",
               count, folder);
}

/* False: nobody reads what is written here. */
static bool copy(int from, int to)
{
    char bytes[COPY_SIZE];
    for (ssize_t size; (size = read(from, bytes, sizeof bytes)) > 0;) {
        for (ssize_t done = 0; done < size;) {
            ssize_t n = write(to, bytes + done, (size_t)(size - done));
            if (n < 0 && errno != EINTR) return false;
            if (n > 0) done += n;
        }
    }
    return true;
}

struct follower {
    int process, changes, out, err;
};

static int open_beside(const char *file, const char *suffix, int changes)
{
    char path[PATH_MAX + 8];
    snprintf(path, sizeof path, "%s%s", file, suffix);
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    if (fd >= 0) (void)inotify_add_watch(changes, path, IN_MODIFY);
    return fd;
}

/* Until the process ends, of which nothing is read after that. */
static bool follow(struct follower *f)
{
    for (bool over = false;;) {
        char ignored[4096];
        struct pollfd wait[] = {{.fd = f->process, .events = POLLIN},
                                {.fd = f->changes, .events = POLLIN}};
        if (!copy(f->out, STDOUT_FILENO) || !copy(f->err, STDERR_FILENO))
            return false;
        if (over || f->process < 0) return true;
        if (poll(wait, ARRAY_COUNT(wait), -1) < 0 && errno != EINTR)
            return false;
        over = wait[0].revents != 0;
        if (wait[1].revents != 0)
            (void)!read(f->changes, ignored, sizeof ignored);
    }
}

int detach_follow(const char *file, char line[static MESSAGE_SIZE])
{
    char path[PATH_MAX];
    struct state s;
    *line = '\0';
    if (file)
        snprintf(path, PATH_MAX - 8, "%s", file);
    else if (!file_find(path, line))
        return EXIT_FAILURE;
    if (!state_read(path, &s, line)) return EXIT_FAILURE;
    struct follower f = {.changes = inotify_init1(IN_CLOEXEC | IN_NONBLOCK)};
    f.out = open_beside(path, ".out", f.changes);
    f.err = open_beside(path, ".err", f.changes);
    /* Its identity is checked when the number cannot go to another one. */
    f.process = (int)syscall(SYS_pidfd_open, s.pid, 0);
    if (f.process >= 0 && !is_running(&s)) {
        close(f.process);
        f.process = -1;
    }
    bool good = follow(&f);
    if (f.process >= 0) close(f.process);
    close(f.changes);
    if (f.out >= 0) close(f.out);
    if (f.err >= 0) close(f.err);
    if (!good) return EXIT_FAILURE;
    if (!state_read(path, &s, line)) return EXIT_FAILURE;
    if (s.ended) return s.status;
    say(line,
        "the launcher of that job, process %d, was killed; its ranks "
        "ended with it",
        s.pid);
    return EXIT_FAILURE;
}
