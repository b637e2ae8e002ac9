/* fuzz_elf.c - an executable of anybody's making, which the launcher asks for
 * the libraries that it needs: any bytes, and tables that are nearly right. */
#include "fuzz.h"

#include "../../src/launch/elf_needed.h"

#include <assert.h>
#include <elf.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { ENTRIES = 4, STRINGS = 32 };

struct file {
    Elf64_Ehdr header;
    Elf64_Phdr segments[3];
    Elf64_Dyn entries[ENTRIES];
    char strings[STRINGS];
};

static void make(struct file *f, struct fuzz_input *in)
{
    const uint64_t base = 0x400000;
    const size_t strings = offsetof(struct file, strings);
    memset(f, 0, sizeof *f);
    memcpy(f->header.e_ident, ELFMAG, SELFMAG);
    f->header.e_ident[EI_CLASS] = ELFCLASS64;
    f->header.e_ident[EI_DATA] =
        __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__ ? ELFDATA2LSB : ELFDATA2MSB;
    f->header.e_phoff = offsetof(struct file, segments);
    f->header.e_phentsize = sizeof f->segments[0];
    f->header.e_phnum = 3;
    f->segments[1] =
        (Elf64_Phdr){.p_type = PT_LOAD, .p_vaddr = base, .p_filesz = sizeof *f};
    f->segments[2] = (Elf64_Phdr){.p_type = PT_DYNAMIC,
                                  .p_offset = offsetof(struct file, entries),
                                  .p_filesz = sizeof f->entries};
    f->entries[0].d_tag = DT_STRTAB;
    f->entries[0].d_un.d_ptr = base + strings;
    for (int i = 1; i < ENTRIES; i++) {
        f->entries[i].d_tag = DT_NEEDED;
        f->entries[i].d_un.d_val = fuzz_u8(in) % STRINGS;
    }
    static const char names[] = "\0libmpi.so.12\0libc.so.6\0lib";
    memcpy(f->strings, names, sizeof names);
    /* Numbers of 8 bytes at any place, near the end of something. */
    while (in->left > 3) {
        uint8_t at = fuzz_u8(in);
        uint64_t value = fuzz_u16(in) - (uint64_t)128;
        size_t place = at * 4u % (sizeof *f - sizeof value);
        memcpy((char *)f + place, &value, fuzz_below(in, 8) + 1);
    }
}

static void ask(const void *bytes, size_t size)
{
    char path[64], name[16] = "";
    int fd = memfd_create("elf", MFD_CLOEXEC);
    assert(fd >= 0);
    ssize_t done = write(fd, bytes, size);
    assert(done == (ssize_t)size);
    (void)snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    if (elf_needs(path, "libmpi", name, sizeof name))
        assert(strncmp(name, "libmpi", 6) == 0 && strlen(name) < sizeof name);
    close(fd);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    struct fuzz_input in = {bytes, size};
    struct file f;
    uint8_t cut = fuzz_u8(&in);
    make(&f, &in);
    ask(&f, cut < 200 ? sizeof f : sizeof f - cut);
    ask(bytes, size);
    return 0;
}
