/* fuzz_launch.c - what the launcher reads of others and of its user: frames of
 * agents, lists of hosts, what Slurm says, addresses, command lines, the files
 * that these name, and the environment. */
#include "fuzz.h"

#include "../../src/base/env.h"
#include "../../src/base/address.h"
#include "../../src/launch/agent_link.h"
#include "../../src/launch/allocation.h"
#include "../../src/launch/hosts.h"
#include "../../src/launch/options.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

static void decode(const char *bytes, size_t size)
{
    struct link_frame f;
    while (link_decode(bytes, size, &f) == LINK_OK) {
        char header[LINK_HEADER];
        assert(f.size <= LINK_FRAME_MAX && f.size + LINK_HEADER <= size);
        assert(f.bytes == bytes + LINK_HEADER);
        link_header(header, f.type, f.rank, f.size);
        assert(memcmp(header, bytes, sizeof header) == 0);
        struct link_texts texts = {.bytes = (char *)(uintptr_t)f.bytes,
                                   .size = f.size};
        int64_t number;
        while (link_get_number(&texts, &number)) continue;
        const char *text;
        while ((text = link_get(&texts))) assert(strlen(text) < f.size);
        bytes += LINK_HEADER + f.size;
        size -= LINK_HEADER + f.size;
    }
}

static void judge(struct host_list *list, bool taken)
{
    for (size_t i = 0; taken && i < list->count; i++) {
        /* It becomes a word of the command line of ssh. */
        const char *name = list->entries[i].name;
        assert(name && name[0] && name[0] != '-' && strlen(name) < HOST_SIZE);
    }
    hosts_free(list);
    *list = (struct host_list){0};
}

/* The print of an address is read as that address. */
static void address(const char *text)
{
    struct address a, b;
    char printed[HOST_SIZE + 16];
    if (!address_parse(text, 1, &a)) return;
    assert(address_parse(address_print(&a, printed, sizeof printed), 2, &b));
    assert(strcmp(a.host, b.host) == 0 && a.port == b.port);
    address_print_local(&a, printed, sizeof printed);
    assert(address_parse(printed, 2, &b) && b.host[0] && a.port == b.port);
}

/* What batch systems say of their hosts: in a file, or in the variable. */
static void allocation(const char *text, uint32_t kind)
{
    static const char *const names[] = {"PE_HOSTFILE", "LSB_MCPU_HOSTS",
                                        "PBS_NODEFILE", "OAR_NODEFILE",
                                        "LSB_DJOB_HOSTFILE"};
    static int fd = -1;
    const char *name = names[kind % ARRAY_COUNT(names)], *source = NULL;
    bool named = strcmp(name, "LSB_MCPU_HOSTS") != 0 && kind < 250;
    struct host_list list = {0};
    char path[64], error[200] = "";
    if (fd < 0) fd = memfd_create("hosts", MFD_CLOEXEC);
    size_t size = strlen(text);
    if (fd < 0 || ftruncate(fd, 0) != 0) return;
    if (pwrite(fd, text, size, 0) != (ssize_t)size) return;
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    if (setenv(name, named ? path : text, 1) != 0) return;
    bool taken = allocation_hosts(&list, &source, error, sizeof error);
    assert(taken || (source && error[0] != '\0'));
    judge(&list, taken);
    unsetenv(name);
}

/* Mostly of what has a meaning there. */
static void texts(const uint8_t *in, size_t size)
{
    static const char letters[] = "a0-b19,:[]() x=\n#slot rank*.@%";
    char *text = malloc(size + 1);
    struct host_list list = {0};
    char error[200] = "";
    assert(text);
    for (size_t i = 0; i < size; i++) {
        text[i] = letters[in[i] % (sizeof letters - 1)];
        if (in[i] > 250) text[i] = (char)in[i];
    }
    text[size] = '\0';
    judge(&list, hosts_parse(&list, text, error, sizeof error));
    judge(&list, hosts_parse_file(&list, text, error, sizeof error));
    judge(&list, hosts_parse_ranks(&list, text, error, sizeof error));
    judge(&list, hosts_parse_slurm(&list, text, NULL, error, sizeof error));
    judge(&list, hosts_parse_pairs(&list, text, size & 1, error, sizeof error));
    judge(&list, hosts_parse_slurm(&list, "a[1-3]", text, error, sizeof error));
    address(text);
    allocation(text, size > 0 ? in[0] : 0);
    free(text);
}

/* --------------------------------------------------------- command lines */

static const char *const words[] = {"-n",
                                    "2",
                                    "-np",
                                    "-env",
                                    "A",
                                    "=",
                                    "-envall",
                                    "-envnone",
                                    "-envlist",
                                    "A,B",
                                    "-genv",
                                    "-genvall",
                                    "-genvnone",
                                    "-genvlist",
                                    "-x",
                                    "A=1",
                                    "-wdir",
                                    "/",
                                    "-path",
                                    "-configfile",
                                    "FILE",
                                    "-app",
                                    "-s",
                                    "all",
                                    "none",
                                    "-stdin=1",
                                    "-listen",
                                    "*:1",
                                    "-join",
                                    "h:1",
                                    "--deadline",
                                    "1.5",
                                    "-timeout",
                                    "1e9",
                                    "-quorum",
                                    "-elastic",
                                    "1:4",
                                    "--elastic=force",
                                    "-disable-auto-cleanup",
                                    "-enable-recovery",
                                    "-respawn",
                                    "-spares",
                                    "-restart",
                                    "3,0.5",
                                    "-max-restarts",
                                    "-l",
                                    "-prepend-pattern",
                                    "%r",
                                    "-merge-stderr-to-stdout",
                                    "-output-filename",
                                    "-outfile-pattern",
                                    "-errfile-pattern",
                                    "x.%r",
                                    "-v",
                                    "-h",
                                    "-V",
                                    "-host",
                                    "-hosts",
                                    "a,b:4,[::1]:2",
                                    "-H",
                                    "-f",
                                    "-hostfile",
                                    "-launcher",
                                    "ssh",
                                    "slurm",
                                    "fork",
                                    "-launcher-exec",
                                    "rsh -x",
                                    "-launcher-agent",
                                    "-prefix",
                                    "-iface",
                                    "eth0",
                                    "-mca",
                                    "plm_rsh_agent",
                                    "orte_launch_agent",
                                    "-pmca",
                                    "-rankfile",
                                    "-usize",
                                    "-info",
                                    "-ppn",
                                    "-pernode",
                                    "-map-by",
                                    "node",
                                    "ppr:2:node",
                                    "core:PE=2",
                                    "-bind-to",
                                    "core:2",
                                    "socket",
                                    "numa",
                                    "-binding",
                                    "-bind-to-core",
                                    "-bind-to-socket",
                                    "--agent",
                                    "-until-done",
                                    ":",
                                    "--",
                                    "program",
                                    "",
                                    "-",
                                    "0",
                                    "4097",
                                    "99999999999",
                                    "-1",
                                    "1e",
                                    "nan",
                                    "a:b",
                                    "-unknown",
                                    "--n=3",
                                    "-quiet",
                                    "-output",
                                    "-s=0",
                                    "-display-map",
                                    "-masters",
                                    "a:1,b,[::1]:3",
                                    "a,b,c,d,e,f,g,h,i",
                                    "a,,b:0",
                                    "-status",
                                    "-status-http",
                                    "*",
                                    "127.0.0.1:8080",
                                    "-json",
                                    "-journal",
                                    "-detach",
                                    "-attach",
                                    "-state",
                                    "-drain",
                                    "-pid",
                                    "-token-file",
                                    "-make-token",
                                    "-make-issuer",
                                    "-issuer",
                                    "-issue",
                                    "alice",
                                    "-group",
                                    "-rights",
                                    "join,observe",
                                    "-expires",
                                    "30d",
                                    "-revoked",
                                    "-hook",
                                    "-insecure",
                                    "-relay",
                                    "-peer-ports",
                                    "1000-1010",
                                    "-announce",
                                    "-log-file",
                                    "-log-json",
                                    "-min-ranks",
                                    "-report-bindings",
                                    "-print-all-exitcodes",
                                    "-timestamp-output",
                                    "-debug",
                                    "-elect",
                                    "http://127.0.0.1:2379/run",
                                    "30"};

/* A word of the list, or of the input: at most 30 bytes after their number. */
static char *take_word(struct fuzz_input *in, const char *file)
{
    uint8_t number = fuzz_u8(in);
    static_assert(ARRAY_COUNT(words) < 180, "most numbers are words");
    if (number < ARRAY_COUNT(words)) {
        const char *word = words[number];
        return strdup(strcmp(word, "FILE") == 0 ? file : word);
    }
    if (number < 188) return strdup(file);
    size_t size = number % 31u;
    if (size > in->left) size = in->left;
    char *word = strndup((const char *)in->at, size);
    in->at += size;
    in->left -= size;
    return word;
}

/* The rest of the input as a file. */
static int make_file(const struct fuzz_input *in, char *path, size_t room)
{
    int fd = memfd_create("fuzz", MFD_CLOEXEC);
    assert(fd >= 0);
    ssize_t ignored = write(fd, in->at, in->left);
    (void)ignored;
    (void)snprintf(path, room, "/proc/self/fd/%d", fd);
    return fd;
}

static void command_line(const uint8_t *bytes, size_t size)
{
    enum { WORDS_MAX = 24 };
    char *argv[WORDS_MAX + 2] = {NULL};
    char file[64];
    struct fuzz_input in = {bytes, size};
    int count = 1 + (int)fuzz_below(&in, WORDS_MAX);
    size_t list = in.left < 64 ? in.left : 64;
    struct fuzz_input rest = {in.at + list, in.left - list};
    in.left = list;
    int fd = make_file(&rest, file, sizeof file);
    argv[0] = strdup("pccl-master");
    for (int i = 1; i < count; i++) argv[i] = take_word(&in, file);
    struct options options;
    const char *deadline = size % 3 == 0 ? argv[count - 1] : NULL;
    const struct options_environment environment = {
        .deadline = deadline,
        .nodes = size % 5 == 0 ? "n[01-03,7],m" : NULL,
        .tasks = size % 2 == 0 ? "2(x3),1" : NULL,
        .srun = size % 7 == 0};
    bool good = options_parse(&options, count, argv) &&
                options_complete(&options, &environment);
    assert(good || options.error[0] != '\0');
    for (size_t i = 0; good && i < options.hosts.count; i++)
        assert(options.hosts.entries[i].name[0] != '-');
    if (good && options.mode == MODE_LAUNCH) {
        struct placement p;
        placement_make(&p, &options.hosts, options.per_host,
                       options.rank_count + options.spares);
        placement_free(&p);
    }
    options_free(&options);
    for (int i = 0; i < count; i++) free(argv[i]);
    close(fd);
}

static void ignore(const char *text)
{
    (void)text;
}

static void environment(const uint8_t *in, size_t size)
{
    static const char digits[] = "0123456789.e-+naif x";
    char text[24] = "";
    for (size_t i = 0; i < size && i + 1 < sizeof text; i++)
        text[i] = digits[in[i] % (sizeof digits - 1)];
    (void)setenv("PCCL_DEADLINE", text, 1);
    (void)setenv("PCCL_MASTER_PATIENCE", text, 1);
    int64_t ns = env_seconds_ns("PCCL_DEADLINE", ignore);
    assert(ns == 0 || (ns >= PCCL_MS * 10 && ns <= 1000000 * PCCL_S));
    assert(env_seconds_ns("PCCL_MASTER_PATIENCE", ignore) == ns);
    (void)env_is_known(text);
}

int LLVMFuzzerTestOneInput(const uint8_t *in, size_t size)
{
    if (size == 0) return 0;
    switch (in[0] % 4) {
    case 0:
        command_line(in + 1, size - 1);
        return 0;
    case 1:
        texts(in + 1, size - 1 < 128 ? size - 1 : 128);
        environment(in + 1, size - 1);
        return 0;
    default:
        break;
    }
    decode((const char *)in, size);
    char *framed = malloc(LINK_HEADER + size + 1);
    assert(framed);
    link_header(framed, (enum link_type)(1 + in[0] % LINK_ALIVE), 3, size);
    memcpy(framed + LINK_HEADER, in, size);
    decode(framed, LINK_HEADER + size);
    free(framed);
    return 0;
}
