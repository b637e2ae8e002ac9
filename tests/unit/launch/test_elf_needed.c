/* test_elf_needed.c - the libraries that an executable needs, read from the
 * file: of this program, of damaged copies of it, of files of other kinds. */
#include "../../../src/launch/elf_needed.h"

#include <elf.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

static char *bytes;
static size_t size;
static char path[] = "/tmp/pccl-elf-XXXXXX";

static int read_self(void **state)
{
    (void)state;
    struct stat st;
    int fd = open("/proc/self/exe", O_RDONLY);
    if (fd < 0 || fstat(fd, &st) != 0) return -1;
    size = (size_t)st.st_size;
    bytes = malloc(size);
    if (!bytes || read(fd, bytes, size) != (ssize_t)size) return -1;
    close(fd);
    fd = mkstemp(path);
    if (fd < 0) return -1;
    close(fd);
    return 0;
}

static int forget(void **state)
{
    (void)state;
    free(bytes);
    return unlink(path);
}

static bool copy_needs(size_t length, const char *prefix)
{
    char name[64];
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    assert_int_equal(fwrite(bytes, 1, length, file), length);
    assert_int_equal(fclose(file), 0);
    return elf_needs(path, prefix, name, sizeof name);
}

static void test_whole(void **state)
{
    (void)state;
    char name[64] = "", little[5] = "";
    assert_true(elf_needs("/proc/self/exe", "libc.so", name, sizeof name));
    assert_string_equal(name, "libc.so.6");
    assert_true(elf_needs("/proc/self/exe", "libc.so", little, sizeof little));
    assert_string_equal(little, "libc");
    assert_false(elf_needs("/proc/self/exe", "libmpi.so", name, sizeof name));
    assert_true(copy_needs(size, "libc.so"));
}

static void test_no_executable(void **state)
{
    (void)state;
    char name[64];
    assert_false(elf_needs("/no/such/file", "", name, sizeof name));
    assert_false(elf_needs("/", "", name, sizeof name));
    assert_false(elf_needs("/dev/null", "", name, sizeof name));
    assert_false(copy_needs(0, ""));
    assert_false(copy_needs(1, ""));
}

/* Cut anywhere: no answer, and no access outside of the file. */
static void test_cut(void **state)
{
    (void)state;
    for (size_t length = 1; length < 4096 && length < size; length += 7)
        (void)copy_needs(length, "libc.so");
    for (size_t length = 4096; length < size; length += size / 64 + 1)
        (void)copy_needs(length, "libc.so");
}

static void words_wrong(size_t from, size_t to, size_t length)
{
    static const uint64_t wrong[] = {0, 1, UINT64_MAX, UINT64_MAX / 2, 1 << 20};
    for (size_t at = from; at + 8 <= to; at += 8)
        for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
            char saved[8];
            memcpy(saved, bytes + at, sizeof saved);
            memcpy(bytes + at, &wrong[i], sizeof saved);
            (void)copy_needs(length, "libc.so");
            memcpy(bytes + at, saved, sizeof saved);
        }
}

/* Any one word of the headers and of the dynamic section is wrong. */
static void test_wrong_words(void **state)
{
    (void)state;
    Elf64_Ehdr header;
    Elf64_Phdr segment = {0};
    memcpy(&header, bytes, sizeof header);
    size_t end = header.e_phoff;
    for (int i = 0; i < header.e_phnum && segment.p_type != PT_DYNAMIC; i++) {
        memcpy(&segment, bytes + end, sizeof segment);
        end += sizeof segment;
    }
    assert_int_equal(segment.p_type, PT_DYNAMIC);
    size_t length = segment.p_offset + segment.p_filesz;
    assert_true(copy_needs(length, "libc.so"));
    words_wrong(EI_NIDENT, end, length);
    words_wrong(segment.p_offset, length, length);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_whole), cmocka_unit_test(test_no_executable),
        cmocka_unit_test(test_cut), cmocka_unit_test(test_wrong_words)};
    return cmocka_run_group_tests(tests, read_self, forget);
}
