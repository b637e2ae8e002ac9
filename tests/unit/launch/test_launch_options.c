/* test_launch_options.c - table tests of the command line and of addresses. */
#include "../../../src/launch/options.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

enum { ARGS_MAX = 16 };

/* Splits text at blanks into argv, behind "pccl-master". */
static bool parse(struct options *options, char *copy, size_t size,
                  const char *text, char **argv)
{
    int argc = 0;
    assert_true(strlen(text) < size);
    memcpy(copy, text, strlen(text) + 1);
    argv[argc++] = (char *)(uintptr_t) "pccl-master";
    for (char *word = strtok(copy, " "); word; word = strtok(NULL, " ")) {
        assert_true(argc < ARGS_MAX);
        argv[argc++] = word;
    }
    argv[argc] = NULL;
    return options_parse(options, argc, argv);
}

static bool complete(struct options *options, const char *deadline)
{
    struct options_environment environment = {.deadline = deadline};
    return options_complete(options, &environment);
}

/* Command lines, and what is said of them. */
static const struct {
    const char *line, *error;
} bad_lines[] = {
    {"--nonsense", "unknown option '--nonsense'; see pccl-master"},
    {"-nonsense=3 a", "unknown option '-nonsense'"},
    {"--elatsic a", "'--elatsic', did you mean --elastic?"},
    {"-hostfil x a", "'-hostfil', did you mean --hostfile?"},
    {"--disable-auto a", "did you mean --disable-auto-cleanup?"},
    {"-cpu-set 0 a", "-cpu-set of other launchers is not supported"},
    {"-rankfile /no/file a", "-rankfile /no/file: No such file"},
    {"-rf /dev/null a", "-rf /dev/null: no rank is named"},
    {"-prefix here a", "-prefix here: it is an absolute folder"},
    {"-usize many a", "-usize needs a number of 1 or more"},
    {"--output-filename= a", "--output-filename needs a folder"},
    {"--launcher-agent= a", "--launcher-agent needs a command"},
    {"-bind-to moon a", "-bind-to moon: it is one of none, hwthread"},
    {"-bind-to core:0 a", "-bind-to core:0"},
    {"-s 4 -n 4 a", "-s 4: there are 4 ranks"},
    {"-s some a", "it is a rank, all or none"},
    {"-map-by ppr:2:moon a", "-map-by ppr:2:moon: it is node, slot"},
    {"-map-by nod -n 2 a", "-map-by nod: it is node, slot, hwthread"},
    {"-genv A -n 2 a", "-genv needs two values, 'A' and another"},
    {"--mca btl -np 2 a", "--mca needs two values, 'btl' and another"},
    {"-configfile /no/file", "/no/file: No such file"},
    {"-configfile /dev/null a", "none on the command line"},
    {"-configfile /dev/null", "no program to run"},
    {"--spares 0 a", "--spares needs a number of 1 or more"},
    {"--spares 4000 -n 1000 a", "5000 ranks: at most 4096"},
    {"--elastic 3 -n 2 a", "fewer than --elastic's minimum of 3"},
    {"-n", "-n needs a value"},
    {"-n 0 a", "-n needs a number of 1 or more, not '0'"},
    {"-np x a", "-np needs a number of 1 or more, not 'x'"},
    {"-n -3 a", "-n needs a number of 1 or more, not '-3'"},
    {"-n 3x a", "not '3x'"},
    {"-n 5000 a", "at most 4096"},
    {"-n 99999999999999999999 a", "at most 4096"},
    {"-n 4000 a : -n 4000 b", "8000 ranks: at most 4096"},
    {"-n 2", "no program to run"},
    {"-n 2 a :", "no program to run"},
    {"-l", "no program to run"},
    {"--timeout 0 a", "--timeout needs a number of seconds above 0"},
    {"--timeout nan a", "--timeout needs a number"},
    {"--deadline 3s", "not '3s'"},
    {"--deadline", "--deadline needs a value"},
    {"--restart x a", "--restart needs N or N,SECONDS with N from 0 to"},
    {"--restart -1 a", "from 0 to 1000000, not '-1'"},
    {"--restart 1000001 a", "not '1000001'"},
    {"--restart 99999999999999999999 a", "from 0 to 1000000, not '9999"},
    {"--restart 3x a", "from 0 to 1000000, not '3x'"},
    {"--restart ,3 a", "from 0 to 1000000, not ',3'"},
    {"--restart 3, a", "--restart needs a number of seconds above 0, not ''"},
    {"--restart 3,-1 a", "needs a number of seconds above 0, not '-1'"},
    {"--restart 3,nan a", "needs a number of seconds above 0, not 'nan'"},
    {"--restart", "--restart needs a value"},
    {"--restart 3", "no program to run"},
    {"--restart 3 --join a:1 p", "only its own pccl-master can start again"},
    {"--status a:1 --journal j", "--journal belongs to the pccl-master"},
    {"--join a:1 --master-grace 9 -n 1 x", "--master-grace belongs to a"},
    {"--listen 1 --masters a:1,b:2", "needs --master-grace SECONDS"},
    {"--listen 1 --masters a:1 --master-grace 9", "names all of them"},
    {"-n 2 --detach --journal j --master-grace 9 x",
     "--master-grace is for a coordinator alone: run 'pccl-master --listen "
     "ADDRESS:PORT --journal FILE --master-grace SECONDS', and start ranks "
     "with --join"},
    {"--journal j --master-grace 9s", "'9s'"},
    {"--elect http://a:1/x --listen 1",
     "--elect is not supported any more: with etcd, run 'etcdctl lock NAME "
     "-- pccl-master --journal FILE ...' on each host"},
    {"--elect-ttl=9", "--elect-ttl is not supported any more: with etcd, run"},
    {"--elect-auth f", "--elect-auth is not supported any more: with etcd"},
    {"--journal j --master-grace 9 --issuer i", "are not taken over"},
    {"--join a:1 --journal j -n 1 x", "--journal belongs to the pccl-master"},
    {"--join a:1,,b:2 -n 1 x", "--join: '' is no address"},
    {"--join a:1,b:2:x] -n 1 x", "--join: 'b:2:x]' is no address"},
    {"--masters a:1, -n 1 x", "--masters: '' is no address"},
    {"--join a,b,c,d,e,f,g,h,i -n 1 x", "at most 8 coordinators"},
    {"--quorum 0", "--quorum needs a number of 1 or more"},
    {"--listen 70000", "'70000' is no address"},
    {"--listen [::1", "'[::1' is no address"},
    {"--listen 1.2.3.4:x", "'1.2.3.4:x' is no address"},
    {"--join", "--join needs a value"},
    {"--join :80 a", "':80' is no address"},
    {"--join h:0 a", "'h:0' is no address"},
    {"--join h:80 --listen 1 a", "no --listen"},
    {"--join h:80", "no program to run"},
    {"--elastic=0 a", "--elastic needs a number of 1 or more"},
    {"--elastic=4:2 -n 4 a", "MIN is above MAX"},
    {"--elastic=3 -n 2 a", "fewer than --elastic's minimum of 3"},
    {"--elastic=1:2 -n 3 a", "more than --elastic's maximum of 2"},
    {"-env A", "-env needs two values"},
    {"-env A=B c d", "'A=B' is no name"},
    {"-env=A c d", "-env takes no '=A'"},
    {"-x =3 a", "is no name of a variable"},
    {"-l=3 a", "-l takes no '=3'"},
    {"-hosts a:x -n 2 a", "-hosts: 'a:x' is no host"},
    {"-f /no/hosts -n 2 a", "-f /no/hosts: No such file"},
    {"--peer-ports 9-3 a", "--peer-ports 9-3: a range of ports"},
    {"--peer-ports 70000 a", "a range of ports"},
    {"--peer-ports x a", "a range of ports"},
    {"--peer-ports 8000-8002 -n 4 a", "4 ranks need as many ports"},
    {"--peer-ports 8000-8002 -n 3 --spares 1 a", "8000-8002 has 3"},
    {"--peer-ports 8000-8002 -n 3 -l", "no program to run"},
    {"--announce :9 a", "--announce :9: HOST or HOST:PORT"},
    {"--announce h:9 -n 2 a", "2 ranks cannot all be reached at h:9"},
    {"--announce [::1]:9 -n 2 a", "cannot all be reached at [::1]:9"},
    {"-launcher rsh -n 2 a", "it is one of ssh, slurm"},
};

static void test_errors(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_COUNT(bad_lines); i++) {
        struct options options;
        char copy[256], *argv[ARGS_MAX + 1];
        bool good =
            parse(&options, copy, sizeof copy, bad_lines[i].line, argv) &&
            complete(&options, NULL);
        if (good || !strstr(options.error, bad_lines[i].error))
            fail_msg("%s: '%s'", bad_lines[i].line, options.error);
        options_free(&options);
    }
}

static void test_coordinator(void **state)
{
    (void)state;
    struct options o;
    char copy[256], *argv[ARGS_MAX + 1];
    assert_true(parse(&o, copy, sizeof copy, "", argv));
    assert_int_equal(o.mode, MODE_COORDINATOR);
    assert_int_equal(o.listen.port, 48148);
    assert_string_equal(o.listen.host, "");
    options_free(&o);
    assert_true(parse(&o, copy, sizeof copy,
                      "--listen=[::1]:5 --deadline 2.5 --quorum 3 -v", argv));
    assert_int_equal(o.mode, MODE_COORDINATOR);
    assert_string_equal(o.listen.host, "::1");
    assert_int_equal(o.listen.port, 5);
    assert_true(o.deadline_ns == 5 * PCCL_S / 2);
    assert_int_equal(o.quorum, 3);
    assert_true(complete(&o, "9"));
    assert_string_equal(o.deadline, "2.5");
    options_free(&o);
    assert_true(parse(&o, copy, sizeof copy, "-n 2 p", argv));
    assert_true(complete(&o, NULL));
    assert_null(o.deadline);
    assert_true(complete(&o, "9"));
    assert_true(o.deadline_ns == 9 * PCCL_S);
    options_free(&o);
    assert_true(parse(&o, copy, sizeof copy, "-n 2 p", argv));
    assert_false(complete(&o, "soon"));
    options_free(&o);
    assert_true(parse(&o, copy, sizeof copy, "-n x --help", argv) == false);
    options_free(&o);
    assert_true(parse(&o, copy, sizeof copy, "-n 3 --help", argv));
    assert_int_equal(o.mode, MODE_HELP);
    options_free(&o);
    assert_true(parse(&o, copy, sizeof copy, "-info", argv));
    assert_int_equal(o.mode, MODE_VERSION);
    options_free(&o);
    assert_true(parse(&o, copy, sizeof copy, "-V", argv));
    assert_int_equal(o.mode, MODE_VERSION);
    options_free(&o);
}

static void test_programs(void **state)
{
    (void)state;
    struct options o;
    char copy[256], *argv[ARGS_MAX + 1];
    assert_true(parse(&o, copy, sizeof copy,
                      "-genv G 1 --np=2 -wdir /tmp prog -n 9 : -env A b other",
                      argv) &&
                complete(&o, NULL));
    assert_int_equal(o.mode, MODE_LAUNCH);
    assert_int_equal(o.app_count, 2);
    assert_int_equal(o.rank_count, 3);
    assert_int_equal(o.apps[0].ranks, 2);
    assert_int_equal(o.apps[0].argc, 3);
    assert_string_equal(o.apps[0].argv[1], "-n");
    assert_string_equal(o.apps[0].directory, "/tmp");
    assert_int_equal(o.apps[1].ranks, 1);
    assert_int_equal(o.apps[1].argc, 1);
    assert_null(o.apps[1].directory);
    assert_string_equal(o.apps[1].settings.items[0], "A=b");
    assert_string_equal(o.settings.items[0], "G=1");
    assert_false(o.elastic);
    options_free(&o);

    /* every accepted spelling consumes its values */
    static const char *const lines[] = {
        "-ppn 3 -bind-to core --map-by slot -n 2 p",
        "--map-by l3cache:pe=2 -genv A -n -env B -1 -n 2 p",
        "--mca a b -n 2 p",
        "--oversubscribe --allow-run-as-root -n 2 p",
        "-envall -n 2 p",
        "-hosts localhost:4,127.0.0.1 -n 2 p",
        "-launcher fork -n 2 p",
        "-n 2 -- p",
        "-bind-to core:overload-allowed -usize SYSTEM -iface lo -n 2 p",
        "--mca plm_rsh_agent rsh:ssh --prefix /opt --display map -n 2 p",
        "-x A -x B=3 -n 2 p",
        "--path=/bin -n 2 p"};
    for (size_t i = 0; i < ARRAY_COUNT(lines); i++) {
        if (!parse(&o, copy, sizeof copy, lines[i], argv) ||
            !complete(&o, NULL))
            fail_msg("%s: %s", lines[i], o.error);
        assert_int_equal(o.rank_count, 2);
        assert_string_equal(o.apps[0].argv[0], "p");
        options_free(&o);
    }
}

/* --debug is a deadline; --map-by binds unless -bind-to says something else;
 * --drain is for a job that runs. */
static void test_later_options(void **state)
{
    (void)state;
    static const struct {
        const char *line;
        enum bind_kind kind, map;
    } maps[] = {{"--map-by socket p", BIND_SOCKET, BIND_SOCKET},
                {"--bind-to none --map-by numa p", BIND_NONE, BIND_NUMA},
                {"--map-by socket --bind-to core p", BIND_CORE, BIND_SOCKET},
                {"--map-by slot:PE=2 p", BIND_CORE, BIND_NONE},
                {"--map-by slot p", BIND_NONE, BIND_NONE}};
    struct options o;
    char copy[256], *argv[ARGS_MAX + 1];
    for (size_t i = 0; i < ARRAY_COUNT(maps); i++) {
        assert_true(parse(&o, copy, sizeof copy, maps[i].line, argv));
        assert_true(complete(&o, NULL));
        assert_int_equal(o.bind.kind, maps[i].kind);
        assert_int_equal(o.bind.map, maps[i].map);
        options_free(&o);
    }
    assert_true(parse(&o, copy, sizeof copy, "--debug p", argv));
    assert_true(complete(&o, "3"));
    assert_true(o.deadline_ns == 86400 * PCCL_S);
    assert_string_equal(o.deadline, "86400");
    options_free(&o);
    assert_true(parse(&o, copy, sizeof copy, "--drain n1 --pid 7", argv));
    assert_int_equal(o.mode, MODE_DRAIN);
    assert_string_equal(o.drain, "n1");
    assert_int_equal(o.pid, 7);
    options_free(&o);
    static const char *const wrong[] = {"--drain 1 p", "--pid 7",
                                        "--drain=", "--drain 1 --pid x"};
    for (size_t i = 0; i < ARRAY_COUNT(wrong); i++) {
        assert_false(parse(&o, copy, sizeof copy, wrong[i], argv));
        options_free(&o);
    }
}

/* Options of other launchers with the same meaning. */
static void test_synonyms(void **state)
{
    (void)state;
    struct options o;
    char copy[256], *argv[ARGS_MAX + 1];
    assert_true(parse(&o, copy, sizeof copy,
                      "--mca plm_rsh_agent far --mca prte_launch_agent it "
                      "--mca btl self -usize 9 -prepend-pattern %h p",
                      argv));
    assert_string_equal(o.launcher_exec, "far");
    assert_string_equal(o.agent, "it");
    assert_string_equal(o.universe, "9");
    assert_string_equal(o.label, "%h");
    options_free(&o);
    assert_true(parse(&o, copy, sizeof copy, "-l p", argv));
    assert_string_equal(o.label, "[%r] ");
    options_free(&o);
}

/* Default number of ranks, and the rank that reads standard input. */
static void test_counts(void **state)
{
    (void)state;
    struct options o;
    char copy[256], *argv[ARGS_MAX + 1];
    static const struct {
        const char *line, *nodes, *tasks;
        uint32_t ranks;
        int64_t reads;
    } cases[] = {
        {"p", NULL, NULL, 1, 0},
        {"-hosts a:3,b p", NULL, NULL, 4, 0},
        {"-hosts a:3,b -ppn 2 p", NULL, NULL, 4, 0},
        {"-hosts a:3,b p : q", NULL, NULL, 2, 0},
        {"-hosts a:3,b -n 2 -s all p", NULL, NULL, 2, STDIN_ALL},
        {"-s none p", NULL, NULL, 1, STDIN_NONE},
        {"p", "n[1-3]", "2(x2),1", 5, 0},
        {"-ppn 3 p", "n[1-3]", "2(x2),1", 9, 0},
        {"-hosts a p", "n[1-3]", "2(x2),1", 1, 0},
        {"-n 3 --elastic 2:4 -s 2 p", NULL, NULL, 3, 2},
    };
    for (size_t i = 0; i < ARRAY_COUNT(cases); i++) {
        struct options_environment environment = {
            .nodes = cases[i].nodes, .tasks = cases[i].tasks, .srun = true};
        if (!parse(&o, copy, sizeof copy, cases[i].line, argv) ||
            !options_complete(&o, &environment))
            fail_msg("%s: %s", cases[i].line, o.error);
        assert_int_equal(o.rank_count, cases[i].ranks);
        assert_int_equal(o.stdin_to, cases[i].reads);
        bool slurm = cases[i].nodes && o.hosts.count == 3;
        assert_int_equal(o.launcher, slurm ? LAUNCHER_SLURM : LAUNCHER_AUTO);
        options_free(&o);
    }
    assert_true(parse(&o, copy, sizeof copy, "--elastic 2:4 -n 3 p", argv));
    assert_int_equal(o.ranks_min, 2);
    assert_int_equal(o.ranks_max, 4);
    options_free(&o);
}

static void test_config(void **state)
{
    (void)state;
    struct options o;
    char copy[256], line[128], *argv[ARGS_MAX + 1];
    char path[] = "/tmp/pccl-config-XXXXXX";
    int fd = mkstemp(path);
    assert_true(fd >= 0);
    dprintf(fd, "# two programs\n-n 2 -env A 'b c' one \"x y\" z\\ z :\n\n"
                "   -n 3 two # behind\n");
    close(fd);
    snprintf(line, sizeof line, "-l -configfile %s", path);
    bool good = parse(&o, copy, sizeof copy, line, argv) && complete(&o, NULL);
    unlink(path);
    if (!good) fail_msg("%s", o.error);
    assert_non_null(o.label);
    assert_int_equal(o.app_count, 2);
    assert_int_equal(o.rank_count, 5);
    assert_int_equal(o.apps[0].argc, 3);
    assert_string_equal(o.apps[0].argv[1], "x y");
    assert_string_equal(o.apps[0].argv[2], "z z");
    assert_string_equal(o.apps[0].settings.items[0], "A=b c");
    assert_int_equal(o.apps[1].argc, 1);
    options_free(&o);
}

static void test_failures(void **state)
{
    (void)state;
    struct options o;
    char copy[256], *argv[ARGS_MAX + 1];
    assert_true(parse(&o, copy, sizeof copy, "--elastic=2:5 -n 4 p", argv));
    assert_true(o.elastic && o.shrink && !o.respawn);
    assert_int_equal(o.ranks_min, 2);
    assert_int_equal(o.ranks_max, 5);
    options_free(&o);
    assert_true(parse(&o, copy, sizeof copy,
                      "--elastic=2 --elastic=force -n 4 p", argv));
    assert_true(o.elastic && o.shrink && o.force);
    assert_int_equal(o.ranks_min, 2);
    options_free(&o);
    assert_true(parse(&o, copy, sizeof copy, "--elastic -n 4 p", argv));
    assert_false(o.force);
    assert_int_equal(o.ranks_min, 1);
    options_free(&o);
    assert_true(parse(&o, copy, sizeof copy, "--respawn -n 4 p", argv));
    assert_true(o.elastic && o.shrink && o.respawn);
    options_free(&o);
    assert_true(parse(&o, copy, sizeof copy, "--restart 3 -n 4 p", argv));
    assert_true(o.restarts == 3 && !o.has_pause && !o.elastic);
    options_free(&o);
    assert_true(parse(&o, copy, sizeof copy, "-max-restarts=3,0 p", argv));
    assert_true(o.restarts == 3 && o.has_pause && o.restart_pause == 0);
    options_free(&o);
    assert_true(parse(&o, copy, sizeof copy, "--restart 1000000,2.5 p", argv));
    assert_true(o.restarts == 1000000 && o.restart_pause == 2.5);
    options_free(&o);
    assert_true(
        parse(&o, copy, sizeof copy, "-disable-auto-cleanup -n 4 p", argv));
    assert_true(o.elastic && !o.shrink);
    options_free(&o);
    assert_true(parse(&o, copy, sizeof copy, "--join [::1]:7 p", argv));
    assert_true(o.join && o.elastic);
    assert_string_equal(o.masters[0].host, "::1");
    assert_int_equal(o.masters[0].port, 7);
    options_free(&o);
    assert_true(
        parse(&o, copy, sizeof copy, "--masters a:1,[::2]:2,c p", argv));
    assert_true(o.join);
    assert_int_equal(o.master_count, 3);
    assert_string_equal(o.masters[1].host, "::2");
    assert_string_equal(o.masters[2].host, "c");
    assert_int_equal(o.masters[2].port, MASTER_PORT);
    options_free(&o);
}

static void test_addresses(void **state)
{
    (void)state;
    static const struct {
        const char *text, *printed, *local;
    } cases[] = {
        {"1.2.3.4:80", "1.2.3.4:80", "1.2.3.4:80"},
        {"1.2.3.4", "1.2.3.4:48148", "1.2.3.4:48148"},
        {"80", "*:80", "127.0.0.1:80"},
        {":80", "*:80", "127.0.0.1:80"},
        {"*:80", "*:80", "127.0.0.1:80"},
        {"0.0.0.0:80", "0.0.0.0:80", "127.0.0.1:80"},
        {"[::]:80", "[::]:80", "[::1]:80"},
        {"::1", "[::1]:48148", "[::1]:48148"},
        {"[::1]", "[::1]:48148", "[::1]:48148"},
        {"[fe80::1%eth0]:9", "[fe80::1%eth0]:9", "[fe80::1%eth0]:9"},
        {"host.domain:9", "host.domain:9", "host.domain:9"},
        {"", NULL, NULL},
        {"[]:80", NULL, NULL},
        {"[::1]x", NULL, NULL},
        {"h:", NULL, NULL},
        {"h:65536", NULL, NULL},
        {"h:000080", NULL, NULL},
        {"a b:80", NULL, NULL},
    };
    for (size_t i = 0; i < ARRAY_COUNT(cases); i++) {
        struct address address;
        char text[300];
        bool good = address_parse(cases[i].text, 48148, &address);
        if (good != (cases[i].printed != NULL)) fail_msg("%s", cases[i].text);
        if (!good) continue;
        assert_string_equal(address_print(&address, text, sizeof text),
                            cases[i].printed);
        assert_string_equal(address_print_local(&address, text, sizeof text),
                            cases[i].local);
    }
    char longer[2 * HOST_SIZE];
    struct address address;
    memset(longer, 'h', sizeof longer);
    longer[sizeof longer - 1] = '\0';
    assert_false(address_parse(longer, 1, &address));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_errors),
        cmocka_unit_test(test_coordinator),
        cmocka_unit_test(test_programs),
        cmocka_unit_test(test_failures),
        cmocka_unit_test(test_counts),
        cmocka_unit_test(test_config),
        cmocka_unit_test(test_addresses),
        cmocka_unit_test(test_synonyms),
        cmocka_unit_test(test_later_options),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
