/* fuzz_agent.c - any frames of a launcher into an agent, whose processes are
 * not real: what it starts, it is only told. */
#include "../../src/launch/proc.h"
#include "../../src/launch/reach.h"
#include "fuzz.h"

#include <string.h>
#include <unistd.h>

/* The outside of agent.c. */
static int fuzz_start(struct proc *proc, const struct proc_request *request,
                      char *error, size_t error_size);
static void fuzz_kill(struct proc *proc);
static void fuzz_signal(const struct proc *proc, int number);
static const char *fuzz_reach(struct link_texts *addresses);
static int fuzz_chdir(const char *folder);

#define proc_start fuzz_start
#define proc_kill fuzz_kill
#define proc_signal fuzz_signal
#define reach_first fuzz_reach
#define chdir fuzz_chdir
#include "../../src/launch/agent.c"

static uint8_t luck; /* of the next start */

static int fuzz_start(struct proc *proc, const struct proc_request *request,
                      char *error, size_t error_size)
{
    assert(request->argc > 0 && request->argv[request->argc] == NULL);
    for (int i = 0; i < request->argc; i++) assert(request->argv[i]);
    assert(request->env && request->in >= 0);
    if (luck++ % 4 == 3) {
        snprintf(error, error_size, "no luck");
        return EXIT_NOT_FOUND;
    }
    proc->pid = 1000000000;
    proc->alive = true;
    return 0;
}

static void fuzz_kill(struct proc *proc)
{
    proc->alive = false;
    proc->news = true;
}

static void fuzz_signal(const struct proc *proc, int number)
{
    (void)proc;
    (void)number;
}

static const char *fuzz_reach(struct link_texts *addresses)
{
    return link_get(addresses);
}

static int fuzz_chdir(const char *folder)
{
    assert(folder);
    return 0;
}

/* A frame of the kind that the next bytes choose, with fields that fit it more
 * often than chance would. */
static size_t make_frame(struct fuzz_input *in, char *to, size_t room)
{
    static const char *const texts[] = {"",
                                        "/",
                                        "sh",
                                        "0",
                                        "1",
                                        "2",
                                        "9",
                                        "-1",
                                        "4000000000",
                                        "A=1",
                                        "x",
                                        "HOME=/",
                                        "127.0.0.1:80",
                                        "99999999999999999999",
                                        "19",
                                        "18",
                                        "9223372036854775807"};
    uint8_t kind = fuzz_u8(in);
    uint8_t count = fuzz_u8(in);
    uint32_t rank = count % 3;
    size_t size = LINK_HEADER;
    for (uint32_t i = 0; i < count / 3 % 16u; i++) {
        uint8_t which = fuzz_u8(in);
        const char *text = texts[which % ARRAY_COUNT(texts)];
        size_t length = strlen(text) + 1;
        if (which >= 240) length--; /* lacks its end */
        if (size + length > room) break;
        memcpy(to + size, text, length);
        size += length;
    }
    unsigned type = 1 + kind % 16u;
    if (kind >= 128) type = LINK_SETUP + kind % 6u;
    link_header(to, (enum link_type)(type > LINK_ALIVE ? LINK_ALIVE : type),
                rank, size - LINK_HEADER);
    if (kind == 127) to[0] = (char)0xff;
    return size;
}

/* path, directory, kind, width, local, reads, argc, words, count, settings */
static size_t make_start(struct fuzz_input *in, char *to)
{
    struct link_texts texts = {0};
    uint8_t bits = fuzz_u8(in);
    uint8_t words = fuzz_u8(in) % 4;
    link_put(&texts, bits & 1 ? "" : "/bin");
    link_put(&texts, bits & 2 ? "" : "/tmp");
    link_put_number(&texts, bits >> 2 & 7);
    link_put_number(&texts, bits >> 5);
    link_put_number(&texts, fuzz_u8(in));
    link_put_number(&texts, bits & 1);
    link_put_number(&texts, words + (bits == 255));
    for (uint8_t i = 0; i < words; i++) link_put(&texts, "word");
    link_put_number(&texts, fuzz_u8(in) % 4);
    link_put(&texts, "A=1");
    link_put(&texts, "DISPLAY=:0");
    link_header(to, LINK_START, bits % 3, texts.size);
    memcpy(to + LINK_HEADER, texts.bytes, texts.size);
    free(texts.bytes);
    return LINK_HEADER + texts.size;
}

static void turn(struct agent *agent, struct fuzz_input *in, int to)
{
    char frame[1024];
    uint8_t what = fuzz_u8(in);
    size_t size = 0;
    if (what % 8 == 0) { /* anything */
        size = what / 8 < in->left ? what / 8 : in->left;
        memcpy(frame, in->at, size);
        in->at += size;
        in->left -= size;
    } else if (what % 8 < 4) {
        size = make_start(in, frame);
    } else {
        size = make_frame(in, frame, sizeof frame);
    }
    if (what >= 250 && agent->ranks) fuzz_kill(&agent->ranks->proc);
    ssize_t ignored = write(to, frame, size);
    (void)ignored;
    ev_run(agent->loop, EVRUN_NOWAIT);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    static struct agent agent;
    static int null = -1;
    struct fuzz_input in = {bytes, size};
    int ends[2];
    if (null < 0) {
        null = open("/dev/null", O_RDWR | O_CLOEXEC);
        signal(SIGPIPE, SIG_IGN);
        bind_read(&agent.machine);
    }
    if (pipe2(ends, O_CLOEXEC | O_NONBLOCK) != 0) abort();
    luck = 0;
    agent = (struct agent){.loop = ev_default_loop(0),
                           .machine = agent.machine,
                           .host = 2,
                           .link.on_frame = on_frame,
                           .link.on_closed = on_closed,
                           .link.user = &agent};
    if (!sink_open(&agent.sink, agent.loop, null)) abort();
    agent.sink.framed = true;
    link_open(&agent.link, agent.loop, ends[0], -1);
    ev_prepare_init(&agent.settle, settle);
    agent.settle.data = &agent;
    ev_prepare_start(agent.loop, &agent.settle);
    while (in.left > 0 && !agent.over) turn(&agent, &in, ends[1]);
    close(ends[1]);
    for (struct agent_rank *rank = agent.ranks, *next; rank; rank = next) {
        next = rank->next;
        input_end(rank);
        proc_free(&rank->proc);
        free(rank);
    }
    ev_prepare_stop(agent.loop, &agent.settle);
    link_close(&agent.link);
    sink_close(&agent.sink);
    return 0;
}
