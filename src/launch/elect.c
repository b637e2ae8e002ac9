/* elect.c - the elector. See elect.h. */
#include "elect.h"

#include "../base/host.h"
#include "descriptor.h"
#include "elect_child.h"
#include "elect_http.h"
#include "elect_place.h"

#include <errno.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
    TTL_DEFAULT = 10, /* s */
    MARGIN_PARTS = 5, /* of the lease: the right ends that much before */
    RENEWS = 3,       /* in the time of a lease */
    RETRIES = 15,     /* likewise, where nobody answers */
    SHOWS = 6,        /* likewise: the coordinator shows that it runs */
};

/* Paces: how often one looks whether the other still leads, and asks again
 * where nobody answered. */
#define LOOK_PAUSE PCCL_S

struct elector {
    const struct options *options;
    struct elect_place place;
    struct elect_account account;
    struct elect_http *http;
    struct elect_child child;
    struct http_answer answer;
    struct etcd_said said;
    char own[ETCD_VALUE_SIZE];   /* our address */
    char other[ETCD_VALUE_SIZE]; /* of the one that led last */
    char token[ETCD_TOKEN_SIZE]; /* of the account, or "" */
    char why[MESSAGE_SIZE];      /* the last question failed so, everywhere */
    size_t at;                   /* the place that is asked first */
    pccl_ns ttl;                 /* asked for */
    uint64_t lease;              /* 0: none */
    bool leads;                  /* a question is broken off if it ends */
    bool resigns;                /* nothing breaks off a question */
    bool silent;                 /* nobody answers, and that is told */
    int status;
};

/* A question: where, what, and how the answer is read. */
struct etcd_question {
    const char *path;
    const char *body;
    etcd_reader *read;
};

__attribute__((format(printf, 2, 3))) static void tell(const struct elector *e,
                                                       const char *format, ...)
{
    char line[MESSAGE_SIZE * 2];
    va_list args;
    va_start(args, format);
    (void)vsnprintf(line, sizeof line, format, args);
    va_end(args);
    fprintf(stderr, "pccl-master: election %s: %s\n", e->place.name, line);
}

/* -------------------------------------------------------------- questions */

/* While an answer is waited for. */
static bool look(void *user)
{
    struct elector *e = user;
    child_look(&e->child);
    if (e->resigns) return true;
    return !e->child.stopping && (!e->leads || e->child.pid > 0);
}

/* One question to one place. */
static bool ask_place(struct elector *e, const struct etcd_question *q)
{
    char url[ENDPOINT_SIZE + 64], why[HTTP_WHY_SIZE], said[ETCD_WHY_SIZE];
    const char *place = e->place.endpoints[e->at];
    (void)snprintf(url, sizeof url, "%s/v3/%s", place, q->path);
    /* All of them can be asked before a lease ends. */
    double limit = (double)e->ttl / PCCL_S / (double)(e->place.count + 2);
    bool done = elect_http_post(e->http, url, e->token, q->body, limit,
                                &e->answer, why);
    struct http_answer *a = &e->answer;
    if (done && a->status == 200) {
        done = q->read(a->text, a->size, &e->said, said);
        (void)snprintf(why, sizeof why, "%s", said);
    } else if (done) {
        etcd_read_error(a->text, a->size, said);
        (void)snprintf(why, sizeof why, "HTTP status %ld%s%s", a->status,
                       *said ? ": " : "", said);
        done = false;
    }
    size_t used = strlen(e->why);
    if (!done)
        (void)snprintf(e->why + used, sizeof e->why - used, "%s%s: %s: %s",
                       used > 0 ? "; " : "", place, q->path, why);
    return done;
}

/* The account gets a token, which ends after a while. */
static bool log_in(struct elector *e)
{
    char body[ETCD_BODY_SIZE];
    if (!etcd_ask_login(body, e->account.user, e->account.password)) {
        (void)snprintf(e->why, sizeof e->why,
                       "the user or the password is too long");
        return false;
    }
    *e->token = '\0';
    bool done = ask_place(
        e, &(struct etcd_question){"auth/authenticate", body, etcd_read_login});
    if (done) (void)snprintf(e->token, sizeof e->token, "%s", e->said.token);
    explicit_bzero(body, sizeof body);
    return done;
}

/* A token that is not known (any more) is answered by 401, or by an error of
 * etcd's own: it is cheap to ask for another one. */
static bool ask_once(struct elector *e, const struct etcd_question *q)
{
    if (!e->account.user) return ask_place(e, q);
    bool fresh = *e->token == '\0';
    if (fresh && !log_in(e)) return false;
    if (ask_place(e, q)) return true;
    if (fresh || e->answer.status < 400 || e->answer.status >= 500)
        return false;
    return log_in(e) && ask_place(e, q);
}

/* Each place in turn, the one that answered last first. */
static bool ask(struct elector *e, const char *path, const char *body,
                etcd_reader *read)
{
    struct etcd_question q = {path, body, read};
    *e->why = '\0';
    for (size_t i = 0; i < e->place.count; i++) {
        if (ask_once(e, &q)) return true;
        if (!look(e)) return false;
        e->at = (e->at + 1) % e->place.count;
        if (!e->account.token) *e->token = '\0';
    }
    return false;
}

/* The whole of what follows a lease is `ttl`; the right is less. */
static pccl_ns right_from(pccl_ns sent, uint64_t ttl)
{
    pccl_ns all = (pccl_ns)ttl * PCCL_S;
    return sent + all - all / MARGIN_PARTS;
}

/* -------------------------------------------------------------- the election
 */

static void tell_silence(struct elector *e)
{
    if (e->silent || e->child.stopping) return;
    e->silent = true;
    tell(e, "%s; it is tried again", e->why);
}

static void tell_other(struct elector *e, const char *other)
{
    if (strcmp(e->other, other) == 0) return;
    (void)snprintf(e->other, sizeof e->other, "%s", other);
    tell(e, "%s coordinates; this one waits", other);
}

/* Best effort: a lease ends by itself. */
static void resign(struct elector *e)
{
    char body[ETCD_BODY_SIZE];
    if (e->lease == 0) return;
    e->resigns = true;
    (void)(etcd_ask_lease(body, e->lease) &&
           ask(e, "lease/revoke", body, etcd_read_revoke));
    e->resigns = false;
    e->lease = 0;
}

/* Whether the key is free. */
static bool is_vacant(struct elector *e)
{
    char body[ETCD_BODY_SIZE];
    if (!etcd_ask_key(body, e->place.name) ||
        !ask(e, "kv/range", body, etcd_read_key)) {
        tell_silence(e);
        return false;
    }
    if (e->silent) tell(e, "it answers again");
    e->silent = false;
    if (e->said.taken) tell_other(e, e->said.value);
    return !e->said.taken;
}

/* True: this one is elected, and its right lasts until *until. */
static bool campaign(struct elector *e, pccl_ns *until)
{
    char body[ETCD_BODY_SIZE];
    if (!is_vacant(e)) return false;
    pccl_ns sent = host_time();
    if (!etcd_ask_grant(body, (uint64_t)(e->ttl / PCCL_S)) ||
        !ask(e, "lease/grant", body, etcd_read_grant)) {
        tell_silence(e);
        return false;
    }
    e->lease = e->said.lease;
    *until = right_from(sent, e->said.ttl);
    bool heard = etcd_ask_campaign(body, e->place.name, e->own, e->lease) &&
                 ask(e, "kv/txn", body, etcd_read_campaign);
    /* A place may have done what another one was asked again. */
    bool won =
        heard && (e->said.won || (e->said.taken && e->said.lease == e->lease));
    if (won && !e->child.stopping && host_time() < *until) return true;
    if (!heard) tell_silence(e);
    if (heard && !won) tell_other(e, e->said.value);
    resign(e);
    return false;
}

enum renewed { RENEWED, UNHEARD, UNELECTED };

/* The lease lives, and the key is still its own: somebody may have removed it
 * by hand. */
static enum renewed renew(struct elector *e, pccl_ns *until)
{
    char body[ETCD_BODY_SIZE];
    pccl_ns sent = host_time();
    if (!etcd_ask_lease(body, e->lease) ||
        !ask(e, "lease/keepalive", body, etcd_read_renew))
        return UNHEARD;
    if (e->said.ttl == 0 || e->said.lease != e->lease) {
        (void)snprintf(e->why, sizeof e->why, "the lease is over");
        return UNELECTED;
    }
    *until = right_from(sent, e->said.ttl);
    if (!etcd_ask_key(body, e->place.name) ||
        !ask(e, "kv/range", body, etcd_read_key))
        return UNHEARD;
    if (e->said.taken && e->said.lease == e->lease) return RENEWED;
    (void)snprintf(e->why, sizeof e->why, "the key is not its own any more");
    return UNELECTED;
}

/* One that hangs, or was stopped, is to be followed by another one. */
static bool runs(struct elector *e)
{
    pccl_ns seen = right_seen(e->child.right);
    if (host_time() - seen <= e->ttl) return true;
    (void)snprintf(
        e->why, sizeof e->why,
        "the coordinator does not run, and its lease is not renewed");
    return false;
}

/* Renews until the coordinator has ended, or its right. */
static void keep(struct elector *e, pccl_ns until)
{
    pccl_ns next = host_time() + e->ttl / RENEWS;
    bool late = false;
    while (e->child.pid > 0 && !e->child.stopping) {
        child_wait(&e->child, next);
        if (e->child.pid == 0 || e->child.stopping) break;
        enum renewed r = runs(e) ? renew(e, &until) : UNHEARD;
        if (e->child.pid == 0 || e->child.stopping) break;
        if (r == UNELECTED) {
            tell(e, "%s; the coordinator is ended", e->why);
            child_kill(&e->child);
            return;
        }
        if (r == RENEWED) child_extend(&e->child, until);
        if (r == UNHEARD && !late) tell(e, "%s; it is tried again", e->why);
        if (r == RENEWED && late) tell(e, "the lease is renewed again");
        late = r == UNHEARD;
        next = host_time() + (late ? e->ttl / RETRIES : e->ttl / RENEWS);
    }
    /* SIGTERM was passed on. It has the time that it has. */
    while (e->child.pid > 0) child_wait(&e->child, e->child.until);
    if (e->child.killed)
        tell(e, e->child.stopping
                    ? "the coordinator has not ended in time, and was killed"
                    : "the lease was not renewed in time; the coordinator was "
                      "killed");
}

static int status_of(int status)
{
    return WIFEXITED(status) ? WEXITSTATUS(status)
                             : EXIT_SIGNAL + WTERMSIG(status);
}

/* True: the elector ends as well. Others may be able to coordinate where this
 * one was not, so they come first. */
static bool is_over(struct elector *e)
{
    const struct elect_child *c = &e->child;
    pccl_ns pause = e->ttl / RENEWS;
    if (pause < 2 * LOOK_PAUSE) pause = 2 * LOOK_PAUSE;
    e->status = status_of(c->status);
    if (c->stopping || e->status == EXIT_SUCCESS) return true;
    if (!c->killed && e->status != EXIT_UNELECTED)
        tell(e, "the coordinator %s (status %d)",
             right_has_begun(c->right) ? "has died" : "could not begin",
             e->status);
    child_wait(&e->child, host_time() + pause);
    return false;
}

static bool lead(struct elector *e, pccl_ns until)
{
    *e->other = '\0';
    tell(e, "elected");
    if (!child_start(&e->child, until, e->ttl / SHOWS)) {
        tell(e, "cannot start the coordinator: %s", strerror(errno));
        e->child.status = EXIT_FAILURE << 8;
    }
    e->leads = true;
    keep(e, until);
    e->leads = false;
    right_extend(e->child.right, 0);
    resign(e);
    return is_over(e);
}

static int run(struct elector *e)
{
    while (!e->child.stopping) {
        pccl_ns until;
        if (campaign(e, &until)) {
            if (lead(e, until)) return e->status;
        } else if (!e->child.stopping) {
            child_wait(&e->child, host_time() + LOOK_PAUSE);
        }
    }
    return EXIT_SUCCESS;
}

/* ------------------------------------------------------------------ opening */

/* What people read who ask etcd who coordinates. */
static void name_self(struct elector *e)
{
    struct address own = e->options->listen;
    bool all = *own.host == '\0' || strcmp(own.host, "0.0.0.0") == 0 ||
               strcmp(own.host, "::") == 0;
    if (all && gethostname(own.host, sizeof own.host - 1) != 0)
        (void)snprintf(own.host, sizeof own.host, "unknown");
    (void)address_print(&own, e->own, sizeof e->own);
}

static bool open_parts(struct elector *e, struct elect_http_options *http,
                       char **argv)
{
    const struct options *o = e->options;
    char why[ETCD_WHY_SIZE], missing[HTTP_WHY_SIZE];
    if (!elect_place_parse(o->elect, &e->place, why) ||
        !elect_account_read(o->elect_auth, &e->account, why)) {
        fprintf(stderr, "pccl-master: --elect: %s\n", why);
        return false;
    }
    if (!child_open(&e->child, argv, o->revoked != NULL)) {
        fprintf(stderr, "pccl-master: --elect: %s\n", strerror(errno));
        return false;
    }
    *http = (struct elect_http_options){.wake = e->child.signals,
                                        .look = look,
                                        .user = e,
                                        .every = .1,
                                        .authorities = e->account.ca,
                                        .certificate = e->account.certificate,
                                        .key = e->account.key};
    e->http = elect_http_open(http, missing);
    if (!e->http) fprintf(stderr, "pccl-master: --elect: %s\n", missing);
    return e->http != NULL;
}

static int elect_run(const struct options *options, char **argv)
{
    struct elector *e = memory_get(1, sizeof *e);
    struct elect_http_options http;
    int status = EXIT_FAILURE;
    descriptor_standard();
    (void)signal(SIGPIPE, SIG_IGN);
    e->options = options;
    e->ttl = (options->elect_ttl ? options->elect_ttl : TTL_DEFAULT) * PCCL_S;
    name_self(e);
    if (open_parts(e, &http, argv)) {
        if (e->account.token)
            (void)snprintf(e->token, sizeof e->token, "%s", e->account.token);
        status = run(e);
    }
    if (e->http) elect_http_close(e->http);
    child_close(&e->child);
    elect_account_free(&e->account);
    free(e);
    return status;
}

bool elect_ends(const struct options *options, char **argv, int *status)
{
    if (!options->elect) return false;
    if (!options->elected) {
        *status = elect_run(options, argv);
    } else if (right_take(options->elected_fd)) {
        return false;
    } else {
        fprintf(stderr, "pccl-master: --elected is for --elect alone\n");
        *status = EXIT_USAGE;
    }
    return true;
}
