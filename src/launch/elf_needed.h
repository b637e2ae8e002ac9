/* elf_needed.h - which shared libraries an executable asks for. */
#ifndef PCCL_LAUNCH_ELF_NEEDED_H
#define PCCL_LAUNCH_ELF_NEEDED_H

#include <stdbool.h>
#include <stddef.h>

/* Whether the file is an ELF executable of this machine's byte order that names
 * a library which begins with `prefix` among those it needs; its name goes to
 * *name*. Scripts, other formats and damaged files need none. */
bool elf_needs(const char *file, const char *prefix, char *name, size_t size);

#endif
