/* program_path.h - where a program is. */
#ifndef PCCL_LAUNCH_PROGRAM_PATH_H
#define PCCL_LAUNCH_PROGRAM_PATH_H

/* Path of a program: the name itself if it has a slash, otherwise the first
 * executable of that name in first (may be NULL), then in path. The caller
 * frees it; NULL: see errno. */
char *program_find(const char *program, const char *first, const char *path);

#endif
