/* stub_server.c - a stub of master_server for tests of the launcher. It
 * executes one command line per connection: "abort CODE RANK", "report TEXT",
 * "warn TEXT", "loss TEXT", "members N", "pending N", "ended", or of this host
 * "evict PID", "came PID", "cut PID", and "owes PID": it has not left, until
 * "cut" or "left". Reports the quorum that it gets. */
#include "../../../src/base/host.h"
#include "../../../src/master/server/master_server.h"

#include <arpa/inet.h>
#include <errno.h>
#include <ev.h>
#include <netdb.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

struct master_server {
    struct master_server_options options;
    ev_io io;
    int fd;
    uint32_t members, pending;
    uint32_t owes;
    bool ended;
    char loss[256];
};

static void command_run(struct master_server *server, char *line)
{
    const struct master_server_options *o = &server->options;
    static const struct {
        const char *word;
        enum process_news news;
    } all[] = {{"evict", PROCESS_EVICTED},
               {"came", PROCESS_CAME},
               {"cut", PROCESS_CUT}};
    char word[16] = "";
    int code, rank;
    line[strcspn(line, "\n")] = '\0';
    if (sscanf(line, "abort %d %d", &code, &rank) == 2)
        o->aborted(o->user, code, rank);
    else if (strncmp(line, "report ", 7) == 0)
        o->report(o->user, line + 7);
    else if (strncmp(line, "warn ", 5) == 0)
        o->warn(o->user, line + 5);
    else if (strncmp(line, "loss ", 5) == 0)
        snprintf(server->loss, sizeof server->loss, "%s", line + 5);
    else if (strncmp(line, "members ", 8) == 0)
        server->members = (uint32_t)atoi(line + 8);
    else if (strncmp(line, "pending ", 8) == 0)
        server->pending = (uint32_t)atoi(line + 8);
    else if (strcmp(line, "ended") == 0)
        server->ended = true;
    if (sscanf(line, "%15s %d", word, &code) != 2) return;
    if (strcmp(word, "owes") == 0) server->owes = (uint32_t)code;
    if (strcmp(word, "cut") == 0 || strcmp(word, "left") == 0) server->owes = 0;
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++)
        if (strcmp(word, all[i].word) == 0)
            o->process(o->user, host_id(), (uint32_t)code, all[i].news);
}

static void connection_came(struct ev_loop *loop, ev_io *io, int events)
{
    (void)loop;
    (void)events;
    struct master_server *server = io->data;
    char line[256] = "";
    int fd = accept4(server->fd, NULL, NULL, SOCK_CLOEXEC);
    if (fd < 0) return;
    ssize_t size = read(fd, line, sizeof line - 1);
    if (size > 0) command_run(server, line);
    close(fd);
}

struct master_server *master_server_open(const struct master_server_options *o,
                                         char *error, size_t error_size)
{
    struct addrinfo hints = {.ai_flags = AI_PASSIVE | AI_NUMERICHOST,
                             .ai_socktype = SOCK_STREAM};
    struct addrinfo *found = NULL;
    char port[8];
    snprintf(port, sizeof port, "%u", (unsigned)o->port);
    struct master_server *server = calloc(1, sizeof *server);
    if (!server || getaddrinfo(o->host, port, &hints, &found) != 0) abort();
    server->options = *o;
    server->fd = socket(found->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
    int on = 1;
    (void)setsockopt(server->fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    int bad = bind(server->fd, found->ai_addr, found->ai_addrlen);
    freeaddrinfo(found);
    if (bad != 0 || listen(server->fd, 64) != 0) {
        snprintf(error, error_size, "%s", strerror(errno));
        close(server->fd);
        free(server);
        return NULL;
    }
    ev_io_init(&server->io, connection_came, server->fd, EV_READ);
    server->io.data = server;
    ev_io_start(o->loop, &server->io);
    return server;
}

uint16_t master_server_port(const struct master_server *server)
{
    struct sockaddr_storage name;
    socklen_t size = sizeof name;
    if (getsockname(server->fd, (struct sockaddr *)&name, &size) != 0) abort();
    return ntohs(name.ss_family == AF_INET6
                     ? ((struct sockaddr_in6 *)&name)->sin6_port
                     : ((struct sockaddr_in *)&name)->sin_port);
}

void master_server_set_quorum(struct master_server *server, uint32_t quorum)
{
    char line[64];
    snprintf(line, sizeof line, "quorum %u", quorum);
    server->options.report(server->options.user, line);
}

uint32_t master_server_members(const struct master_server *server)
{
    return server->members;
}

bool master_server_has_ended(const struct master_server *server)
{
    return server->ended;
}

bool master_server_awaits_leave(const struct master_server *server,
                                uint64_t host, uint32_t pid)
{
    return host == host_id() && pid == server->owes;
}

uint32_t master_server_traits_left(const struct master_server *server)
{
    (void)server;
    return 0;
}

uint32_t master_server_pending(const struct master_server *server)
{
    return server->pending;
}

void master_server_evidence(struct master_server *server, uint64_t id,
                            enum evidence evidence)
{
    (void)server;
    (void)id;
    (void)evidence;
}

void master_server_write(struct master_server *server, enum status_form form,
                         struct status_writing *w)
{
    *w = (struct status_writing){.text = malloc(64)};
    if (!w->text) return;
    w->size = (size_t)snprintf(w->text, 64, "form %d, %u members\n", (int)form,
                               server->members);
}

const char *master_server_loss(const struct master_server *server)
{
    return server->loss;
}

char *master_server_status(struct master_server *server)
{
    char *text = malloc(64);
    if (text) snprintf(text, 64, "status of %u members\n", server->members);
    return text;
}

bool master_server_revoke(struct master_server *server, const char *path,
                          char *error, size_t error_size)
{
    (void)server;
    (void)path;
    snprintf(error, error_size, "nobody has a name");
    return false;
}

void master_server_answer(struct master_server *server, uint64_t ticket,
                          bool admits, const char *why)
{
    (void)server;
    (void)ticket;
    (void)admits;
    (void)why;
}

bool master_status_print(const char *host, uint16_t port,
                         const struct run_key *key, bool json, FILE *out,
                         char *error, size_t error_size)
{
    (void)key;
    snprintf(error, error_size, "nobody is there");
    if (port == 1) return false;
    fprintf(out, "%s of %s:%u\n", json ? "JSON" : "text", host, (unsigned)port);
    return true;
}

void master_server_close(struct master_server *server)
{
    ev_io_stop(server->options.loop, &server->io);
    close(server->fd);
    free(server);
}
