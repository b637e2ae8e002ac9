/* detach.c - see detach.h. */
#include "detach.h"

#include "descriptor.h"
#include "state_file.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/inotify.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { LINE_MAX_SIZE = 1024, COPY_SIZE = 16384 };

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
        return state_fault(
            line, "XDG_RUNTIME_DIR is not set: --state FILE says where "
                  "the state of the job is to be");
    snprintf(path, PATH_MAX - 8, "%s/" STATE_PREFIX "%d" STATE_SUFFIX, folder,
             pid);
    return true;
}

static bool is_free(const char *path, char *line)
{
    struct state s;
    char ignored[MESSAGE_SIZE];
    if (access(path, F_OK) != 0) return true;
    if (!state_read(path, &s, ignored))
        return state_fault(line, "%s is there, and is not the state of a job",
                           path);
    if (!s.ended && s.runs)
        return state_fault(line, "%s: that job runs, as process %d", path,
                           s.launcher);
    return true;
}

/* In the child, whose output goes to files from here on. */
static bool begin_session(struct detached *d, const char *path)
{
    int out = create(path, ".out");
    int err = create(path, ".err");
    int null = descriptor_null();
    d->fd = create(path, "");
    if (out < 0 || err < 0 || null < 0 || d->fd < 0) return false;
    if (flock(d->fd, LOCK_EX | LOCK_NB) != 0 || setsid() < 0) return false;
    dup2(null, 0);
    dup2(out, 1);
    dup2(err, 2);
    close(out);
    close(err);
    if (null > 2) close(null);
    detach_note(d, STATE_HEAD);
    return true;
}

static void told_end(struct detached *d)
{
    if (d->told >= 0) close(d->told);
    d->told = -1;
}

/* A byte says how it went, then comes the line. */
static void tell(struct detached *d, bool good, const char *line)
{
    ssize_t ignored = write(d->told, good ? "+" : "-", 1);
    ignored = write(d->told, line, strlen(line));
    (void)ignored;
    told_end(d);
}

void detach_tell(struct detached *d)
{
    char line[MESSAGE_SIZE];
    detach_note(d, "process %d", (int)getpid());
    state_fault(line,
                "the job runs as process %d; pccl-master --attach --state "
                "%s",
                (int)getpid(), d->path);
    tell(d, true, line);
}

void detach_end(struct detached *d)
{
    if (d->fd >= 0) close(d->fd);
    told_end(d);
    free(d->path);
    *d = (struct detached){-1, -1, NULL};
}

/* Of the child: whether it began, and what it says. */
static enum detach_result answer_read(int fd, char *line)
{
    size_t got = 0;
    ssize_t size;
    char told = 0;
    if (read(fd, &told, 1) == 1)
        while (got < MESSAGE_SIZE - 1 &&
               (size = read(fd, line + got, MESSAGE_SIZE - 1 - got)) > 0)
            got += (size_t)size;
    line[got] = '\0';
    if (told == 0) state_fault(line, "--detach: the launcher did not start");
    return told == '+' ? DETACH_PARENT : DETACH_FAILED;
}

enum detach_result detach_begin(struct detached *d, const char *file,
                                char line[static MESSAGE_SIZE])
{
    char path[PATH_MAX];
    int ends[2];
    *d = (struct detached){-1, -1, NULL};
    if (descriptor_pipe(ends) != 0 || fflush(NULL) != 0) {
        state_fault(line, "--detach: %s", strerror(errno));
        return DETACH_FAILED;
    }
    if (fork() == 0) {
        close(ends[0]);
        d->told = ends[1];
        bool good =
            file_choose(path, file, getpid(), line) && is_free(path, line);
        if (good && !(good = begin_session(d, path)))
            state_fault(line, "%s: %s", path, strerror(errno));
        if (!good) {
            tell(d, false, line);
            _exit(EXIT_FAILURE);
        }
        d->path = memory_text(path);
        return DETACH_CHILD;
    }
    close(ends[1]);
    enum detach_result result = answer_read(ends[0], line);
    close(ends[0]);
    return result;
}

void detach_note(const struct detached *d, const char *format, ...)
{
    char text[LINE_MAX_SIZE];
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
    const char *path;
    struct state state;
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

/* Until one of the files has changed or the process is over: true then. */
static bool wait_for(struct follower *f, int process)
{
    char ignored[4096];
    struct pollfd wait[] = {{.fd = process, .events = POLLIN},
                            {.fd = f->changes, .events = POLLIN}};
    if (poll(wait, ARRAY_COUNT(wait), -1) < 0) return errno != EINTR;
    if (wait[1].revents != 0) (void)!read(f->changes, ignored, sizeof ignored);
    return wait[0].revents != 0;
}

/* Until the launcher ends, of which nothing is read after that. False: nobody
 * reads what is written here. */
static bool follow(struct follower *f)
{
    for (bool over = false;;) {
        if (!copy(f->out, STDOUT_FILENO) || !copy(f->err, STDERR_FILENO))
            return false;
        if (over || f->process < 0) return true;
        over = wait_for(f, f->process);
    }
}

/* Of the launcher, for poll(2); -1: it is over. As long as it has its lock its
 * number cannot be another one's. */
static int hold(struct follower *f, char *line)
{
    int fd = (int)syscall(SYS_pidfd_open, f->state.launcher, 0);
    if (fd < 0 || (state_read(f->path, &f->state, line) && f->state.runs))
        return fd;
    close(fd);
    return -1;
}

static int follow_all(struct follower *f, char *line)
{
    f->process = f->state.ended ? -1 : hold(f, line);
    bool good = follow(f);
    if (f->process >= 0) close(f->process);
    if (!good || !state_read(f->path, &f->state, line)) return EXIT_FAILURE;
    if (!f->state.ended)
        state_fault(
            line,
            "the launcher of that job, process %d, was killed; its ranks "
            "ended with it",
            f->state.launcher);
    return f->state.ended ? f->state.status : EXIT_FAILURE;
}

int detach_follow(const char *file, char line[static MESSAGE_SIZE])
{
    char path[PATH_MAX];
    *line = '\0';
    if (file)
        snprintf(path, PATH_MAX - 8, "%s", file);
    else if (!state_find(path, line))
        return EXIT_FAILURE;
    struct follower f = {.path = path};
    if (!state_read(path, &f.state, line)) return EXIT_FAILURE;
    f.changes = inotify_init1(IN_CLOEXEC | IN_NONBLOCK);
    f.out = open_beside(path, ".out", f.changes);
    f.err = open_beside(path, ".err", f.changes);
    (void)inotify_add_watch(f.changes, path, IN_MODIFY);
    int status = follow_all(&f, line);
    close(f.changes);
    if (f.out >= 0) close(f.out);
    if (f.err >= 0) close(f.err);
    return status;
}
