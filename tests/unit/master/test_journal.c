/* test_journal.c - tests of the coordinator's journal: stopped, failed and
 * without power at every step; every byte flipped; every length. */
#include "../../../src/master/succession/journal.h"

#include "../checkpoint/memory_disk.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define NAME "run.journal"

enum { RECORDS = 5, SIZE_MAX_ = 64, STEPS_MAX = 200 };

static char error[JOURNAL_ERROR_SIZE];

/* The record number i, of a length of its own. */
static size_t record(int i, uint8_t *to)
{
    size_t size = (size_t)(7 * i) % SIZE_MAX_ + 1;
    memset(to, 'a' + i, size);
    return size;
}

/* Which record that is; 0: none. */
static int which(const struct journal_found *found)
{
    uint8_t bytes[SIZE_MAX_ + 1];
    if (!found->any) return 0;
    for (int i = 1; i <= RECORDS + 1; i++) {
        size_t size = record(i, bytes);
        if (found->size == size && memcmp(found->bytes, bytes, size) == 0)
            return i;
    }
    fail_msg("the journal has a record that nobody wrote");
    return 0;
}

static struct journal *open_on(struct memory_disk *d,
                               struct journal_found *found)
{
    struct file_layer files = disk_layer(d);
    error[0] = '\0';
    return journal_open(&files, NAME, 0x5a17 + (uint64_t)d->steps, found,
                        error);
}

static bool append(struct journal *j, int i)
{
    uint8_t bytes[SIZE_MAX_ + 1];
    size_t size = record(i, bytes);
    return journal_append(j, bytes, size, error);
}

/* Writes the records from `first` on; returns the last that was confirmed. */
static int write_all(struct memory_disk *d, int first)
{
    struct journal_found found;
    int confirmed = first - 1;
    struct journal *j = open_on(d, &found);
    if (!j) return confirmed;
    for (int i = first; i <= RECORDS; i++)
        if (append(j, i)) confirmed = i;
    journal_close(j);
    return confirmed;
}

/* The journal on that disk has the record `least` or, as one that was not
 * confirmed, the one after it. */
static void expect(struct memory_disk *d, int least)
{
    struct journal_found found;
    struct journal *j = open_on(d, &found);
    if (!j) fail_msg("refused: %s", error);
    int have = which(&found);
    if (have != least && have != least + 1)
        fail_msg("record %d instead of %d", have, least);
    assert_true(append(j, RECORDS + 1)); /* and it can be written */
    journal_close(j);
    j = open_on(d, &found);
    assert_non_null(j);
    assert_int_equal(which(&found), RECORDS + 1);
    journal_close(j);
}

static void test_what_was_written_is_read(void **state)
{
    (void)state;
    struct memory_disk d;
    disk_open(&d);
    assert_int_equal(write_all(&d, 1), RECORDS);
    assert_int_equal(disk_count(&d), 1);
    expect(&d, RECORDS);
    disk_close(&d);
}

/* The writer dies at each step, in the middle of a write; then it is gone, or
 * the power is. What was confirmed is there. */
static void test_dies_at_every_step(void **state)
{
    (void)state;
    long dies = 0;
    for (bool over = false; !over; dies++) {
        struct memory_disk d, after;
        disk_open(&d);
        d.dies = dies;
        int confirmed = write_all(&d, 1);
        over = d.steps <= dies;
        disk_after_kill(&d, &after);
        expect(&after, confirmed);
        disk_close(&after);
        for (unsigned changes = 0; changes < 1u << d.change_count; changes++) {
            disk_after_power(&d, &after, changes, false);
            expect(&after, confirmed);
            disk_close(&after);
            disk_after_power(&d, &after, changes, true);
            expect(&after, confirmed);
            disk_close(&after);
        }
        disk_close(&d);
        assert_true(dies < STEPS_MAX);
    }
    assert_true(dies > 3 * RECORDS);
}

/* A step fails, as on a full disk; those after it do not. No record is
 * confirmed that is not there, and the next one repairs the file. */
static void test_fails_at_every_step(void **state)
{
    (void)state;
    static const int errors[] = {ENOSPC, EIO, EDQUOT, EROFS, ENOENT, ESTALE};
    for (size_t e = 0; e < ARRAY_COUNT(errors); e++) {
        long fails = 0;
        for (bool over = false; !over; fails++) {
            struct memory_disk d, after;
            disk_open(&d);
            d.fails = fails;
            d.error = errors[e];
            int confirmed = write_all(&d, 1);
            over = d.steps <= fails;
            assert_true(confirmed == RECORDS || confirmed == RECORDS - 1);
            disk_after_power(&d, &after, 0, false);
            expect(&after, confirmed);
            disk_close(&after);
            disk_close(&d);
            assert_true(fails < STEPS_MAX);
        }
    }
}

static void test_a_full_disk_is_told(void **state)
{
    (void)state;
    struct memory_disk d;
    struct journal_found found;
    disk_open(&d);
    struct journal *j = open_on(&d, &found);
    assert_non_null(j);
    assert_true(append(j, 1));
    d.fails = d.steps + 1;
    d.error = ENOSPC;
    assert_false(append(j, 2));
    assert_string_equal(error,
                        NAME " cannot be written: No space left on device");
    d.fails = d.steps + 1; /* a new file finds no room either */
    assert_false(append(j, 2));
    assert_non_null(strstr(error, NAME ".new cannot be created: No space"));
    assert_true(append(j, 2));
    journal_close(j);
    expect(&d, 2);
    disk_close(&d);
}

/* -------------------------------------------------------------------- bytes */

/* The file after the last record, and a copy. */
static uint8_t *file_of(size_t *size)
{
    struct memory_disk d;
    disk_open(&d);
    assert_int_equal(write_all(&d, 1), RECORDS);
    const struct disk_file *f = NULL;
    for (int i = 0; i < DISK_NAMES; i++)
        if (strcmp(d.names[i].text, NAME) == 0) f = &d.files[d.names[i].file];
    assert_non_null(f);
    uint8_t *copy = malloc(f->size);
    assert_non_null(copy);
    memcpy(copy, f->bytes, f->size);
    *size = f->size;
    disk_close(&d);
    return copy;
}

/* A file with a flipped bit is refused, or has the last record: never an older
 * one. */
static void test_every_flipped_bit(void **state)
{
    (void)state;
    struct journal_found found;
    size_t size;
    uint8_t *bytes = file_of(&size);
    assert_null(journal_read(bytes, size, &found));
    assert_int_equal(which(&found), RECORDS);
    assert_false(found.cut);
    int refused = 0;
    for (size_t at = 0; at < size; at++) {
        for (int bit = 0; bit < 8; bit++) {
            bytes[at] ^= (uint8_t)(1 << bit);
            if (journal_read(bytes, size, &found))
                refused++;
            else
                assert_int_equal(which(&found), RECORDS);
            bytes[at] ^= (uint8_t)(1 << bit);
        }
    }
    /* All but those of the last mark. */
    assert_int_equal(refused, 8 * (size - 24));
    free(bytes);
}

/* The file ends anywhere: the last whole record, or a refusal. */
static void test_every_length(void **state)
{
    (void)state;
    struct journal_found found;
    size_t size;
    uint8_t *bytes = file_of(&size);
    int last = 0;
    for (size_t end = 0; end <= size; end++) {
        uint8_t *exact = malloc(end > 0 ? end : 1); /* for sanitizers */
        assert_non_null(exact);
        memcpy(exact, bytes, end);
        const char *fault = journal_read(exact, end, &found);
        if (end == 0) assert_non_null(strstr(fault, "is empty"));
        if (fault) assert_int_equal(last, 0);
        if (!fault) {
            int have = which(&found);
            assert_true(have == last || have == last + 1);
            last = have;
        }
        free(exact);
    }
    assert_int_equal(last, RECORDS);
    free(bytes);
}

/* A write that was lost: zeros, or what was there before, behind what is
 * whole. */
static void test_lost_writes(void **state)
{
    (void)state;
    struct journal_found found;
    size_t size;
    uint8_t *bytes = file_of(&size);
    uint8_t *longer = calloc(1, size + 4096);
    assert_non_null(longer);
    memcpy(longer, bytes, size);
    assert_null(journal_read(longer, size + 4096, &found));
    assert_int_equal(which(&found), RECORDS);
    assert_true(found.cut);
    /* Blocks of an older file of that name: another salt. */
    struct memory_disk d;
    disk_open(&d);
    assert_int_equal(write_all(&d, 1), RECORDS);
    assert_int_equal(write_all(&d, 2), RECORDS);
    const struct disk_file *f = &d.files[d.file_count - 1];
    memcpy(longer + size, f->bytes + 32, 200);
    assert_null(journal_read(longer, size + 200, &found));
    assert_int_equal(which(&found), RECORDS);
    disk_close(&d);
    free(longer);
    free(bytes);
}

static void refused(const void *bytes, size_t size, const char *why)
{
    struct memory_disk d;
    struct journal_found found;
    disk_open(&d);
    struct file_layer files = disk_layer(&d);
    int file;
    assert_int_equal(files.create(&d, NAME, &file), 0);
    assert_int_equal(files.write(&d, file, bytes, size), 0);
    assert_null(open_on(&d, &found));
    if (!strstr(error, why)) fail_msg("%s", error);
    assert_int_equal(strncmp(error, NAME " ", sizeof NAME), 0);
    assert_int_equal(d.files[file].size, size); /* as it was */
    disk_close(&d);
}

static void test_what_is_no_journal_is_left_alone(void **state)
{
    (void)state;
    size_t size;
    uint8_t *bytes = file_of(&size);
    static const char text[] = "My notes, which nobody may overwrite. ........";
    refused("", 0, "is empty; remove it");
    refused(text, sizeof text, "is not a journal of pccl-master");
    refused(bytes, 31, "is not a journal");
    refused(bytes, 40, "is damaged in its first record");
    bytes[9] ^= 1;
    refused(bytes, size, "is damaged in its head");
    free(bytes);
}

/* ------------------------------------------------------------------- a path */

static void test_a_path(void **state)
{
    (void)state;
    char folder[] = "/tmp/pccl-journal-XXXXXX";
    char path[64], lock[80];
    struct journal_found found;
    struct stat info;
    assert_non_null(mkdtemp(folder));
    snprintf(path, sizeof path, "%s/j", folder);
    snprintf(lock, sizeof lock, "%s.lock", path);
    struct journal *j = journal_open_path(path, &found, error);
    assert_non_null(j);
    assert_false(found.any);
    assert_true(append(j, 1));
    assert_int_equal(stat(path, &info), 0);
    assert_int_equal(info.st_mode & 0777, 0600);
    assert_null(journal_open_path(path, &found, error));
    assert_non_null(strstr(error, "is in use by another coordinator"));
    journal_close(j);
    j = journal_open_path(path, &found, error);
    assert_non_null(j);
    assert_int_equal(which(&found), 1);
    journal_close(j);
    unlink(path);
    unlink(lock);
    rmdir(folder);
    assert_null(journal_open_path(path, &found, error));
    assert_non_null(strstr(error, "No such file or directory"));
    assert_null(journal_open_path("/", &found, error));
    assert_non_null(strstr(error, "is no name of a file"));
}

/* It begins anew before it is too large, and stays readable. */
static void test_many_records(void **state)
{
    (void)state;
    enum { LARGE = 300000, COUNT = 40 };
    struct memory_disk d;
    struct journal_found found;
    uint8_t *bytes = malloc(LARGE);
    assert_non_null(bytes);
    disk_open(&d);
    struct journal *j = open_on(&d, &found);
    assert_non_null(j);
    for (int i = 0; i < COUNT; i++) {
        memset(bytes, i, LARGE);
        assert_true(journal_append(j, bytes, LARGE, error));
    }
    assert_false(journal_append(j, bytes, JOURNAL_RECORD_MAX + 1, error));
    assert_non_null(strstr(error, "is too large"));
    journal_close(j);
    for (int i = 0; i < d.file_count; i++)
        assert_true(d.files[i].size <= JOURNAL_FILE_MAX + LARGE);
    j = open_on(&d, &found);
    assert_non_null(j);
    assert_int_equal(found.size, LARGE);
    assert_int_equal(found.seq, COUNT);
    assert_int_equal(found.bytes[0], COUNT - 1);
    journal_close(j);
    disk_close(&d);
    free(bytes);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_what_was_written_is_read),
        cmocka_unit_test(test_dies_at_every_step),
        cmocka_unit_test(test_fails_at_every_step),
        cmocka_unit_test(test_a_full_disk_is_told),
        cmocka_unit_test(test_every_flipped_bit),
        cmocka_unit_test(test_every_length),
        cmocka_unit_test(test_lost_writes),
        cmocka_unit_test(test_what_is_no_journal_is_left_alone),
        cmocka_unit_test(test_a_path),
        cmocka_unit_test(test_many_records),
    };
    return cmocka_run_group_tests_name("journal/journal", tests, NULL, NULL);
}
