/* fuzz_ask.c - what an operator's commands are told: a coordinator that answers
 * --status, and a launcher that is asked something; and what that launcher is
 * sent by other processes of its user. The sockets are real, the other ends are
 * a thread. */
#include "fuzz.h"

#include "../../src/base/run_key.h"
#include "../../src/launch/control.h"
#include "../../src/master/server/master_server.h"

#include <assert.h>
#include <netinet/in.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

static FILE *quiet;

/* What the coordinator says to the next connection. */
static const uint8_t *words;
static size_t word_count;
static sem_t answered;

/* ------------------------------------------------------------ coordinator */

static int listener = -1, closed = -1;

static void *answer_status(void *none)
{
    char text[256];
    for (;;) {
        int fd = accept(listener, NULL, NULL);
        if (fd < 0) return none;
        (void)recv(fd, text, sizeof text, 0);
        (void)send(fd, words, word_count, MSG_NOSIGNAL);
        (void)shutdown(fd, SHUT_WR);
        while (recv(fd, text, sizeof text, 0) > 0) continue;
        close(fd);
        (void)sem_post(&answered);
    }
}

static int loopback(bool listens, uint16_t *port)
{
    struct sockaddr_in name = {.sin_family = AF_INET,
                               .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t size = sizeof name;
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0 || bind(fd, (struct sockaddr *)&name, size) != 0) abort();
    if (listens && listen(fd, 8) != 0) abort();
    if (getsockname(fd, (struct sockaddr *)&name, &size) != 0) abort();
    *port = ntohs(name.sin_port);
    return fd;
}

static uint16_t open_port, closed_port;

static void ask_coordinator(struct fuzz_input *in)
{
    uint8_t how = fuzz_u8(in);
    static const struct run_key key = {.bytes = {1}};
    char error[300] = "";
    bool refused = how % 32 == 31;
    words = in->at;
    word_count = in->left;
    bool done = master_status_print(
        "127.0.0.1", refused ? closed_port : open_port,
        how % 32 == 30 ? &key : NULL, how & 1, quiet, error, sizeof error);
    assert(!refused || !done);
    assert(done || error[0] != '\0');
    while (!refused && sem_wait(&answered) != 0) continue;
}

/* --------------------------------------------------------------- launcher */

static struct control control;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static char answer_text[MESSAGE_SIZE];

static void on_request(void *user, const char *text, char *answer, size_t size)
{
    (void)user;
    assert(strlen(text) < MESSAGE_SIZE);
    pthread_mutex_lock(&lock);
    (void)snprintf(answer, size, "%s", answer_text);
    pthread_mutex_unlock(&lock);
}

static void *run_loop(void *loop)
{
    ev_run(loop, 0);
    return NULL;
}

static void take_text(struct fuzz_input *in, char *text, size_t size)
{
    size_t count = size - 1 < in->left ? size - 1 : in->left;
    memcpy(text, in->at, count);
    text[count] = '\0';
    in->at += count;
    in->left -= count;
}

/* By its process, or as the only one of this user, which it may not be. */
static void ask_launcher(struct fuzz_input *in)
{
    char text[MESSAGE_SIZE];
    FILE *error = stderr, *out = stdout;
    uint8_t how = fuzz_u8(in);
    take_text(in, text, 1 + (size_t)how);
    pthread_mutex_lock(&lock);
    take_text(in, answer_text, sizeof answer_text);
    pthread_mutex_unlock(&lock);
    stderr = stdout = quiet;
    int status = control_ask(text, how % 16 == 0 ? 0 : getpid());
    stderr = error;
    stdout = out;
    assert(status == EXIT_FAILURE || answer_text[0] == '+');
}

/* Nobody reads the answer to it. */
static void send_launcher(const struct fuzz_input *in)
{
    struct sockaddr_un to = {.sun_family = AF_UNIX};
    int size = snprintf(to.sun_path + 1, sizeof to.sun_path - 1,
                        "pccl-master.%u.%d", geteuid(), (int)getpid());
    int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    assert(fd >= 0);
    (void)sendto(
        fd, in->at, in->left, MSG_DONTWAIT, (struct sockaddr *)&to,
        (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + (size_t)size));
    close(fd);
}

static void begin(void)
{
    pthread_t thread;
    quiet = fopen("/dev/null", "w");
    listener = loopback(true, &open_port);
    closed = loopback(false, &closed_port);
    struct ev_loop *loop = ev_loop_new(EVFLAG_AUTO);
    assert(quiet && loop);
    if (sem_init(&answered, 0, 0) != 0) abort();
    control.request = on_request;
    control_open(&control, loop);
    /* Else a request to the only launcher might reach a real one. */
    if (control.io.fd < 0) abort();
    if (pthread_create(&thread, NULL, answer_status, NULL) != 0 ||
        pthread_create(&thread, NULL, run_loop, loop) != 0)
        abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    struct fuzz_input in = {bytes, size};
    if (!quiet) begin();
    uint8_t what = fuzz_u8(&in);
    if (what % 4 == 0)
        ask_launcher(&in);
    else if (what % 4 == 1)
        send_launcher(&in);
    else
        ask_coordinator(&in);
    return 0;
}
