/* remote.c - starts the agent of a host and exchanges frames with it. */
#include "remote.h"

#include "rank_env.h"

#include <errno.h>
#include <limits.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { WORDS_MAX = 64 };

struct remote {
    struct remote_setup setup;
    struct proc proc;
    struct agent_link link;
    struct sink_waiter waiter; /* waits for room in waits_for */
    struct sink *waits_for;
    ev_timer beat;
    bool ready, lost, finishing;
};

static void remote_lose(struct remote *remote, const char *why)
{
    char text[MESSAGE_SIZE /
              2]; /* copy: `why` may point into memory that the link frees */
    if (remote->lost) return;
    remote->lost = true;
    snprintf(text, sizeof text, "%s", why);
    link_close(&remote->link);
    proc_signal(&remote->proc, SIGTERM);
    if (!remote->finishing)
        remote->setup.events.lost(remote->setup.events.user, text);
}

static bool on_frame(struct agent_link *link, const struct link_frame *frame)
{
    struct remote *remote = link->user;
    struct link_texts texts = link_texts_of(frame);
    const char *text;
    switch (frame->type) {
    case LINK_ALIVE:
        return true;
    case LINK_READY:
        text = link_get(&texts);
        if (remote->ready || !text) break;
        remote->ready = true;
        remote->setup.events.ready(remote->setup.events.user, text);
        return true;
    case LINK_REFUSED:
        text = link_get(&texts);
        if (!text) break;
        remote_lose(remote, text);
        return true;
    default: /* of a rank, or of a launcher */
        if (frame->type < LINK_STARTED) break;
        return remote->setup.events.on_frame(remote->setup.events.user, frame);
    }
    remote_lose(remote, "its agent does not keep to the protocol");
    return true;
}

/* ssh usually has printed the reason and ends soon. */
static void on_closed(struct agent_link *link, const char *why)
{
    struct remote *remote = link->user;
    bool ended = strcmp(why, "ended") == 0;
    if (!ended || remote->ready)
        remote_lose(remote, ended ? "its connection ended" : why);
}

static void beat(struct ev_loop *loop, ev_timer *timer, int events)
{
    (void)loop;
    (void)events;
    struct remote *remote = timer->data;
    link_send(&remote->link, LINK_ALIVE, 0, NULL, 0);
    if (link_is_silent(&remote->link) && !remote->link.paused)
        remote_lose(remote, "it has been silent for too long");
}

static void go_on(struct sink_waiter *waiter)
{
    struct remote *remote =
        (struct remote *)((char *)waiter - offsetof(struct remote, waiter));
    remote->waits_for = NULL;
    link_resume(&remote->link);
}

void remote_wait(struct remote *remote, struct sink *sink)
{
    if (remote->waits_for) return;
    remote->waits_for = sink;
    sink_wait(sink, &remote->waiter);
}

static int words_cut(const char *text, char **words, int count, int most)
{
    while (text && *(text += strspn(text, " ")) && count < most) {
        int length = (int)strcspn(text, " ");
        words[count++] = memory_print("%.*s", length, text);
        text += length;
    }
    return count;
}

/* Splits the command into words, followed by the rest unchanged. */
static int words_make(const struct remote_setup *setup, const char *self,
                      char **words)
{
    static const char *const ssh = "ssh -x -oBatchMode=yes";
    static const char *const srun =
        "srun --unbuffered --nodes=1 --ntasks=1 --overlap "
        "--cpu-bind=none --nodelist";
    const struct options *o = setup->options;
    bool slurm = o->launcher == LAUNCHER_SLURM;
    const char *text = o->launcher_exec;
    if (!text && o->launcher != LAUNCHER_FORK) text = slurm ? srun : ssh;
    int count = words_cut(text, words, 0, WORDS_MAX / 2);
    bool shell = count > 0 && !slurm;
    if (count > 0) words[count++] = memory_text(setup->host);
    /* the remote shell parses it */
    bool plain = !strpbrk(self, " \t'\"\\$`&|;<>()*?[]#~!{}");
    if (o->agent && shell) { /* unchanged, as given by the user */
        words[count++] = memory_print("%s --agent", o->agent);
    } else if (o->agent) {
        count = words_cut(o->agent, words, count, WORDS_MAX - 2);
        words[count++] = memory_text("--agent");
    } else if (shell) {
        words[count++] =
            memory_print(plain ? "%s --agent" : "'%s' --agent", self);
    } else {
        words[count++] = memory_text(self);
        words[count++] = memory_text("--agent");
    }
    return count;
}

static int command_start(struct remote *remote, int in, int out, char *error,
                         size_t error_size)
{
    const struct remote_setup *setup = &remote->setup;
    char self[PATH_MAX] = "";
    char *words[WORDS_MAX] = {0};
    ssize_t length = readlink("/proc/self/exe", self, sizeof self - 1);
    if (length <= 0) snprintf(self, sizeof self, "pccl-master");
    if (setup->options->prefix)
        snprintf(self, sizeof self, "%s/bin/pccl-master",
                 setup->options->prefix);
    int count = words_make(setup, self, words);
    struct proc_request request = {
        .spawn = {.argv = words,
                  .argc = count,
                  .env = environ,
                  .in = in,
                  .out = out,
                  .files = setup->files},
        .out_sink = setup->err,
        .err_sink = setup->err,
    };
    int status = proc_start(&remote->proc, &request, error, error_size);
    while (count > 0) free(words[--count]);
    return status;
}

static void setup_send(struct remote *remote)
{
    char directory[PATH_MAX];
    struct link_texts texts = {0};
    if (!getcwd(directory, sizeof directory))
        snprintf(directory, sizeof directory, "/");
    link_put(&texts, directory);
    link_put_number(&texts, remote->setup.fixed);
    char key[RUN_KEY_TEXT] = "";
    const struct options *o = remote->setup.options;
    if (o->keyed) run_key_print(&o->key, key);
    link_put(&texts, key);
    run_key_forget(key, sizeof key);
    link_put_number(&texts, remote->setup.load.ranks);
    link_put_number(&texts, remote->setup.load.inputs);
    struct link_texts all = *remote->setup.addresses;
    for (const char *text; (text = link_get(&all));) link_put(&texts, text);
    link_send(&remote->link, LINK_SETUP, 0, texts.bytes, texts.size);
    run_key_forget(texts.bytes, texts.size);
    free(texts.bytes);
}

static void pair_close(const int ends[2])
{
    if (ends[0] >= 0) close(ends[0]);
    if (ends[1] >= 0) close(ends[1]);
}

struct remote *remote_open(const struct remote_setup *setup, char *error,
                           size_t error_size)
{
    struct remote *remote = memory_get(1, sizeof *remote);
    int in[2] = {-1, -1}, out[2] = {-1, -1};
    remote->setup = *setup;
    proc_init(&remote->proc, setup->loop, setup->guard_fd);
    int status = EXIT_FAILURE;
    if (descriptor_pipe(in) != 0 || descriptor_pipe(out) != 0)
        snprintf(error, error_size, "cannot open pipes: %s", strerror(errno));
    else
        status = command_start(remote, in[0], out[1], error, error_size);
    if (status != 0) {
        pair_close(in);
        pair_close(out);
        free(remote);
        return NULL;
    }
    close(in[0]);
    close(out[1]);
    remote->link.on_frame = on_frame;
    remote->link.on_closed = on_closed;
    remote->link.user = remote;
    remote->link.prefixed = true;
    remote->waiter.go = go_on;
    link_open(&remote->link, setup->loop, out[0], in[1]);
    setup_send(remote);
    remote->setup.addresses = NULL; /* valid only during this call */
    ev_timer_init(&remote->beat, beat, LINK_HEARTBEAT, LINK_HEARTBEAT);
    remote->beat.data = remote;
    ev_timer_start(setup->loop, &remote->beat);
    return remote;
}

void remote_send(struct remote *remote, enum link_type type, uint32_t rank,
                 const void *bytes, size_t size)
{
    link_send(&remote->link, type, rank, bytes, size);
}

void remote_send_number(struct remote *remote, enum link_type type,
                        uint32_t rank, int64_t number)
{
    struct link_texts texts = {0};
    link_put_number(&texts, number);
    link_send(&remote->link, type, rank, texts.bytes, texts.size);
    free(texts.bytes);
}

void remote_settle(struct remote *remote)
{
    struct proc *proc = &remote->proc;
    char why[128];
    if (!proc->news) return;
    proc->news = false;
    if (remote->ready) return; /* frames before the end are handled first */
    if (WIFSIGNALED(proc->wait_status))
        snprintf(why, sizeof why,
                 "the command that reaches it was killed by "
                 "signal %d",
                 WTERMSIG(proc->wait_status));
    else
        snprintf(why, sizeof why,
                 "the command that reaches it ended with status %d",
                 WEXITSTATUS(proc->wait_status));
    remote_lose(remote, why);
}

void remote_finish(struct remote *remote)
{
    if (remote->finishing) return;
    remote->finishing = true;
    link_finish(&remote->link);
}

void remote_give_up(struct remote *remote)
{
    remote_lose(remote, "it does not answer");
}

bool remote_is_silent(const struct remote *remote)
{
    const struct agent_link *link = &remote->link;
    return remote->ready && !link->paused && link->heartbeats >= 3 &&
           ev_now(remote->setup.loop) - link->last_recv > 2.5 * LINK_HEARTBEAT;
}

bool remote_is_gone(const struct remote *remote)
{
    return proc_is_gone(&remote->proc);
}

void remote_close(struct remote *remote)
{
    remote->finishing = true;
    if (remote->waits_for) sink_wait_end(remote->waits_for, &remote->waiter);
    link_close(&remote->link);
    ev_timer_stop(remote->setup.loop, &remote->beat);
    proc_kill(&remote->proc);
    proc_free(&remote->proc);
    free(remote);
}
