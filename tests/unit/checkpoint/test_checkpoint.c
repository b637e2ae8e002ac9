/* test_checkpoint.c - checkpoints on a disk in memory: whatever dies or fails
 * at whatever step, a load finds the former checkpoint or the new one, whole.
 */
#include "memory_disk.h"

#include "../../../src/base/dtype.h"
#include "../../../src/checkpoint/checkpoint.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { TENSORS = 3, LARGE = (1 << 20) + 4096 };

/* A state whose bytes follow from its revision; the first tensor is larger than
 * what is written at a time. */
struct sample {
    struct manifest m;
    struct checkpoint_data data[TENSORS];
    uint8_t *bytes[TENSORS];
};

static const struct manifest_tensor shape[TENSORS] = {
    {.name = "weights", .count = LARGE / 4, .dtype = DTYPE_F32},
    {.name = "a \"name\"\n", .count = 3, .dtype = DTYPE_U8, .free = true},
    {.name = "step", .count = 1, .dtype = DTYPE_I64},
};

static void sample_open(struct sample *s, uint64_t revision, uint64_t time_ns)
{
    s->m = (struct manifest){.revision = revision,
                             .time_ns = time_ns,
                             .group = 7,
                             .world = 2,
                             .count = TENSORS};
    s->m.tensors = malloc(sizeof shape);
    assert_non_null(s->m.tensors);
    memcpy(s->m.tensors, shape, sizeof shape);
    for (int i = 0; i < TENSORS; i++) {
        size_t size = (size_t)manifest_size(&shape[i]);
        s->bytes[i] = malloc(size);
        assert_non_null(s->bytes[i]);
        memset(s->bytes[i], (int)revision + i, size);
        s->data[i] = (struct checkpoint_data){.bytes = s->bytes[i]};
    }
}

static void sample_close(struct sample *s)
{
    for (int i = 0; i < TENSORS; i++) free(s->bytes[i]);
    manifest_free(&s->m);
}

static bool save(struct memory_disk *d, uint64_t revision, uint64_t time_ns,
                 struct checkpoint_error *error)
{
    struct file_layer files = disk_layer(d);
    struct sample s;
    uint64_t size = 0;
    sample_open(&s, revision, time_ns);
    bool good =
        checkpoint_write(&files, &s.m, s.data, 2, revision, &size, error);
    sample_close(&s);
    return good;
}

/* The revision that a load finds, whose bytes are right; 0: none. */
static uint64_t load_by(struct memory_disk *d, enum checkpoint_choice choice,
                        uint64_t value)
{
    struct file_layer files = disk_layer(d);
    struct checkpoint_error error = {0};
    struct sample s;
    uint64_t size, cut;
    sample_open(&s, 0, 0);
    bool good = checkpoint_read(&files, &s.m, s.data, choice, value, &size,
                                &cut, &error);
    if (!good && error.result != CHECKPOINT_NONE) fail_msg("%s", error.text);
    for (int i = 0; good && i < TENSORS; i++)
        for (uint64_t k = 0; k < manifest_size(&shape[i]); k++)
            if (s.bytes[i][k] != (uint8_t)((int)s.m.revision + i))
                fail_msg("tensor %d, byte %d is wrong", i, (int)k);
    uint64_t revision = good ? s.m.revision : 0;
    sample_close(&s);
    return revision;
}

static uint64_t load(struct memory_disk *d)
{
    return load_by(d, CHECKPOINT_CUT, 0);
}

/* Whatever can be chosen is whole. */
static void load_each(struct memory_disk *d)
{
    for (uint64_t i = 1; i <= 3; i++) {
        uint64_t found = load_by(d, CHECKPOINT_REVISION, i);
        assert_true(found == 0 || found == i);
    }
}

static void test_round_trip(void **state)
{
    (void)state;
    static struct memory_disk d;
    struct checkpoint_error error;
    disk_open(&d);
    assert_int_equal(load(&d), 0);
    for (uint64_t i = 1; i <= 5; i++) {
        assert_true(save(&d, i, 100 * i, &error));
        assert_int_equal(load(&d), i);
        assert_int_equal(disk_count(&d), i == 1 ? 2 : 4);
    }
    disk_close(&d);
}

static int states; /* of a disk that were looked at */

/* All that may be on the disk after the writer, or its host, has died. */
static void look_after_death(const struct memory_disk *d, bool done)
{
    static struct memory_disk left;
    disk_after_kill(d, &left);
    uint64_t killed = load(&left);
    states++;
    assert_true(killed == 2 || (killed == 1 && !done));
    disk_close(&left);
    for (unsigned set = 0; set >> d->change_count == 0; set++) {
        for (int more = 0; more < 2; more++) {
            disk_after_power(d, &left, set, more == 1);
            uint64_t lost = load(&left);
            states++;
            assert_true(lost == 2 || (lost == 1 && !done));
            disk_close(&left);
        }
    }
}

/* Who comes after a death saves as ever, and its remains go in time. */
static void go_on_after_death(const struct memory_disk *d)
{
    static struct memory_disk left;
    struct checkpoint_error error;
    disk_after_kill(d, &left);
    for (uint64_t i = 3; i <= 5; i++) {
        assert_true(save(&left, i, 100 * i, &error));
        assert_int_equal(load(&left), i);
    }
    assert_int_equal(disk_count(&left), 4);
    disk_close(&left);
}

static void test_death_at_every_step(void **state)
{
    (void)state;
    static struct memory_disk d;
    struct checkpoint_error error;
    bool done = false;
    long step = 0;
    for (; !done; step++) {
        disk_open(&d);
        assert_true(save(&d, 1, 100, &error));
        d.dies = d.steps + step;
        (void)save(&d, 2, 200, &error);
        done = d.steps <= d.dies;
        look_after_death(&d, done);
        go_on_after_death(&d);
        disk_close(&d);
    }
    print_message("%ld steps, %d states of the disk\n", step, states);
    assert_true(step > 12);
}

/* The disk has room for what is kept and for one more: whatever a writer has
 * left that died, the next save succeeds. */
static void test_death_on_a_small_disk(void **state)
{
    (void)state;
    static struct memory_disk d, left;
    struct checkpoint_error error;
    bool done = false;
    for (long step = 0; !done; step++) {
        disk_open(&d);
        for (uint64_t i = 1; i <= 2; i++)
            assert_true(save(&d, i, 100 * i, &error));
        size_t two = 0;
        for (int i = 0; i < d.file_count; i++) two += d.files[i].size;
        d.dies = d.steps + step;
        (void)save(&d, 3, 300, &error);
        done = d.steps <= d.dies;
        disk_after_kill(&d, &left);
        left.room = two + two / 2 + 1000;
        for (uint64_t i = 4; i <= 6; i++)
            if (!save(&left, i, 100 * i, &error)) fail_msg("%s", error.text);
        assert_int_equal(disk_count(&left), 4);
        disk_close(&left);
        disk_close(&d);
    }
}

static void save_revision_3(void *disk)
{
    struct memory_disk *d = disk;
    struct checkpoint_error error;
    d->meanwhile = NULL;
    assert_true(save(d, 3, 300, &error));
}

/* Nobody takes away what a writer has that lives, however long it takes. */
static void test_a_living_writer_keeps_its_files(void **state)
{
    (void)state;
    static struct memory_disk d;
    struct checkpoint_error error;
    bool reached = true;
    for (long step = 0; reached; step++) {
        disk_open(&d);
        assert_true(save(&d, 1, 100, &error));
        d.meanwhile = save_revision_3;
        d.meanwhile_at = d.steps + step;
        if (!save(&d, 2, 200, &error)) fail_msg("%s", error.text);
        reached = d.meanwhile == NULL;
        assert_int_equal(load_by(&d, CHECKPOINT_REVISION, 2), 2);
        disk_close(&d);
    }
}

/* The same while older ones are removed. */
static void test_death_while_removing(void **state)
{
    (void)state;
    static struct memory_disk d;
    static struct memory_disk left;
    struct checkpoint_error error;
    bool done = false;
    for (long step = 0; !done; step++) {
        disk_open(&d);
        for (uint64_t i = 1; i <= 2; i++)
            assert_true(save(&d, i, 100 * i, &error));
        d.dies = d.steps + step;
        (void)save(&d, 3, 300, &error);
        done = d.steps <= d.dies;
        for (unsigned set = 0; set >> d.change_count == 0; set++) {
            disk_after_power(&d, &left, set, false);
            assert_true(load(&left) >= 2);
            load_each(&left);
            disk_close(&left);
        }
        disk_close(&d);
    }
}

static void test_failure_of_every_step(void **state)
{
    (void)state;
    static const int errors[] = {ENOSPC, EIO, EROFS};
    static struct memory_disk d;
    struct checkpoint_error error;
    for (size_t e = 0; e < sizeof errors / sizeof *errors; e++) {
        bool reached = true;
        int unreported = 0;
        for (long step = 0; reached; step++) {
            disk_open(&d);
            assert_true(save(&d, 1, 100, &error));
            d.fails = d.steps + step;
            d.error = errors[e];
            memset(&error, 0, sizeof error);
            int syncs = d.name_syncs;
            bool good = save(&d, 2, 200, &error);
            reached = d.steps > d.fails;
            unreported += good && reached;
            uint64_t found = load(&d);
            /* The names of both files are on the disk. */
            if (good) assert_true(d.name_syncs >= syncs + 2);
            if (!good) {
                assert_int_equal(error.result, CHECKPOINT_FAILED);
                assert_non_null(strstr(error.text, strerror(errors[e])));
                assert_non_null(strstr(error.text, "pccl-g7-t"));
            }
            /* A name that may not be on the disk is a failure, and stays. */
            assert_true(found == 2 || (!good && found == 1));
            assert_int_equal(disk_count(&d), found == 2 ? 4 : 2);
            disk_close(&d);
        }
        /* Only what comes after: a look at it. */
        assert_int_equal(unreported, 1);
    }
}

/* What a later save of another process removes as old. */
static void remove_revision_2(void *disk)
{
    struct memory_disk *d = disk;
    for (int i = 0; i < DISK_NAMES; i++)
        if (strstr(d->names[i].text, "-r2-") &&
            !strstr(d->names[i].text, ".tmp-"))
            d->names[i].text[0] = '\0';
}

/* A writer that was stopped comes back when its tensors have been removed, or
 * when it is the oldest. */
static void test_a_late_writer_shows_nothing(void **state)
{
    (void)state;
    static struct memory_disk d;
    struct checkpoint_error error;
    disk_open(&d);
    for (uint64_t i = 5; i <= 7; i++) assert_true(save(&d, i, 100 * i, &error));
    assert_true(save(&d, 2, 200, &error)); /* its own removal takes it away */
    assert_int_equal(load(&d), 7);
    assert_int_equal(disk_count(&d), 4);
    for (long step = 0; step < 20; step++) {
        d.meanwhile = remove_revision_2;
        d.meanwhile_at = d.steps + step;
        (void)save(&d, 2, 650, &error);
        d.meanwhile = NULL;
        load_each(&d);
        assert_int_equal(load(&d), 7);
    }
    disk_close(&d);
}

static void test_times_go_up(void **state)
{
    (void)state;
    static struct memory_disk d;
    struct file_layer files = disk_layer(&d);
    struct checkpoint_error error;
    uint64_t time_ns;
    disk_open(&d);
    assert_true(checkpoint_time(&files, 7, 50, &time_ns, &error));
    assert_int_equal(time_ns, 50);
    assert_true(save(&d, 1, 100, &error));
    assert_true(checkpoint_time(&files, 7, 50, &time_ns, &error));
    assert_int_equal(time_ns, 101);
    assert_true(checkpoint_time(&files, 8, 50, &time_ns, &error));
    assert_int_equal(time_ns, 50);
    assert_true(checkpoint_time(&files, 7, 150, &time_ns, &error));
    assert_int_equal(time_ns, 150);
    disk_close(&d);
}

/* --- names --- */

static void add(struct snapshot_list *l, uint32_t group, uint64_t time_ns,
                uint64_t revision)
{
    char text[SNAPSHOT_NAME_MAX];
    struct snapshot_name n = {
        .group = group, .time_ns = time_ns, .revision = revision};
    for (int kind = SNAPSHOT_MANIFEST; kind <= SNAPSHOT_TENSORS; kind++) {
        n.kind = (enum snapshot_kind)kind;
        snapshot_print(&n, text);
        snapshot_add(l, text);
    }
}

static void test_names(void **state)
{
    (void)state;
    static const char *const wrong[] = {
        "",
        ".",
        "pccl-g0-t00000000000000000001-r1-0000000000000000.txt",
        "pccl-g0-t00000000000000000001-r1-0000000000000000.json~",
        "pccl-g0-t1-r1-0000000000000000.json",
        "pccl-g00-t00000000000000000001-r1-0000000000000000.json",
        "pccl-g4294967296-t00000000000000000001-r1-0000000000000000.json",
        "pccl-g0-t99999999999999999999-r1-0000000000000000.json",
        ("pccl-g0-t00000000000000000001-r99999999999999999999-0000000000000000"
         ".json"),
        "pccl-g0-t00000000000000000001-r-1-0000000000000000.json",
        "pccl-g0-t00000000000000000001-r1-00000000000000ZZ.json",
    };
    struct snapshot_name n;
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
        assert_false(snapshot_parse(&n, wrong[i]));
    assert_true(snapshot_parse(&n, "pccl-g4294967295-t09223372036854775807-r"
                                   "18446744073709551614-ffffffffffffffff.tmp-"
                                   "0123456789abcdef"));
    assert_int_equal(n.kind, SNAPSHOT_PARTIAL);
    assert_int_equal(n.unique, 0x0123456789abcdef);
}

static void test_a_cut_across_groups(void **state)
{
    (void)state;
    struct snapshot_list l = {0};
    for (uint64_t i = 1; i <= 9; i++) add(&l, 0, 10 * i, i);
    add(&l, 1, 31, 100);
    add(&l, 1, 57, 101);
    add(&l, 2, 75, 200);
    assert_int_equal(snapshot_cut(&l), 57);
    uint64_t cut = snapshot_cut(&l);
    assert_int_equal(snapshot_nearest(&l, 0, cut)->time_ns, 60);
    assert_int_equal(snapshot_nearest(&l, 1, cut)->time_ns, 57);
    assert_int_equal(snapshot_nearest(&l, 2, cut)->time_ns, 75);
    assert_int_equal(snapshot_nearest(&l, 0, 35)->time_ns, 30); /* a tie */
    assert_int_equal(snapshot_nearest(&l, 0, 0)->time_ns, 10);
    assert_int_equal(snapshot_nearest(&l, 0, UINT64_MAX)->time_ns, 90);
    assert_null(snapshot_nearest(&l, 3, cut));
    assert_int_equal(snapshot_newest(&l, 0)->revision, 9);
    assert_int_equal(snapshot_revision(&l, 0, 4)->time_ns, 40);
    assert_null(snapshot_revision(&l, 0, 44));
    /* The cut stays, and what is later than it: nothing that a load of the cut
     * could take goes. */
    const struct snapshot_name *at = snapshot_nearest(&l, 0, cut);
    int left = 0;
    for (size_t i = 0; i < l.count; i++) {
        const struct snapshot_name *n = &l.names[i];
        if (n->group != 0) continue;
        bool old = snapshot_is_old(&l, n, 2, at);
        assert_int_equal(old, n->time_ns < 80 && n->time_ns != 60);
        left += !old;
    }
    assert_int_equal(left, 6);
    snapshot_free(&l);
}

/* --- documents --- */

static void test_the_manifest_is_read_as_written(void **state)
{
    (void)state;
    struct sample s;
    struct manifest m;
    struct growing_text text = {0};
    struct growing_text again = {0};
    uint64_t digest, read;
    char why[120];
    sample_open(&s, UINT64_MAX - 1, INT64_MAX);
    manifest_write(&s.m, &text, &digest);
    assert_false(text.failed);
    assert_true(
        manifest_read(&m, text.bytes, text.size, &read, why, sizeof why));
    assert_int_equal(read, digest);
    manifest_write(&m, &again, &read);
    assert_int_equal(text.size, again.size);
    assert_memory_equal(text.bytes, again.bytes, text.size);
    manifest_free(&m);
    /* One bit, or a byte less. */
    for (size_t i = 0; i < text.size; i++) {
        text.bytes[i] ^= 1;
        assert_false(
            manifest_read(&m, text.bytes, text.size, &read, why, sizeof why));
        text.bytes[i] ^= 1;
        assert_false(manifest_read(&m, text.bytes, i, &read, why, sizeof why));
    }
    text_free(&text);
    text_free(&again);
    sample_close(&s);
}

static void test_every_tensor_is_aligned(void **state)
{
    (void)state;
    struct manifest_tensor tensors[DTYPE_COUNT];
    struct manifest m = {.count = DTYPE_COUNT, .tensors = tensors};
    uint32_t order[DTYPE_COUNT];
    char names[DTYPE_COUNT][16];
    for (uint8_t i = 0; i < DTYPE_COUNT; i++)
        tensors[i] = (struct manifest_tensor){
            .name = manifest_name(NULL, i, names[i]), .count = 3, .dtype = i};
    manifest_order(&m, order);
    uint64_t at = 0;
    for (int i = 0; i < DTYPE_COUNT; i++) {
        const struct manifest_tensor *t = &tensors[order[i]];
        assert_int_equal(at % dtype_size((enum dtype)t->dtype), 0);
        at += manifest_size(t);
    }
    struct growing_text text = {0};
    uint64_t total;
    assert_true(manifest_header(&m, &text, &total));
    assert_int_equal(total, at);
    assert_int_equal(text.size % 8, 0);
    text_free(&text);
}

static void test_too_much_is_refused(void **state)
{
    (void)state;
    struct manifest_tensor t[2] = {
        {.name = "a", .count = INT64_MAX / 8, .dtype = DTYPE_F64},
        {.name = "b", .count = 8, .dtype = DTYPE_U8}};
    struct manifest m = {.count = 2, .tensors = t};
    struct growing_text text = {0};
    uint64_t total;
    assert_false(manifest_header(&m, &text, &total));
    text_free(&text);
}

static void test_wrong_names(void **state)
{
    (void)state;
    static const char *const wrong[] = {
        "__metadata__",     "\x80",         "\xc3",
        "\xc0\xaf",         "\xe0\x80\xaf", "\xed\xa0\x80",
        "\xf4\x90\x80\x80", "a\xff",
    };
    static const char *const right[] = {
        "a", "\n", "\xc3\xa4", "\xe2\x82\xac", "\xf0\x9f\x98\x80", "__metadata",
    };
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
        assert_non_null(manifest_wrong_name(wrong[i]));
    for (size_t i = 0; i < sizeof right / sizeof *right; i++)
        assert_null(manifest_wrong_name(right[i]));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_round_trip),
        cmocka_unit_test(test_death_on_a_small_disk),
        cmocka_unit_test(test_a_living_writer_keeps_its_files),
        cmocka_unit_test(test_death_at_every_step),
        cmocka_unit_test(test_death_while_removing),
        cmocka_unit_test(test_failure_of_every_step),
        cmocka_unit_test(test_a_late_writer_shows_nothing),
        cmocka_unit_test(test_times_go_up),
        cmocka_unit_test(test_names),
        cmocka_unit_test(test_a_cut_across_groups),
        cmocka_unit_test(test_the_manifest_is_read_as_written),
        cmocka_unit_test(test_every_tensor_is_aligned),
        cmocka_unit_test(test_too_much_is_refused),
        cmocka_unit_test(test_wrong_names),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
