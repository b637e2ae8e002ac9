/* fuzz_surroundings.c - what the launcher finds around it: variables of a user
 * and of Slurm, names of hosts, other coordinators of its run and what they
 * answer, the token of its web page. Names are not looked up, and nobody is
 * connected to. */
#include <errno.h>
#include <ev.h>
#include <limits.h>
#include <netdb.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int fuzz_getaddrinfo(const char *host, const char *port,
                            const struct addrinfo *hints,
                            struct addrinfo **found);
static void fuzz_freeaddrinfo(struct addrinfo *found);
static int fuzz_getnameinfo(const struct sockaddr *at, socklen_t size,
                            char *host, socklen_t room, char *port,
                            socklen_t port_room, int flags);
#define getaddrinfo fuzz_getaddrinfo
#define freeaddrinfo fuzz_freeaddrinfo
#define getnameinfo fuzz_getnameinfo
#include "../../src/launch/surroundings.c"
#include "../../src/launch/coordinators.h"
#include "../../src/launch/web.h"
#include "fuzz.h"

#include <assert.h>

enum { TEXT_MOST = 400 };

static struct fuzz_input *u;
static FILE *quiet;

/* ------------------------------------------------------------------- others */

static int fuzz_getaddrinfo(const char *host, const char *port,
                            const struct addrinfo *hints,
                            struct addrinfo **found)
{
    static struct sockaddr_in name = {.sin_family = AF_INET};
    static struct addrinfo one = {.ai_addr = (struct sockaddr *)&name,
                                  .ai_addrlen = sizeof name};
    assert(host && *host && !port && hints->ai_socktype == SOCK_STREAM);
    *found = &one;
    return fuzz_u8(u) & 1 ? EAI_NONAME : 0;
}

static void fuzz_freeaddrinfo(struct addrinfo *found)
{
    assert(found);
}

static int fuzz_getnameinfo(const struct sockaddr *at, socklen_t size,
                            char *host, socklen_t room, char *port,
                            socklen_t port_room, int flags)
{
    assert(at && size > 0 && !port && port_room == 0 && flags);
    (void)snprintf(host, room, "10.0.0.7");
    return fuzz_u8(u) > 250 ? EAI_AGAIN : 0;
}

bool master_server_resolve(const char *host, uint16_t port,
                           struct wire_addr *out, const char **why)
{
    assert(host && out);
    *out = (struct wire_addr){.port = port, .family = 4};
    *why = "it has no address";
    return fuzz_u8(u) < 250;
}

/* The texts of another coordinator, or of anybody who listens there. */
bool master_status_print(const char *host, uint16_t port,
                         const struct run_key *key, bool json, FILE *out,
                         char *error, size_t error_size)
{
    static const char *const texts[] = {"{\"member_count\":3}",
                                        "{\"member_count\":0}",
                                        "{\"member_count\":",
                                        "{\"member_count\":-1",
                                        "{\"member_count\":x}",
                                        "{}",
                                        ""};
    uint8_t bits = fuzz_u8(u);
    (void)port, (void)key;
    assert(host && json);
    if (bits < 128) {
        fputs(texts[bits % ARRAY_COUNT(texts)], out);
    } else {
        size_t size = bits % 32u < u->left ? bits % 32u : u->left;
        (void)fwrite(u->at, 1, size, out);
        u->at += size;
        u->left -= size;
    }
    (void)snprintf(error, error_size, "nobody answers");
    return bits % 8 != 7;
}

static char web;
static const char *token_open; /* of the web server that was opened */

struct master_http *master_http_open(const struct master_http_options *options,
                                     char *error, size_t error_size)
{
    assert(options->loop);
    token_open = options->token;
    (void)snprintf(error, error_size, "it cannot listen");
    return fuzz_u8(u) > 200 ? NULL : (struct master_http *)&web;
}

uint16_t master_http_port(const struct master_http *http)
{
    assert(http == (struct master_http *)&web);
    return 80;
}

/* -------------------------------------------------------------- the texts */

static const char *text_of(void)
{
    static char text[TEXT_MOST];
    size_t size = fuzz_u8(u), i = 0;
    for (; i < size && u->left > 0; i++) {
        char c = (char)fuzz_u8(u);
        text[i] = c ? c : '/';
    }
    text[i] = '\0';
    return text;
}

static void variables(void)
{
    static const char *const names[] = {
        "PCCL_DEADLINE",      "MPIEXEC_TIMEOUT",
        "SLURM_JOB_ID",       "SLURM_JOBID",
        "SLURM_JOB_NODELIST", "SLURM_NODELIST",
        "PCCL_STATUS_TOKEN",  "SLURM_TASKS_PER_NODE",
        "PCCL_LOG_LEVEL",     "SLURM_JOB_CPUS_PER_NODE"};
    for (size_t i = 0; i < ARRAY_COUNT(names); i++) {
        uint8_t how = fuzz_u8(u);
        (void)unsetenv(names[i]);
        if (how % 4 == 1) (void)setenv(names[i], "n[1-3]", 1);
        if (how % 4 == 2) (void)setenv(names[i], text_of(), 1);
    }
    /* Where srun is looked for. */
    uint8_t how = fuzz_u8(u);
    (void)setenv("PATH", how & 1 ? "/usr/bin:/bin" : text_of(), 1);
}

static void read_variables(void)
{
    static struct options o;
    struct options_environment e;
    uint8_t bits = fuzz_u8(u);
    environment_read(&e);
    assert(e.batch &&
           (!e.nodes || getenv("SLURM_JOB_ID") || getenv("SLURM_JOBID")));
    o = (struct options){.log_json = bits & 1};
    char path[TEXT_MOST];
    (void)snprintf(path, sizeof path, "%s", text_of());
    if (bits & 2) o.log_file = path;
    log_setup(&o);
    const char *level = getenv("PCCL_LOG_LEVEL");
    assert(!o.log_file || (level && *level));
    assert(!o.log_file || *path == '\0' || *getenv("PCCL_LOG_FILE") == '/');
    free(library_path_find());
}

static void open_web(void)
{
    static const char *const hosts[] = {"", "127.0.0.1", "10.0.0.7", "::"};
    char line[MESSAGE_SIZE] = "";
    struct address at = {.port = 0};
    (void)snprintf(at.host, sizeof at.host, "%s",
                   hosts[fuzz_below(u, ARRAY_COUNT(hosts))]);
    token_open = NULL;
    bool opens = web_open(&at, ev_default_loop(0), line, sizeof line) != NULL;
    assert(*line != '\0' && !getenv("PCCL_STATUS_TOKEN"));
    /* Others reach it only with a token. */
    assert(!opens || !master_http_is_public(*at.host ? at.host : NULL) ||
           token_open);
}

/* ------------------------------------------------------------- coordinators */

static void settle(void)
{
    static struct options o;
    static const char *const hosts[] = {"127.0.0.1", "10.0.0.7", "localhost",
                                        "h",         "0.0.0.0",  ""};
    struct master_server_options setup = {.standby = false};
    o = (struct options){.stands_by = fuzz_u8(u) < 250,
                         .master_count = fuzz_below(u, MASTERS_MAX + 1)};
    struct address listen = {.port = fuzz_u8(u) % 2};
    (void)snprintf(listen.host, sizeof listen.host, "%s",
                   hosts[fuzz_below(u, ARRAY_COUNT(hosts))]);
    for (size_t i = 0; i < o.master_count; i++) {
        o.masters[i].port = fuzz_u8(u) % 2;
        (void)snprintf(o.masters[i].host, sizeof o.masters[i].host, "%s",
                       hosts[fuzz_below(u, ARRAY_COUNT(hosts))]);
    }
    bool good = coordinators_settle(&o, &listen, &setup);
    assert(!good || setup.master_count == (o.stands_by ? o.master_count : 0));
}

static void reserve(void)
{
    static struct options o;
    char error[200] = "";
    o = (struct options){.mode = fuzz_u8(u) & 1 ? MODE_LAUNCH : MODE_AGENT,
                         .rank_count = fuzz_u8(u),
                         .spares = fuzz_u8(u) & 7u,
                         .per_host = fuzz_u8(u) & 3u};
    (void)hosts_parse(&o.hosts, fuzz_u8(u) & 1 ? "localhost:3,h:2" : text_of(),
                      error, sizeof error);
    uint32_t count = o.rank_count + o.spares;
    assert(coordinators_reserve(&o) <= 3 * count + 3 * o.hosts.count);
    hosts_free(&o.hosts);
}

static void names(void)
{
    char host[HOST_SIZE];
    (void)snprintf(host, sizeof host, "%.*s", (int)sizeof host - 1,
                   fuzz_u8(u) & 1 ? "localhost" : text_of());
    bool good = host_resolve(host, "--listen");
    assert(!good || strlen(host) < sizeof host);
    assert(strcmp(host, "localhost") != 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    struct fuzz_input in = {bytes, size};
    FILE *error = stderr;
    if (!quiet) quiet = fopen("/dev/null", "w");
    assert(quiet);
    u = &in;
    stderr = quiet;
    variables();
    read_variables();
    open_web();
    settle();
    reserve();
    names();
    stderr = error;
    return 0;
}
