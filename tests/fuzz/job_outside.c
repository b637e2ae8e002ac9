/* job_outside.c - see job_outside.h. */
#include "job_outside.h"

#include "../../src/launch/spawn.h"
#include "../../src/master/server/master_server.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { PROCESSES = 64, WORDS = 100, FIRST_PID = 1000000000 };

struct outside outside;

static struct outside_process processes[PROCESSES];
static uint32_t count;
static char *words[WORDS];
static int word_count;

void words_keep(char **added, int number)
{
    for (int i = 0; i < number; i++) {
        assert(word_count < WORDS);
        words[word_count++] = added[i];
    }
}

void words_free(void)
{
    while (word_count > 0) free(words[--word_count]);
}

void outside_begin(uint8_t luck)
{
    outside = (struct outside){.luck = luck, .pending = luck >> 5 & 1};
}

/* -------------------------------------------------------------- processes */

static int hold(int fd)
{
    int own = fcntl(fd, F_DUPFD_CLOEXEC, 3);
    if (own >= 0) (void)fcntl(own, F_SETFL, fcntl(own, F_GETFL) | O_NONBLOCK);
    return own;
}

static void let_go(int *fd)
{
    if (*fd >= 0) close(*fd);
    *fd = -1;
}

pid_t spawn_process(const struct spawn_request *request,
                    struct spawn_failure *failure)
{
    static const int errors[] = {ENOENT, EAGAIN, EACCES, ENOEXEC};
    assert(request->argc > 0 && request->argv[request->argc] == NULL);
    for (int i = 0; i < request->argc; i++) assert(request->argv[i]);
    assert(request->file && request->env && request->in >= 0);
    for (char *const *item = request->env; *item; item++)
        assert(strncmp(*item, "PMIX_", 5) != 0 || request->in != 0);
    if (count == PROCESSES || outside.luck % 8 == 7) {
        *failure =
            (struct spawn_failure){.what = "cannot execute",
                                   .is_directory = outside.luck >> 3 & 1,
                                   .error = errors[outside.luck >> 4 & 3]};
        failure->is_directory = failure->is_directory && request->directory;
        outside.luck /= 2;
        return -1;
    }
    outside.luck++;
    struct outside_process *p = &processes[count];
    p->pid = FIRST_PID + (pid_t)count++;
    p->in = hold(request->in);
    p->out = hold(request->out);
    p->err = hold(request->err);
    return p->pid;
}

struct outside_process *outside_process(uint32_t which)
{
    return count > 0 ? &processes[which % count] : NULL;
}

struct outside_process *outside_by_pid(pid_t pid)
{
    bool known = pid >= FIRST_PID && pid < FIRST_PID + (pid_t)count;
    return known ? &processes[pid - FIRST_PID] : NULL;
}

void outside_leave(struct outside_process *p, bool closes)
{
    if (!closes) return;
    let_go(&p->in);
    let_go(&p->out);
    let_go(&p->err);
}

void outside_end(void)
{
    while (count > 0) outside_leave(&processes[--count], true);
}

/* ------------------------------------------------------------ coordinator */

static char coordinator;

struct master_server *outside_server(void)
{
    return (struct master_server *)&coordinator;
}

void master_server_set_quorum(struct master_server *server, uint32_t quorum)
{
    (void)server;
    assert(quorum > 0);
}

void master_server_evidence(struct master_server *server, uint64_t id,
                            enum evidence evidence)
{
    (void)server, (void)id;
    assert(evidence < EVIDENCE_COUNT);
}

uint32_t master_server_members(const struct master_server *server)
{
    (void)server;
    return outside.members;
}

bool master_server_awaits_leave(const struct master_server *server,
                                uint64_t host, uint32_t pid)
{
    (void)server, (void)host;
    return outside.pending > 0 && pid % 2 == 0;
}

uint32_t master_server_traits_left(const struct master_server *server)
{
    (void)server;
    return outside.pending;
}

uint32_t master_server_pending(const struct master_server *server)
{
    (void)server;
    return outside.pending;
}

bool master_server_has_ended(const struct master_server *server)
{
    (void)server;
    return outside.ended;
}

const char *master_server_loss(const struct master_server *server)
{
    (void)server;
    return outside.lost ? "rank 2 is lost" : "";
}

char *master_server_status(struct master_server *server)
{
    (void)server;
    return outside.lost ? NULL : strdup("no status\n");
}
