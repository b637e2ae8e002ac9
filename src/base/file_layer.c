/* file_layer.c - file_layer.h by POSIX. */
#include "file_layer.h"

#include "quiet_write.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

static int directory_of(void *user)
{
    return (int)(intptr_t)user;
}

static int list(void *user, void (*seen)(void *to, const char *name), void *to)
{
    /* An open directory has one position: this list gets one of its own. */
    int fd =
        openat(directory_of(user), ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0) return errno;
    DIR *dir = fdopendir(fd);
    if (!dir) {
        int error = errno;
        close(fd);
        return error;
    }
    struct dirent *entry;
    errno = 0;
    while ((entry = readdir(dir)) != NULL) seen(to, entry->d_name);
    int error = errno;
    (void)closedir(dir);
    return error;
}

static int create_as(void *user, const char *name, mode_t mode, int *file)
{
    enum { TRIES = 8 };
    struct stat info;
    for (int i = 0; i < TRIES; i++) {
        *file =
            openat(directory_of(user), name,
                   O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, mode);
        if (*file < 0) return errno;
        /* It ends with the process. Without locks nothing is known of the file.
         * Somebody who has just looked at it has a lock for a moment, and has
         * perhaps taken it for one that was left. */
        while (flock(*file, LOCK_EX) != 0 && errno == EINTR) continue;
        if (fstat(*file, &info) == 0 && info.st_nlink > 0) return 0;
        close(*file);
    }
    return EBUSY;
}

static bool is_left(void *user, const char *name)
{
    int fd = openat(directory_of(user), name,
                    O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0) return false;
    bool left = flock(fd, LOCK_SH | LOCK_NB) == 0;
    close(fd);
    return left;
}

static int create(void *user, const char *name, int *file)
{
    return create_as(user, name, 0666, file);
}

static int create_private(void *user, const char *name, int *file)
{
    return create_as(user, name, 0600, file);
}

static int open_file(void *user, const char *name, int *file, uint64_t *size)
{
    struct stat info;
    *file = openat(directory_of(user), name, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (*file < 0) return errno;
    int error = fstat(*file, &info) < 0 ? errno : 0;
    if (error == 0 && !S_ISREG(info.st_mode)) error = EINVAL;
    if (error != 0) close(*file);
    *size = error == 0 ? (uint64_t)info.st_size : 0;
    return error;
}

static int write_file(void *user, int file, const void *bytes, size_t size)
{
    (void)user;
    return quiet_write_all(file, bytes, size);
}

static int read_file(void *user, int file, void *bytes, size_t size,
                     uint64_t offset)
{
    char *at = bytes;
    (void)user;
    while (size > 0) {
        ssize_t n = pread(file, at, size, (off_t)offset);
        if (n < 0 && errno == EINTR) continue;
        if (n < 0) return errno;
        if (n == 0) return ENODATA;
        at += n;
        size -= (size_t)n;
        offset += (uint64_t)n;
    }
    return 0;
}

static int sync_file(void *user, int file)
{
    (void)user;
    return fsync(file) < 0 ? errno : 0;
}

static int close_file(void *user, int file)
{
    (void)user;
    return close(file) < 0 && errno != EINTR ? errno : 0;
}

static int rename_file(void *user, const char *from, const char *to)
{
    int fd = directory_of(user);
    return renameat(fd, from, fd, to) < 0 ? errno : 0;
}

static int remove_file(void *user, const char *name)
{
    return unlinkat(directory_of(user), name, 0) < 0 ? errno : 0;
}

static int sync_names(void *user)
{
    /* Some file systems have no fsync of a directory. */
    if (fsync(directory_of(user)) == 0 || errno == EINVAL) return 0;
    return errno;
}

static void end(void *user)
{
    close(directory_of(user));
}

int file_layer_open_private(struct file_layer *files, const char *directory)
{
    int error = file_layer_open(files, directory);
    if (error == 0) files->create = create_private;
    return error;
}

int file_layer_open(struct file_layer *files, const char *directory)
{
    int fd = open(directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0) return errno;
    *files = (struct file_layer){.user = (void *)(intptr_t)fd,
                                 .list = list,
                                 .create = create,
                                 .is_left = is_left,
                                 .open = open_file,
                                 .write = write_file,
                                 .read = read_file,
                                 .sync = sync_file,
                                 .close = close_file,
                                 .rename = rename_file,
                                 .remove = remove_file,
                                 .sync_names = sync_names,
                                 .end = end};
    return 0;
}
