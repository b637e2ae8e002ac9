/* test_launch_hosts.c - tests of host lists, placement, binding and frames;
 * pure. */
#include "../../../src/launch/allocation.h"
#include "../../../src/launch/bind.h"
#include "../../../src/launch/hosts.h"
#include "../../../src/launch/reach.h"
#include "../../../src/launch/agent_link.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

enum source { COMMAND, FILE_TEXT, SLURM, RANK_FILE };

static bool read_list(struct host_list *list, enum source source,
                      const char *text, const char *tasks, char *error)
{
    *list = (struct host_list){0};
    *error = '\0';
    if (source == COMMAND) return hosts_parse(list, text, error, 256);
    if (source == FILE_TEXT) return hosts_parse_file(list, text, error, 256);
    if (source == RANK_FILE) return hosts_parse_ranks(list, text, error, 256);
    return hosts_parse_slurm(list, text, tasks, error, 256);
}

static void test_lists(void **state)
{
    (void)state;
    static const struct {
        enum source source;
        const char *text, *tasks, *expected; /* "a:1 b:2", or the error */
        bool good;
    } cases[] = {
        {COMMAND, "a,b:4", NULL, "a:1 b:4", true},
        {COMMAND, "a:2,a", NULL, "a:2 a:1", true},
        {COMMAND, "me@a:2,[::1]:3,fe80::1", NULL, "me@a:2 ::1:3 fe80::1:1",
         true},
        {COMMAND, "[::1]", NULL, "::1:1", true},
        {COMMAND, "1001,1002:3", NULL, "1001:1 1002:3", true},
        {COMMAND, "", NULL, "no host is named", false},
        {COMMAND, "a:0", NULL, "'a:0' is no host", false},
        {COMMAND, "a:5000", NULL, "'a:5000' is no host", false},
        {COMMAND, "-oProxyCommand=x", NULL, "is no host", false},
        {COMMAND, "[::1", NULL, "'[::1' is no host", false},
        {COMMAND, "[::1]x", NULL, "is no host", false},
        {FILE_TEXT, "# mine\na:2\n\n  b # its\nc slots=3 max_slots=4\r\n", NULL,
         "a:2 b:1 c:3", true},
        {FILE_TEXT, "a:2 user=me slots=5", NULL, "me@a:5", true},
        {FILE_TEXT, "a user=-oProxyCommand=x", NULL, "is no name of a user",
         false},
        {FILE_TEXT, "-oProxyCommand=x", NULL, "is no host", false},
        {FILE_TEXT, "a ports=8000-8009 slots=2 announce=h:9", NULL, "a:2",
         true},
        {FILE_TEXT, "a ports=9-8", NULL, "line 1: 'ports=9-8' is no range",
         false},
        {FILE_TEXT, "a announce=:8", NULL, "'announce=:8' is not HOST", false},
        {FILE_TEXT, "a\nb slot=2\n", NULL, "line 2: 'slot=2' is not known",
         false},
        {FILE_TEXT, "a slots=x", NULL, "line 1: 'slots=x' is no number", false},
        {FILE_TEXT, "# nobody\n", NULL, "no host is named", false},
        {RANK_FILE, "rank 1=b slot=0:1\n# two\n rank 0 = a slots=2 # x\r\n",
         NULL, "a:1 b:1", true},
        {RANK_FILE, "rank 0=a\nrank 2=c\n", NULL, "there is no rank 1", false},
        {RANK_FILE, "rank 0=a\nrank 0=c\n", NULL, "rank 0 is there twice",
         false},
        {RANK_FILE, "rank 0=+n0\n", NULL, "is no line like rank 0=HOST", false},
        {RANK_FILE, "rank 0=-oX=y\n", NULL, "is no line like", false},
        {RANK_FILE, "rank 4096=a\n", NULL, "is no line like", false},
        {RANK_FILE, "a slots=3\n", NULL, "is no line like", false},
        {RANK_FILE, "", NULL, "no rank is named", false},
        {SLURM, "n[08-10,12],m3", "2(x3),1", "n08:2 n09:2 n10:2 n12:1 m3:1",
         true},
        {SLURM, "r[1-2]n[1-2]-ib", NULL,
         "r1n1-ib:1 r1n2-ib:1 r2n1-ib:1 r2n2-ib:1", true},
        {SLURM, "one", "16", "one:16", true},
        {SLURM, "n[1-", NULL, "is no node list", false},
        {SLURM, "n[2-1]", NULL, "is no node list", false},
        {SLURM, "n[1;2]", NULL, "is no node list", false},
        {SLURM, "n[1-99999]", NULL, "is no node list", false},
        {SLURM, "n1", "two", "SLURM_TASKS_PER_NODE=two", false},
        {SLURM, "n1", "2(y3)", "SLURM_TASKS_PER_NODE=2(y3)", false},
        {SLURM, "-oProxyCommand=x", NULL, "is no node list", false},
        {SLURM, "", NULL, "no node is named", false},
    };
    for (size_t i = 0; i < ARRAY_COUNT(cases); i++) {
        struct host_list list;
        char got[512] = "", error[256];
        bool good = read_list(&list, cases[i].source, cases[i].text,
                              cases[i].tasks, error);
        for (size_t k = 0; k < list.count; k++) {
            size_t used = strlen(got);
            snprintf(got + used, sizeof got - used, "%s%s:%u", k ? " " : "",
                     list.entries[k].name, list.entries[k].slots);
        }
        if (good != cases[i].good) fail_msg("%s: %s", cases[i].text, error);
        if (good) assert_string_equal(got, cases[i].expected);
        if (!good && !strstr(error, cases[i].expected))
            fail_msg("%s: %s", cases[i].text, error);
        hosts_free(&list);
    }
}

/* Ports and addresses of a rank, by the slots of the lines of its host. */
/* As they become words of a command line, and parts of addresses. */
static void test_long_names(void **state)
{
    (void)state;
    for (const char *letter = "a1"; *letter; letter++) {
        char name[HOST_SIZE + 1] = "", error[2 * HOST_SIZE];
        struct host_list list = {0};
        memset(name, *letter, HOST_SIZE - 1);
        assert_true(hosts_parse(&list, name, error, sizeof error));
        name[HOST_SIZE - 1] = *letter;
        assert_false(hosts_parse(&list, name, error, sizeof error));
        assert_non_null(strstr(error, "is no host"));
        hosts_free(&list);
    }
}

/* A link-local address with its interface is of no use to other hosts: ssh may
 * have come by one. */
static void test_addresses_for_others(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        bool good;
    } cases[] = {{"10.0.0.7", true},
                 {"2001:db8::7", true},
                 {"fe80::1%lo", false},
                 {"name", false},
                 {"*", false}};
    for (size_t i = 0; i < ARRAY_COUNT(cases); i++) {
        struct address a;
        assert_true(address_parse(cases[i].text, 0, &a));
        assert_int_equal(reach_is_numeric(&a), cases[i].good);
    }
}

static void test_ways_of_ranks(void **state)
{
    (void)state;
    struct host_list list = {0};
    char error[256];
    assert_true(hosts_parse_file(&list,
                                 "a slots=2 ports=1-2 announce=x\nb\n"
                                 "a ports=7 announce=[::1]:5 ports=8\n",
                                 error, sizeof error));
    assert_string_equal(hosts_entry_of(&list, "a", 0)->ports, "1-2");
    assert_string_equal(hosts_entry_of(&list, "a", 1)->announce, "x");
    assert_string_equal(hosts_entry_of(&list, "a", 2)->ports, "8");
    assert_string_equal(hosts_entry_of(&list, "a", 9)->announce, "[::1]:5");
    assert_null(hosts_entry_of(&list, "b", 0)->ports);
    assert_null(hosts_entry_of(&list, "c", 0));
    hosts_free(&list);
}

static void test_hosts_left_out(void **state)
{
    (void)state;
    static const struct {
        enum source source;
        const char *text, *out, *expected; /* "": no host is left */
    } cases[] = {
        {COMMAND, "a,b:4,c:2", "b", "a:1 c:2"},
        {COMMAND, "a:2,b,a", "a", "b:1"},
        {COMMAND, "a,b", "c", "a:1 b:1"},
        {COMMAND, "a,b", "b,a", ""},
        {RANK_FILE, "rank 0=b\nrank 1=a\nrank 2=b\nrank 3=c\nrank 4=b\n", "b",
         "a:1 a:1 c:1 c:1 a:1"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct host_list list, out, made;
        char error[256], text[256] = "";
        assert_true(
            read_list(&list, cases[i].source, cases[i].text, NULL, error));
        assert_true(hosts_parse(memset(&out, 0, sizeof out), cases[i].out,
                                error, sizeof error));
        bool left =
            hosts_without(&made, &list, &out, cases[i].source == RANK_FILE);
        assert_int_equal(left, *cases[i].expected != '\0');
        for (size_t k = 0; k < made.count; k++)
            snprintf(text + strlen(text), sizeof text - strlen(text), "%s%s:%u",
                     k ? " " : "", made.entries[k].name, made.entries[k].slots);
        assert_string_equal(text, cases[i].expected);
        hosts_free(&made);
        hosts_free(&out);
        hosts_free(&list);
    }
    struct host_list none = {0}, made;
    assert_true(hosts_without(&made, &none, &none, false)); /* this host */
    assert_int_equal(made.count, 0);
}

static void test_placement(void **state)
{
    (void)state;
    static const struct {
        const char *hosts; /* NULL: not given */
        uint32_t per_host, ranks;
        const char *expected; /* host and local number of every rank */
    } cases[] = {
        {NULL, 0, 3, "0.0 0.1 0.2"},
        {"a:2,b", 0, 3, "0.0 0.1 1.0"},
        {"a:2,b", 0, 5,
         "0.0 0.1 1.0 0.2 0.3"}, /* starts again with the first host */
        {"a,b", 2, 4, "0.0 0.1 1.0 1.1"},
        {"a:8,b:8", 1, 4, "0.0 1.0 0.1 1.1"},
        {"a,b,a", 0, 3, "0.0 1.0 0.1"},
        {"a:4,b:4", 0, 2, "0.0 0.1"},
    };
    for (size_t i = 0; i < ARRAY_COUNT(cases); i++) {
        struct host_list list = {0};
        struct placement placement;
        char got[256] = "", error[256];
        if (cases[i].hosts)
            assert_true(
                hosts_parse(&list, cases[i].hosts, error, sizeof error));
        placement_make(&placement, &list, cases[i].per_host, cases[i].ranks);
        uint32_t sum = 0;
        for (uint32_t k = 0; k < placement.host_count; k++)
            sum += placement.locals[k];
        assert_int_equal(sum, cases[i].ranks);
        for (uint32_t k = 0; k < cases[i].ranks; k++) {
            size_t used = strlen(got);
            snprintf(got + used, sizeof got - used, "%s%u.%u", k ? " " : "",
                     placement.ranks[k].host, placement.ranks[k].local);
        }
        assert_string_equal(got, cases[i].expected);
        assert_string_equal(placement.hosts[0],
                            cases[i].hosts ? "a" : "localhost");
        placement_free(&placement);
        hosts_free(&list);
    }
}

/* Two sockets with two cores of two threads each, numbered like Linux. */
static void test_binding(void **state)
{
    (void)state;
    static struct bind_machine machine;
    static const struct {
        const char *text;
        uint32_t local;
        unsigned cpus; /* one bit per processor */
    } cases[] = {
        {"hwthread", 0, 0x01},
        {"hwthread", 9, 0x02},
        {"core", 0, 0x11},
        {"core", 1, 0x22},
        {"core", 3, 0x88},
        {"core", 4, 0x11},
        {"core:2", 1, 0xcc},
        {"core:3", 1, 0x99 | 0x22},
        {"socket", 0, 0x33},
        {"socket", 1, 0xcc},
        {"numa", 1, 0xcc},
        {"socket:2", 5, 0xff},
        {"none", 0, 0},
        {"core:9", 1, 0xff},
        /* of --map-by */
        {"=socket", 0, 0x33},
        {"=socket", 1, 0xcc},
        {"=socket", 2, 0x33},
        {"=slot:PE=2", 1, 0xcc},
        {"=socket:PE=1", 0, 0x11},
        {"=socket:PE=1", 1, 0x44},
        {"=socket:PE=1", 2, 0x22},
        {"=numa:pe=2", 3, 0xcc},
        {"=ppr:2:socket", 1, 0x33},
        {"=ppr:2:socket", 2, 0xcc},
        {"=ppr:1:numa:PE=1", 1, 0x44},
        {"=ppr:1:numa:PE=1", 2, 0x22},
    };
    for (int i = 0; i < 8; i++)
        machine.cpus[machine.count++] = (struct bind_cpu){.number = i,
                                                          .core = i & 1,
                                                          .socket = i >> 1 & 1,
                                                          .numa = i >> 1 & 1};
    for (size_t i = 0; i < ARRAY_COUNT(cases); i++) {
        struct bind bind = {.width = 1};
        cpu_set_t set;
        unsigned got = 0;
        bool map = cases[i].text[0] == '=';
        if (map)
            assert_true(bind_parse_map(&bind, cases[i].text + 1));
        else
            assert_true(bind_parse(&bind, cases[i].text));
        if (map && bind.kind == BIND_NONE) bind.kind = bind.map;
        bool bound = bind_choose(&machine, bind, cases[i].local, &set);
        assert_int_equal(bound, cases[i].cpus != 0);
        for (unsigned k = 0; k < 8; k++)
            if (bound && CPU_ISSET(k, &set)) got |= 1u << k;
        if (got != cases[i].cpus)
            fail_msg("%s of %u: %x", cases[i].text, cases[i].local, got);
    }
    struct bind bind = {.kind = BIND_NUMA};
    assert_false(bind_parse(&bind, "cores"));
    assert_false(bind_parse(&bind, "core:x"));
    static const char *const wrong[] = {
        "moon",       "socket:PE=", "ppr",       "ppr:socket",
        "ppr:0:numa", "ppr:2",      "slot:PE=x", ""};
    for (size_t i = 0; i < ARRAY_COUNT(wrong); i++)
        assert_false(bind_parse_map(&bind, wrong[i]));
    assert_int_equal(bind.kind, BIND_NUMA);
    cpu_set_t set;
    CPU_ZERO(&set);
    for (unsigned i = 0; i < 9; i++)
        if (i != 3 && i != 5) CPU_SET(i, &set);
    char *text = bind_text(&set), *none = bind_text(NULL);
    assert_string_equal(text, "0-2,4,6-8");
    assert_string_equal(none, "");
    free(text);
    free(none);
}

/* This machine has the same parts for hwloc and in /sys. */
static void test_machine(void **state)
{
    (void)state;
    static struct bind_machine one, other;
    bind_read(&one);
    bind_read_system(&other);
    assert_true(one.count > 0);
    assert_int_equal(one.count, other.count);
    for (int kind = BIND_THREAD; kind <= BIND_SOCKET; kind++)
        assert_int_equal(bind_count(&one, (enum bind_kind)kind),
                         bind_count(&other, (enum bind_kind)kind));
}

static void test_frames(void **state)
{
    (void)state;
    char bytes[LINK_HEADER + 5];
    struct link_frame frame;
    link_header(bytes, LINK_OUT, 0x01020304, 5);
    memcpy(bytes + LINK_HEADER, "hello", 5);
    for (size_t size = 0; size < sizeof bytes; size++)
        assert_int_equal(link_decode(bytes, size, &frame), LINK_MORE);
    assert_int_equal(link_decode(bytes, sizeof bytes, &frame), LINK_OK);
    assert_int_equal(frame.type, LINK_OUT);
    assert_int_equal(frame.rank, 0x01020304);
    assert_int_equal(frame.size, 5);
    assert_memory_equal(frame.bytes, "hello", 5);
    static const int spoilt[] = {0, 8, 9, 10,
                                 11}; /* a size in GiB; an invalid type */
    for (size_t i = 0; i < ARRAY_COUNT(spoilt); i++) {
        char copy[sizeof bytes];
        memcpy(copy, bytes, sizeof bytes);
        copy[spoilt[i]] = (char)0x7f;
        assert_int_equal(link_decode(copy, sizeof copy, &frame), LINK_BAD);
    }
    struct link_texts texts = {0};
    int64_t number;
    link_put(&texts, "");
    link_put_number(&texts, -7);
    link_put(&texts, "x");
    assert_string_equal(link_get(&texts), "");
    assert_true(link_get_number(&texts, &number));
    assert_int_equal(number, -7);
    assert_false(link_get_number(&texts, &number));
    assert_null(link_get(&texts));
    free(texts.bytes);
    texts = (struct link_texts){.bytes = bytes + LINK_HEADER, .size = 5};
    assert_null(link_get(&texts)); /* unterminated */
}

static void file_make(char *path, const char *text)
{
    int fd = mkstemp(path);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, text, strlen(text)), strlen(text));
    assert_int_equal(fchmod(fd, 0700), 0);
    close(fd);
}

/* Hosts by the variables of batch systems. */
static void test_allocations(void **state)
{
    (void)state;
    static const struct {
        const char *name, *value, *file, *expected;
    } cases[] = {
        {"PBS_NODEFILE", NULL, "a\na\nb\n", "a:1 a:1 b:1"},
        {"LSB_DJOB_HOSTFILE", NULL, "a\nb\n", "a:1 b:1"},
        {"OAR_NODEFILE", NULL, "a\n", "a:1"},
        {"LSB_MCPU_HOSTS", " a 4  b 8 ", NULL, "a:4 b:8"},
        {"LSB_MCPU_HOSTS", "a 4 b", NULL, "!'b' has no number"},
        {"LSB_MCPU_HOSTS", "a x", NULL, "!"},
        {"PE_HOSTFILE", NULL, "a 4 q@a UNDEFINED\nb 2\n", "a:4 b:2"},
        {"PBS_NODEFILE", "/no/file", NULL, "!/no/file: No such file"},
        {"FLUX_URI", "local:", NULL, "n1:1 n2:1"},
    };
    char folder[] = "/tmp/pccl-flux-XXXXXX", flux[64];
    char *old = strdup(getenv("PATH"));
    assert_non_null(mkdtemp(folder));
    snprintf(flux, sizeof flux, "%s/flux", folder);
    FILE *script = fopen(flux, "w");
    assert_non_null(script);
    fputs("#!/bin/sh\necho 'n[1-2]'\n", script);
    fclose(script);
    assert_int_equal(chmod(flux, 0700), 0);
    for (size_t i = 0; i < ARRAY_COUNT(cases); i++) {
        struct host_list list = {0};
        const char *source = NULL;
        char error[256] = "", got[256] = "", path[] = "/tmp/pccl-hosts-XXXXXX";
        char paths[4096];
        snprintf(paths, sizeof paths, "%s:%s", folder, old);
        setenv("PATH", paths, 1);
        if (cases[i].file) file_make(path, cases[i].file);
        setenv(cases[i].name, cases[i].file ? path : cases[i].value, 1);
        bool good = allocation_hosts(&list, &source, error, sizeof error);
        for (size_t k = 0; good && k < list.count; k++)
            snprintf(got + strlen(got), sizeof got - strlen(got), "%s%s:%u",
                     k ? " " : "", list.entries[k].name, list.entries[k].slots);
        if (cases[i].file) unlink(path);
        unsetenv(cases[i].name);
        setenv("PATH", old, 1);
        assert_string_equal(source, cases[i].name);
        assert_int_equal(good, cases[i].expected[0] != '!');
        if (good) assert_string_equal(got, cases[i].expected);
        if (!good && !strstr(error, cases[i].expected + 1))
            fail_msg("%s: %s", cases[i].name, error);
        hosts_free(&list);
    }
    unlink(flux);
    rmdir(folder);
    free(old);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_lists),
        cmocka_unit_test(test_long_names),
        cmocka_unit_test(test_addresses_for_others),
        cmocka_unit_test(test_ways_of_ranks),
        cmocka_unit_test(test_hosts_left_out),
        cmocka_unit_test(test_placement),
        cmocka_unit_test(test_binding),
        cmocka_unit_test(test_machine),
        cmocka_unit_test(test_allocations),
        cmocka_unit_test(test_frames),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
