/* elf_needed.c - reads the dynamic section of an executable. Every offset and
 * size of the file is checked against its length. */
#include "elf_needed.h"

#include <elf.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

struct image {
    const unsigned char *bytes;
    size_t size;
};

/* Copies a struct at an offset; false: the file ends before. */
static bool take(const struct image *image, size_t at, void *out, size_t size)
{
    if (at > image->size || size > image->size - at) return false;
    memcpy(out, image->bytes + at, size);
    return true;
}

static bool header_read(const struct image *image, Elf64_Ehdr *header)
{
    const unsigned char order =
        __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__ ? ELFDATA2LSB : ELFDATA2MSB;
    return take(image, 0, header, sizeof *header) &&
           memcmp(header->e_ident, ELFMAG, SELFMAG) == 0 &&
           header->e_ident[EI_CLASS] == ELFCLASS64 &&
           header->e_ident[EI_DATA] == order &&
           header->e_phentsize == sizeof(Elf64_Phdr);
}

static bool segment_read(const struct image *image, const Elf64_Ehdr *header,
                         int i, Elf64_Phdr *segment)
{
    size_t at = (size_t)header->e_phoff + (size_t)i * sizeof *segment;
    return header->e_phoff <= image->size &&
           take(image, at, segment, sizeof *segment);
}

/* Offset in the file of an address; false: no segment has it. */
static bool offset_of(const struct image *image, const Elf64_Ehdr *header,
                      Elf64_Addr address, size_t *offset)
{
    Elf64_Phdr segment;
    for (int i = 0; i < header->e_phnum; i++) {
        if (!segment_read(image, header, i, &segment)) return false;
        if (segment.p_type != PT_LOAD || address < segment.p_vaddr ||
            address - segment.p_vaddr >= segment.p_filesz)
            continue;
        *offset = (size_t)(segment.p_offset + (address - segment.p_vaddr));
        return *offset < image->size;
    }
    return false;
}

/* The i-th entry of the dynamic section; false: there is none. */
static bool entry_read(const struct image *image, const Elf64_Phdr *dynamic,
                       size_t i, Elf64_Dyn *entry)
{
    if (dynamic->p_offset > image->size ||
        i >= dynamic->p_filesz / sizeof *entry)
        return false;
    return take(image, (size_t)dynamic->p_offset + i * sizeof *entry, entry,
                sizeof *entry) &&
           entry->d_tag != DT_NULL;
}

static bool needed_find(const struct image *image, const Elf64_Ehdr *header,
                        const Elf64_Phdr *dynamic, const char *prefix,
                        char *name, size_t size)
{
    Elf64_Dyn entry;
    size_t strings = 0;
    for (size_t i = 0; entry_read(image, dynamic, i, &entry); i++)
        if (entry.d_tag == DT_STRTAB &&
            !offset_of(image, header, entry.d_un.d_ptr, &strings))
            return false;
    for (size_t i = 0; strings && entry_read(image, dynamic, i, &entry); i++) {
        if (entry.d_tag != DT_NEEDED ||
            entry.d_un.d_val >= image->size - strings)
            continue;
        size_t at = strings + (size_t)entry.d_un.d_val;
        const char *text = (const char *)image->bytes + at;
        if (!memchr(text, '\0', image->size - at)) continue;
        if (strncmp(text, prefix, strlen(prefix)) != 0) continue;
        snprintf(name, size, "%s", text);
        return true;
    }
    return false;
}

static bool image_search(const struct image *image, const char *prefix,
                         char *name, size_t size)
{
    Elf64_Ehdr header;
    Elf64_Phdr segment;
    if (!header_read(image, &header)) return false;
    for (int i = 0; i < header.e_phnum; i++) {
        if (!segment_read(image, &header, i, &segment)) return false;
        if (segment.p_type == PT_DYNAMIC)
            return needed_find(image, &header, &segment, prefix, name, size);
    }
    return false;
}

bool elf_needs(const char *file, const char *prefix, char *name, size_t size)
{
    struct stat st;
    int fd = open(file, O_RDONLY | O_CLOEXEC);
    if (fd < 0) return false;
    bool found = false;
    if (fstat(fd, &st) == 0 && S_ISREG(st.st_mode) && st.st_size > 0) {
        struct image image = {.size = (size_t)st.st_size};
        void *map = mmap(NULL, image.size, PROT_READ, MAP_PRIVATE, fd, 0);
        image.bytes = map;
        if (map != MAP_FAILED) {
            found = image_search(&image, prefix, name, size);
            munmap(map, image.size);
        }
    }
    close(fd);
    return found;
}
