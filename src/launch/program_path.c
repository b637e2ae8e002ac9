/* program_path.c - see program_path.h. */
#include "program_path.h"

#include "launch_base.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static bool is_executable(const char *file, int *error)
{
    struct stat st;
    if (stat(file, &st) != 0) return false;
    if (S_ISREG(st.st_mode) && access(file, X_OK) == 0) return true;
    *error = EACCES;
    return false;
}

static char *search(const char *program, const char *path, int *error)
{
    while (path) {
        size_t length = strcspn(path, ":");
        char *file = length
                         ? memory_print("%.*s/%s", (int)length, path, program)
                         : memory_print("./%s", program);
        if (is_executable(file, error)) return file;
        free(file);
        path = path[length] ? path + length + 1 : NULL;
    }
    return NULL;
}

char *program_find(const char *program, const char *first, const char *path)
{
    if (strchr(program, '/')) return memory_text(program);
    int error = ENOENT;
    char *file = *program ? search(program, first, &error) : NULL;
    if (!file && *program)
        file = search(program, path ? path : "/usr/local/bin:/usr/bin:/bin",
                      &error);
    errno = error;
    return file;
}
