/* test_save.c - pcclSaveState and pcclLoadState in one process: all types, what
 * is refused and how it is named, errors of the file system. */
#include "../../../include/pccl.h"
#include "scratch.h"

#include <fcntl.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

enum { TYPES = 12, ELEMENTS = 5 };

static pcclComm_t *open_comm(uint32_t group)
{
    pcclCommCreateParams_t params = {.peer_group = group};
    pcclComm_t *comm;
    assert_int_equal(pcclInit(), pcclSuccess);
    assert_int_equal(pcclCreateCommunicator(&params, &comm), pcclSuccess);
    return comm;
}

static const pcclSaveOptions_t at_once = {
    .size = sizeof at_once, .synchronous = 1, .this_peer = 1};
static const pcclSaveOptions_t later = {.size = sizeof later, .this_peer = 1};

/* The last error of the communicator has this text. */
static void assert_text(pcclComm_t *comm, const char *part)
{
    char text[256];
    assert_int_equal(pcclGetLastError(comm, text, sizeof text), pcclSuccess);
    if (!strstr(text, part)) fail_msg("\"%s\" is not in \"%s\"", part, text);
}

/* --- a state of all types --- */

struct all {
    uint8_t bytes[TYPES][8 * ELEMENTS];
    char names[TYPES][16];
    pcclTensorInfo_t infos[TYPES];
    pcclSharedState_t state;
};

static void all_open(struct all *a, uint64_t revision, int fill)
{
    *a = (struct all){.state = {revision, TYPES, a->infos}};
    memset(a->bytes, fill, sizeof a->bytes);
    for (int i = 0; i < TYPES; i++) {
        (void)snprintf(a->names[i], sizeof a->names[i], "tensor %d", i);
        a->infos[i] = (pcclTensorInfo_t){.name = a->names[i],
                                         .data = a->bytes[i],
                                         .count = (size_t)i % ELEMENTS,
                                         .datatype = (pcclDataType_t)i};
    }
    a->infos[3].name = NULL;
}

static void test_all_types(void **state)
{
    (void)state;
    struct all a, b;
    pcclComm_t *comm = open_comm(0);
    all_open(&a, 41, 3);
    assert_int_equal(pcclSaveState(comm, &a.state, scratch, &later),
                     pcclSuccess);
    memset(a.bytes, 4, sizeof a.bytes); /* the copy was made in the call */
    pcclCheckpointInfo_t info = {.size = sizeof info};
    assert_int_equal(pcclAwaitSave(comm, &info), pcclSuccess);
    assert_int_equal(info.revision, 41);
    assert_int_equal(info.world_size, 1);
    assert_true(info.time_ns > 0 && info.bytes > 0);
    pcclCheckpointInfo_t read = {.size = sizeof read};
    all_open(&b, 0, 9);
    assert_int_equal(pcclLoadState(comm, &b.state, scratch, NULL, &read),
                     pcclSuccess);
    assert_int_equal(b.state.revision, 41);
    assert_int_equal(read.time_ns, info.time_ns);
    assert_int_equal(read.bytes, info.bytes);
    static const size_t widths[TYPES] = {1, 1, 2, 2, 4, 4, 8, 8, 2, 2, 4, 8};
    for (size_t i = 0; i < TYPES; i++)
        for (size_t k = 0; k < sizeof b.bytes[i]; k++)
            assert_int_equal(b.bytes[i][k],
                             k < widths[i] * b.infos[i].count ? 3 : 9);
    /* Nothing is under way any more. */
    assert_int_equal(pcclAwaitSave(comm, &info), pcclSuccess);
    assert_int_equal(info.bytes, 0);
    pcclDestroyCommunicator(comm);
    scratch_empty();
}

static void test_a_save_outlives_the_communicator(void **state)
{
    (void)state;
    struct all a;
    pcclComm_t *comm = open_comm(0);
    all_open(&a, 1, 1);
    assert_int_equal(pcclSaveState(comm, &a.state, scratch, &later),
                     pcclSuccess);
    pcclDestroyCommunicator(comm);
    assert_int_equal(scratch_count(".json", NULL), 1);
    assert_int_equal(scratch_count("", NULL), 2);
    scratch_empty();
}

static void test_how_many_stay(void **state)
{
    (void)state;
    struct all a, b;
    pcclComm_t *comm = open_comm(0);
    pcclSaveOptions_t three = {.size = sizeof three, .keep = 3, .this_peer = 1};
    for (uint64_t i = 1; i <= 6; i++) {
        all_open(&a, i, (int)i);
        assert_int_equal(pcclSaveState(comm, &a.state, scratch, &three),
                         pcclSuccess);
    }
    assert_int_equal(pcclAwaitSave(comm, NULL), pcclSuccess);
    assert_int_equal(scratch_count(".json", NULL), 3);
    assert_int_equal(scratch_count("", NULL), 6);
    all_open(&b, 0, 0);
    pcclLoadOptions_t o = {
        .size = sizeof o, .choice = pcclLoadRevision, .revision = 5};
    assert_int_equal(pcclLoadState(comm, &b.state, scratch, &o, NULL),
                     pcclSuccess);
    assert_int_equal(b.state.revision, 5);
    assert_int_equal(b.bytes[11][0], 5);
    o.revision = 3;
    assert_int_equal(pcclLoadState(comm, &b.state, scratch, &o, NULL),
                     pcclNoSharedStateAvailable);
    assert_text(comm, "there is no checkpoint of revision 3 of group 0");
    o = (pcclLoadOptions_t){.size = sizeof o, .choice = pcclLoadNearest};
    assert_int_equal(pcclLoadState(comm, &b.state, scratch, &o, NULL),
                     pcclSuccess);
    assert_int_equal(b.state.revision, 4);
    o.choice = pcclLoadNewest;
    assert_int_equal(pcclLoadState(comm, &b.state, scratch, &o, NULL),
                     pcclSuccess);
    assert_int_equal(b.state.revision, 6);
    pcclDestroyCommunicator(comm);
    scratch_empty();
}

static void test_groups_save_apart_and_load_one_cut(void **state)
{
    (void)state;
    struct all a;
    pcclComm_t *comms[2] = {open_comm(0), open_comm(1)};
    uint64_t cuts[2];
    for (uint64_t i = 1; i <= 6; i++) {
        all_open(&a, i, 0);
        if (i == 4)
            assert_int_equal(
                pcclSaveState(comms[1], &a.state, scratch, &at_once),
                pcclSuccess);
        assert_int_equal(pcclSaveState(comms[0], &a.state, scratch, &at_once),
                         pcclSuccess);
    }
    for (int g = 0; g < 2; g++) {
        pcclCheckpointInfo_t info = {.size = sizeof info};
        assert_int_equal(
            pcclLoadState(comms[g], &a.state, scratch, NULL, &info),
            pcclSuccess);
        cuts[g] = (uint64_t)info.cut_ns;
        if (g == 1) assert_int_equal(a.state.revision, 4);
        /* What was nearest to it, at the least one of the two beside it. */
        if (g == 0) assert_in_range(a.state.revision, 3, 4);
    }
    assert_int_equal(cuts[0], cuts[1]);
    for (int g = 0; g < 2; g++) pcclDestroyCommunicator(comms[g]);
    scratch_empty();
}

/* --- refused --- */

static void flip(const char *path, long at, int bit)
{
    FILE *f = fopen(path, "r+b");
    assert_non_null(f);
    assert_int_equal(fseek(f, at, SEEK_SET), 0);
    int c = fgetc(f);
    assert_int_equal(fseek(f, at, SEEK_SET), 0);
    assert_int_equal(fputc(c ^ bit, f), c ^ bit);
    assert_int_equal(fclose(f), 0);
}

static long size_of(const char *path)
{
    struct stat s;
    assert_int_equal(stat(path, &s), 0);
    return (long)s.st_size;
}

static void test_every_edit_is_refused(void **state)
{
    (void)state;
    static const char *const endings[] = {".json", ".safetensors"};
    struct all a, b;
    char path[512];
    pcclComm_t *comm = open_comm(0);
    all_open(&a, 41, 3);
    assert_int_equal(pcclSaveState(comm, &a.state, scratch, &at_once),
                     pcclSuccess);
    for (int e = 0; e < 2; e++) {
        assert_int_equal(scratch_count(endings[e], path), 1);
        long size = size_of(path);
        for (long at = 0; at < size; at++) {
            flip(path, at, 1 << at % 8);
            all_open(&b, 7, 9);
            assert_int_equal(pcclLoadState(comm, &b.state, scratch, NULL, NULL),
                             pcclFileError);
            assert_int_equal(b.state.revision, 7);
            for (size_t i = 0; i < sizeof b.bytes; i++)
                assert_int_equal(b.bytes[i / 40][i % 40], 9);
            flip(path, at, 1 << at % 8);
        }
        /* Cut off, and one byte more. */
        assert_int_equal(truncate(path, size + 1), 0);
        assert_int_equal(pcclLoadState(comm, &b.state, scratch, NULL, NULL),
                         pcclFileError);
        assert_int_equal(truncate(path, size), 0);
    }
    assert_int_equal(pcclLoadState(comm, &b.state, scratch, NULL, NULL),
                     pcclSuccess);
    /* The last byte is of the narrowest tensor that has one. */
    flip(path, size_of(path) - 1, 1);
    assert_int_equal(pcclLoadState(comm, &b.state, scratch, NULL, NULL),
                     pcclFileError);
    assert_text(comm, "tensor \"tensor 1\" of revision 41 does not have its "
                      "digest");
    assert_int_equal(truncate(path, 10), 0);
    assert_int_equal(pcclLoadState(comm, &b.state, scratch, NULL, NULL),
                     pcclFileError);
    assert_text(comm, "its size is not that of the tensors");
    assert_int_equal(unlink(path), 0);
    assert_int_equal(pcclLoadState(comm, &b.state, scratch, NULL, NULL),
                     pcclFileError);
    assert_text(comm, "No such file");
    pcclDestroyCommunicator(comm);
    scratch_empty();
}

static void test_other_tensors_are_named(void **state)
{
    (void)state;
    struct all a;
    pcclComm_t *comm = open_comm(0);
    all_open(&a, 41, 3);
    assert_int_equal(pcclSaveState(comm, &a.state, scratch, &at_once),
                     pcclSuccess);
    all_open(&a, 0, 3);
    a.infos[4].count = 5;
    assert_int_equal(pcclLoadState(comm, &a.state, scratch, NULL, NULL),
                     pcclInvalidArgument);
    assert_text(comm, "entry 4 is \"tensor 4\" (5 x u32); the checkpoint of "
                      "revision 41 has \"tensor 4\" (4 x u32)");
    all_open(&a, 0, 3);
    a.infos[6].name = "other";
    assert_int_equal(pcclLoadState(comm, &a.state, scratch, NULL, NULL),
                     pcclInvalidArgument);
    assert_text(comm, "entry 6 is \"other\"");
    all_open(&a, 0, 3);
    a.infos[7].datatype = pcclUint64;
    a.infos[8].allow_content_inequality = true;
    assert_int_equal(pcclLoadState(comm, &a.state, scratch, NULL, NULL),
                     pcclInvalidArgument);
    assert_text(comm, "entry 7 is \"tensor 7\" (2 x u64)");
    all_open(&a, 0, 3);
    a.state.count--;
    assert_int_equal(pcclLoadState(comm, &a.state, scratch, NULL, NULL),
                     pcclInvalidArgument);
    assert_text(comm, "entry 11 is nothing");
    pcclDestroyCommunicator(comm);
    scratch_empty();
}

static void test_arguments(void **state)
{
    (void)state;
    struct all a;
    pcclComm_t *comm = open_comm(0);
    all_open(&a, 1, 1);
    assert_int_equal(pcclSaveState(NULL, &a.state, scratch, &later),
                     pcclInvalidArgument);
    assert_int_equal(pcclSaveState(comm, NULL, scratch, &later),
                     pcclInvalidArgument);
    assert_int_equal(pcclSaveState(comm, &a.state, NULL, &later),
                     pcclInvalidArgument);
    assert_int_equal(pcclSaveState(comm, &a.state, scratch, NULL),
                     pcclInvalidUsage); /* not connected */
    assert_int_equal(pcclLoadState(comm, NULL, scratch, NULL, NULL),
                     pcclInvalidArgument);
    assert_int_equal(pcclLoadState(comm, &a.state, "", NULL, NULL),
                     pcclInvalidArgument);
    pcclLoadOptions_t o = {.size = sizeof o, .choice = (pcclLoadChoice_t)9};
    assert_int_equal(pcclLoadState(comm, &a.state, scratch, &o, NULL),
                     pcclInvalidArgument);
    assert_int_equal(pcclLoadState(comm, &a.state, scratch, NULL, NULL),
                     pcclNoSharedStateAvailable);
    static const char *const names[] = {"#3", "__metadata__", "\xff",
                                        "tensor 0"};
    for (size_t i = 0; i < 4; i++) {
        a.infos[1].name = names[i];
        assert_int_equal(pcclSaveState(comm, &a.state, scratch, &later),
                         pcclInvalidArgument);
        assert_text(comm, "name");
    }
    assert_int_equal(scratch_count("", NULL), 0);
    pcclDestroyCommunicator(comm);
}

/* --- the file system --- */

static void test_a_missing_directory_is_named(void **state)
{
    (void)state;
    struct all a;
    pcclComm_t *comm = open_comm(0);
    all_open(&a, 1, 1);
    assert_int_equal(pcclSaveState(comm, &a.state, "/nowhere/at all", &later),
                     pcclFileError);
    assert_text(comm, "No such file or directory");
    assert_text(comm, "/nowhere/at all");
    assert_int_equal(
        pcclLoadState(comm, &a.state, "/nowhere/at all", NULL, NULL),
        pcclFileError);
    assert_text(comm, "/nowhere/at all");
    /* One in which nobody can make a file. */
    assert_int_equal(pcclSaveState(comm, &a.state, "/proc", &later),
                     pcclSuccess);
    assert_int_equal(pcclAwaitSave(comm, NULL), pcclFileError);
    assert_text(comm, "cannot save revision 1");
    assert_text(comm, "/proc");
    assert_int_equal(pcclAwaitSave(comm, NULL), pcclSuccess);
    pcclDestroyCommunicator(comm);
}

static void test_a_full_disk_leaves_nothing(void **state)
{
    (void)state;
    static uint8_t bytes[100000];
    pcclTensorInfo_t info = {.name = "x",
                             .data = bytes,
                             .count = sizeof bytes,
                             .datatype = pcclUint8};
    pcclSharedState_t s = {5, 1, &info};
    pcclComm_t *comm = open_comm(0);
    assert_int_equal(pcclSaveState(comm, &s, scratch, &at_once), pcclSuccess);
    struct rlimit old;
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &old), 0);
    struct rlimit small = {50000, old.rlim_max};
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &small), 0);
    s.revision = 6;
    assert_int_equal(pcclSaveState(comm, &s, scratch, &at_once), pcclFileError);
    assert_text(comm, "cannot save revision 6: File too large");
    /* In the background the next save reports it, and the one after goes on. */
    assert_int_equal(pcclSaveState(comm, &s, scratch, &later), pcclSuccess);
    assert_int_equal(pcclSaveState(comm, &s, scratch, &later), pcclFileError);
    assert_text(comm, "File too large");
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &old), 0);
    assert_int_equal(scratch_count("", NULL), 2);
    assert_int_equal(pcclLoadState(comm, &s, scratch, NULL, NULL), pcclSuccess);
    assert_int_equal(s.revision, 5);
    s.revision = 7;
    assert_int_equal(pcclSaveState(comm, &s, scratch, &later), pcclSuccess);
    assert_int_equal(pcclAwaitSave(comm, NULL), pcclSuccess);
    pcclDestroyCommunicator(comm);
    scratch_empty();
}

static void test_nothing_to_save(void **state)
{
    (void)state;
    pcclSharedState_t none = {9, 0, NULL};
    pcclSharedState_t other = {0, 0, NULL};
    pcclCheckpointInfo_t info = {.size = sizeof info};
    pcclComm_t *comm = open_comm(UINT32_MAX);
    assert_int_equal(pcclSaveState(comm, &none, scratch, &later), pcclSuccess);
    assert_int_equal(pcclAwaitSave(comm, &info), pcclSuccess);
    assert_true(info.bytes > 0);
    assert_int_equal(pcclLoadState(comm, &other, scratch, NULL, NULL),
                     pcclSuccess);
    assert_int_equal(other.revision, 9);
    pcclDestroyCommunicator(comm);
    scratch_empty();
}

/* --- threads --- */

enum { THREADS = 4, SAVES = 12 };

static void *save_often(void *user)
{
    pcclComm_t *comm = user;
    struct all a;
    char text[256];
    all_open(&a, 3, 3);
    bool good = true;
    for (int i = 0; i < SAVES; i++) {
        good &= pcclSaveState(comm, &a.state, scratch,
                              i % 3 == 0 ? &at_once : &later) == pcclSuccess;
        if (i % 4 == 0) good &= pcclAwaitSave(comm, NULL) == pcclSuccess;
        good &= pcclGetLastError(comm, text, sizeof text) == pcclSuccess;
    }
    return good ? user : NULL;
}

static void test_threads_save_at_once(void **state)
{
    (void)state;
    struct all b;
    pthread_t threads[THREADS];
    pcclComm_t *comm = open_comm(0);
    for (int i = 0; i < THREADS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, save_often, comm),
                         0);
    for (int i = 0; i < THREADS; i++) {
        void *result;
        assert_int_equal(pthread_join(threads[i], &result), 0);
        assert_ptr_equal(result, comm);
    }
    assert_int_equal(pcclAwaitSave(comm, NULL), pcclSuccess);
    assert_int_equal(scratch_count("", NULL), 4);
    all_open(&b, 0, 0);
    assert_int_equal(pcclLoadState(comm, &b.state, scratch, NULL, NULL),
                     pcclSuccess);
    assert_int_equal(b.bytes[11][0], 3);
    pcclDestroyCommunicator(comm);
    scratch_empty();
}

/* The child has no save, and its parent's goes on. */
static void test_a_forked_child(void **state)
{
    (void)state;
    struct all a;
    pcclComm_t *comm = open_comm(0);
    all_open(&a, 3, 3);
    assert_int_equal(pcclSaveState(comm, &a.state, scratch, &later),
                     pcclSuccess);
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        bool refused = pcclAwaitSave(comm, NULL) == pcclInvalidUsage;
        (void)pcclDestroyCommunicator(comm);
        _exit(refused ? 0 : 1);
    }
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    assert_int_equal(pcclAwaitSave(comm, NULL), pcclSuccess);
    assert_int_equal(scratch_count("", NULL), 2);
    pcclDestroyCommunicator(comm);
    scratch_empty();
}

/* What a dead writer has left goes before a save; what a living one has open
 * stays. */
static void test_remains(void **state)
{
    (void)state;
    static const char *const left[] = {
        "pccl-g0-t00000000000000000001-r1-0000000000000000.tmp-000000000000000"
        "1",
        "pccl-g0-t00000000000000000001-r1-0000000000000001.safetensors"};
    static const pcclSaveOptions_t many = {
        .size = sizeof many, .keep = 10, .synchronous = 1, .this_peer = 1};
    char path[512];
    int files[2];
    for (int i = 0; i < 2; i++) {
        (void)snprintf(path, sizeof path, "%s/%s", scratch, left[i]);
        files[i] = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
        assert_true(files[i] >= 0);
        assert_int_equal(flock(files[i], LOCK_EX), 0);
    }
    static uint8_t bytes[100];
    pcclTensorInfo_t info = {.name = "x",
                             .data = bytes,
                             .count = sizeof bytes,
                             .datatype = pcclUint8};
    pcclSharedState_t s = {5, 1, &info};
    pcclComm_t *comm = open_comm(0);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(pcclSaveState(comm, &s, scratch, &many), pcclSuccess);
        assert_int_equal(scratch_count("-r1-", NULL), 2 - i);
        close(files[i]);
        s.revision++;
    }
    assert_int_equal(pcclSaveState(comm, &s, scratch, &many), pcclSuccess);
    assert_int_equal(scratch_count("-r1-", NULL), 0);
    pcclDestroyCommunicator(comm);
    scratch_empty();
}

static void test_what_is_not_ours_stays(void **state)
{
    (void)state;
    static const char *const others[] = {
        "notes.txt", "pccl-g0-t00000000000000000001-r1.json",
        ("pccl-g9-t00000000000000000001-r1-0000000000000000.tmp-"
         "0000000000000001")};
    struct all a;
    char path[512];
    pcclComm_t *comm = open_comm(0);
    for (int i = 0; i < 3; i++) {
        (void)snprintf(path, sizeof path, "%s/%s", scratch, others[i]);
        int fd = open(path, O_CREAT | O_WRONLY, 0600);
        assert_true(fd >= 0);
        close(fd);
    }
    for (uint64_t i = 1; i <= 4; i++) {
        all_open(&a, i, 0);
        assert_int_equal(pcclSaveState(comm, &a.state, scratch, &at_once),
                         pcclSuccess);
    }
    assert_int_equal(scratch_count("", NULL), 4 + 3);
    pcclDestroyCommunicator(comm);
    scratch_empty();
}

/* For foreign.py: a checkpoint of all types. */
static int write_into(const char *directory)
{
    struct all a;
    pcclComm_t *comm = open_comm(0);
    all_open(&a, 41, 3);
    bool good =
        pcclSaveState(comm, &a.state, directory, &at_once) == pcclSuccess;
    (void)pcclDestroyCommunicator(comm);
    return good ? 0 : 1;
}

int main(void)
{
    const char *into = getenv("TEST_SAVE_INTO");
    if (into) return write_into(into);
    (void)setenv("PCCL_LOG_LEVEL", "ERR", 1); /* failures are wanted here */
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_all_types),
        cmocka_unit_test(test_a_save_outlives_the_communicator),
        cmocka_unit_test(test_how_many_stay),
        cmocka_unit_test(test_groups_save_apart_and_load_one_cut),
        cmocka_unit_test(test_every_edit_is_refused),
        cmocka_unit_test(test_other_tensors_are_named),
        cmocka_unit_test(test_arguments),
        cmocka_unit_test(test_a_missing_directory_is_named),
        cmocka_unit_test(test_a_full_disk_leaves_nothing),
        cmocka_unit_test(test_remains),
        cmocka_unit_test(test_what_is_not_ours_stays),
        cmocka_unit_test(test_nothing_to_save),
        cmocka_unit_test(test_threads_save_at_once),
        cmocka_unit_test(test_a_forked_child),
    };
    return cmocka_run_group_tests(tests, scratch_make, scratch_remove);
}
