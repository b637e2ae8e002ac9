/* open_run.c - see open_run.h. */
#include "open_run.h"

#include "hook.h"

#include <ev.h>
#include <stdlib.h>

#define HOOK_LIMIT 5.0 /* s */

struct open_run {
    struct ev_loop *loop;
    const char *revoked; /* file, or NULL */
    uint8_t issuer[ISSUER_KEY_SIZE];
    struct hook *hook; /* or NULL */
    struct master_server *server;
    ev_signal hangup;
};

static void on_hangup(struct ev_loop *loop, ev_signal *watcher, int events)
{
    (void)loop, (void)events;
    const struct open_run *run = watcher->data;
    char error[MESSAGE_SIZE / 2];
    if (!run->server) return;
    if (master_server_revoke(run->server, run->revoked, error, sizeof error))
        complain("--revoked: %s is read again", run->revoked);
    else
        complain("--revoked: %s; the list is as before", error);
}

static bool open_hook(struct open_run *run, const struct options *o)
{
    char error[MESSAGE_SIZE / 2];
    run->hook = hook_open(run->loop, o->hook, HOOK_LIMIT, error, sizeof error);
    if (!run->hook) complain("%s", error);
    return run->hook != NULL;
}

static bool begin(struct open_run *run, const struct options *o,
                  struct master_server_options *setup)
{
    char error[MESSAGE_SIZE / 2];
    if (o->issuer &&
        !run_issuer_read(o->issuer, false, run->issuer, error, sizeof error)) {
        complain("--issuer: %s", error);
        return false;
    }
    if (o->hook && !open_hook(run, o)) return false;
    setup->issuer = o->issuer ? run->issuer : NULL;
    setup->revoked = o->revoked;
    setup->hook = run->hook;
    setup->ask = run->hook ? hook_ask : NULL;
    setup->told = run->hook ? hook_told : NULL;
    return true;
}

struct open_run *open_run_begin(const struct options *options,
                                struct ev_loop *loop,
                                struct master_server_options *setup)
{
    struct open_run *run = memory_get(1, sizeof *run);
    run->loop = loop;
    run->revoked = options->revoked;
    ev_signal_init(&run->hangup, on_hangup, SIGHUP);
    run->hangup.data = run;
    if (begin(run, options, setup)) return run;
    open_run_end(run);
    return NULL;
}

void open_run_serve(struct open_run *run, struct master_server *server)
{
    run->server = server;
    if (run->hook) hook_serve(run->hook, server);
    if (!run->revoked) return;
    if (server)
        ev_signal_start(run->loop, &run->hangup);
    else
        ev_signal_stop(run->loop, &run->hangup);
}

void open_run_end(struct open_run *run)
{
    if (!run) return;
    if (run->hook) hook_close(run->hook);
    free(run);
}
