/* fuzz_agent.c - any frames of a launcher into an agent, whose processes are
 * not real: what it starts, it is only told. */
#include "../../src/base/host.h"
#include "../../src/launch/bind.h"
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
static void fuzz_bind_read(struct bind_machine *machine);
static uint64_t fuzz_host_id(void);

/* Its standard input and output. */
static int fuzz_input, fuzz_output;

#undef STDIN_FILENO
#undef STDOUT_FILENO
#define STDIN_FILENO fuzz_input
#define STDOUT_FILENO fuzz_output
#define proc_start fuzz_start
#define proc_kill fuzz_kill
#define proc_signal fuzz_signal
#define reach_first fuzz_reach
#define chdir fuzz_chdir
#define bind_read fuzz_bind_read
#define host_id fuzz_host_id
#include "../../src/launch/agent.c"

enum { INPUTS = 4, FRAME_ROOM = 6000, HOST = 2 };

static uint8_t luck;       /* of the next start */
static int inputs[INPUTS]; /* what the last processes read, or -1 */

static void take_input(uint8_t which)
{
    char bytes[4096];
    int fd = inputs[which % INPUTS];
    ssize_t ignored = fd < 0 ? 0 : read(fd, bytes, sizeof bytes);
    (void)ignored;
}

static void end_input(uint8_t which)
{
    int *fd = &inputs[which % INPUTS];
    if (*fd >= 0) close(*fd);
    *fd = -1;
}

static int fuzz_start(struct proc *proc, const struct proc_request *request,
                      char *error, size_t error_size)
{
    assert(request->spawn.argc > 0 &&
           request->spawn.argv[request->spawn.argc] == NULL);
    for (int i = 0; i < request->spawn.argc; i++)
        assert(request->spawn.argv[i]);
    assert(request->spawn.env && request->spawn.in >= 0);
    if (luck++ % 4 == 3) {
        snprintf(error, error_size, "no luck");
        return EXIT_NOT_FOUND;
    }
    end_input(luck);
    inputs[luck % INPUTS] = fcntl(request->spawn.in, F_DUPFD_CLOEXEC, 3);
    (void)fcntl(inputs[luck % INPUTS], F_SETPIPE_SZ, 4096);
    (void)fcntl(inputs[luck % INPUTS], F_SETFL, O_NONBLOCK);
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

static uint64_t fuzz_host_id(void)
{
    return HOST;
}

/* Two cores of two threads each. */
static void fuzz_bind_read(struct bind_machine *machine)
{
    machine->count = 4;
    for (int i = 0; i < 4; i++)
        machine->cpus[i] = (struct bind_cpu){.number = i, .core = i / 2};
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

/* path, directory, kind, width, map, fill, live, local, reads, argc, words,
 * count, settings */
static size_t make_start(struct fuzz_input *in, char *to)
{
    struct link_texts texts = {0};
    uint8_t bits = fuzz_u8(in);
    uint8_t words = fuzz_u8(in) % 4;
    link_put(&texts, bits & 1 ? "" : "/bin");
    link_put(&texts, bits & 2 ? "" : "/tmp");
    link_put_number(&texts, bits >> 2 & 7);
    link_put_number(&texts, bits >> 5);
    link_put_number(&texts, bits >> 3 & 7);
    link_put_number(&texts, bits & 3);
    link_put_number(&texts, bits & 1);
    link_put_number(&texts, fuzz_u8(in));
    link_put_number(&texts, bits & 2);
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

/* What fits: an address to call, input of any size, a process to look at. */
static size_t make_fit(struct fuzz_input *in, char *to)
{
    struct link_texts texts = {0};
    uint8_t bits = fuzz_u8(in);
    enum link_type type = LINK_LOOK;
    size_t size = bits >> 2 & 1 ? FRAME_ROOM - LINK_HEADER : bits;
    memset(to, 'i', FRAME_ROOM);
    switch (bits & 3) {
    case 0:
        type = LINK_SETUP;
        link_put(&texts, "/");
        link_put_number(&texts, bits >> 4 & 1);
        link_put(&texts, "");
        link_put_number(&texts, bits & 128 ? 9999 : 2);
        link_put_number(&texts, bits & 8 ? -1 : 1);
        if (bits & 32) link_put(&texts, bits & 64 ? "127.0.0.1:80" : "no:0");
        break;
    case 1:
        if (bits & 32) type = LINK_EVICT;
        if (type == LINK_LOOK) link_put_number(&texts, bits);
        link_put_number(&texts, bits & 8 ? HOST : 3);
        link_put_number(&texts, bits & 16 ? getpid() : 1000000000);
        link_put_number(&texts, bits & 64 ? -1 : 0);
        break;
    default:
        type = LINK_INPUT;
        break;
    }
    if (type != LINK_INPUT) memcpy(to + LINK_HEADER, texts.bytes, texts.size);
    if (type != LINK_INPUT) size = texts.size;
    free(texts.bytes);
    link_header(to, type, bits % 3, size);
    return LINK_HEADER + size;
}

/* Something that is no frame. */
static void other(struct agent *agent, uint8_t what)
{
    switch (what % 4) {
    case 0:
        take_input(what / 4);
        break;
    case 1:
        end_input(what / 4);
        break;
    case 2:
        beat(agent->loop, &agent->beat, 0);
        break;
    default:
        if (agent->ranks) fuzz_kill(&agent->ranks->proc);
        break;
    }
}

static void turn(struct agent *agent, struct fuzz_input *in, int to)
{
    char frame[FRAME_ROOM];
    uint8_t what = fuzz_u8(in);
    size_t size = 0;
    switch (what % 8) {
    case 0: /* anything */
        size = what / 8 < in->left ? what / 8 : in->left;
        memcpy(frame, in->at, size);
        in->at += size;
        in->left -= size;
        break;
    case 1:
    case 2:
        size = make_start(in, frame);
        break;
    case 3:
        other(agent, what / 8);
        break;
    case 4:
    case 5:
        size = make_fit(in, frame);
        break;
    default:
        size = make_frame(in, frame, 1024);
        break;
    }
    ssize_t ignored = write(to, frame, size);
    (void)ignored;
    ev_run(agent->loop, EVRUN_NOWAIT);
}

static void begin(void)
{
    static bool begun;
    if (begun) return;
    begun = true;
    fuzz_output = open("/dev/null", O_RDWR | O_CLOEXEC);
    signal(SIGPIPE, SIG_IGN);
    (void)setenv("SSH_CONNECTION", "10.0.0.7 1 10.0.0.8 22", 1);
    for (int i = 0; i < INPUTS; i++) inputs[i] = -1;
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    static struct agent agent;
    struct fuzz_input in = {bytes, size};
    int ends[2];
    begin();
    if (pipe2(ends, O_CLOEXEC | O_NONBLOCK) != 0) abort();
    luck = 0;
    agent = (struct agent){.over = false};
    fuzz_input = ends[0];
    if (!agent_open(&agent)) abort();
    close(ends[0]);
    while (in.left > 0 && !agent.over) turn(&agent, &in, ends[1]);
    close(ends[1]);
    ev_run(agent.loop, EVRUN_NOWAIT);
    agent_close(&agent);
    for (int i = 0; i < INPUTS; i++) end_input((uint8_t)i);
    return 0;
}
