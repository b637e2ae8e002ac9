/* fuzz_environment.c - variables of a user and of batch systems: the ones of
 * this project, and what other launchers say of a process. */
#include "../../src/base/io_addr.h"

/* The outside of api_env.c and comm_join.c. */
static uint32_t fuzz_resolve(const char *host, uint16_t port,
                             struct io_addr *out, uint32_t max,
                             const char **error);
#define io_addr_resolve fuzz_resolve
#include "../../src/peer/api_env.c"
#include "../../src/peer/comm_join.c"
#include "fuzz.h"

#include "../../src/base/env.h"
#include "../../src/mpi/slurm.h"

#include <arpa/inet.h>
#include <assert.h>
#include <stdarg.h>
#include <stdio.h>

static const char *const names[] = {
    "PCCL_RANK",
    "PCCL_DEADLINE",
    "PCCL_MASTER_PATIENCE",
    "PCCL_MASTER_GRACE",
    "PCCL_STALL_WARN",
    "PCCL_DRAIN_SIGNAL",
    "PCCL_RELAY",
    "PCCL_MULTIPLEX_CHUNK_SIZE",
    "PCCL_TRANSPROT", /* misspelt */
    "SLURM_STEP_NODELIST",
    "SLURM_JOB_ID",
    "SLURM_STEP_ID",
    "SLURM_PROCID",
    "SLURM_STEP_NUM_TASKS",
    "SLURM_STEP_NUM_NODES",
    "OMPI_COMM_WORLD_RANK",
    "OMPI_COMM_WORLD_SIZE",
    "PMI_RANK",
    "PMI_SIZE",
    "PMI_APPNUM",
    "PCCL_MASTER",
};

static const char *const values[] = {
    "0",          "1",
    "2",          "64",
    "4294967290", "n[01-03,7],m",
    "n1",         "n[1",
    "[",          "9223372036854775807",
    "SIGUSR2",    "TERM",
    "0.5",        "1e9",
    "-1",         "",
    "nan",        "2147483648",
    "x[0-9]y,z",  "99999999999999999999",
    "h:1",        "10.0.0.7:80,[::1]:5,h",
    ":1",         "h:99999",
    "a,,b",       "*:1",
};

/* --------------------------------------------------- the run that is named */

static struct fuzz_input *input;
static pccl_ns now;
static pcclComm_t comm;

/* Nothing is looked up. */
static uint32_t fuzz_resolve(const char *host, uint16_t port,
                             struct io_addr *out, uint32_t max,
                             const char **error)
{
    uint8_t bits = fuzz_u8(input);
    struct sockaddr_in in4 = {.sin_family = AF_INET, .sin_port = htons(port)};
    struct sockaddr_in6 in6 = {.sin6_family = AF_INET6,
                               .sin6_port = htons(port)};
    assert(*host && strlen(host) < HOST_SIZE && max > 0);
    *error = "it has no address";
    uint32_t count = bits % 16u < max ? bits % 16u : max;
    for (uint32_t i = 0; i < count; i++) {
        out[i] = (struct io_addr){.size = bits & 16 ? sizeof in4 : sizeof in6};
        memcpy(&out[i].name, bits & 16 ? (void *)&in4 : (void *)&in6,
               out[i].size);
    }
    return count;
}

uint32_t comm_resolve(pcclComm_t *c, const struct address *a, pccl_ns until,
                      struct io_addr *out, uint32_t max, const char **error)
{
    (void)until;
    assert(c == &comm);
    return fuzz_resolve(a->host, a->port, out, max, error);
}

int comm_interrupted(const pcclComm_t *c, pccl_ns until)
{
    (void)until;
    assert(c == &comm);
    return fuzz_u8(input) == 255 ? pcclCancelled : pcclSuccess;
}

int comm_stop_waiting(pcclComm_t *c, int why, const char *next)
{
    assert(c == &comm && why != pcclSuccess && *next);
    return why;
}

pcclResult_t pcclCreateCommunicator(const pcclCommCreateParams_t *params,
                                    pcclComm_t **out)
{
    assert(params);
    if (!out) return pcclInvalidArgument;
    memset(&comm, 0, sizeof comm);
    *out = &comm;
    return pcclSuccess;
}

pcclResult_t api_begin(const pcclComm_t *c, pcclComm_t **out)
{
    assert(c == &comm);
    *out = &comm;
    return fuzz_u8(input) == 255 ? pcclCancelled : pcclSuccess;
}

pcclResult_t api_leave(pcclComm_t *c, pcclResult_t result)
{
    assert(c == &comm);
    return result;
}

int comm_join(pcclComm_t *c)
{
    assert(c->params.master_address.inet.protocol == inetIPv4 ||
           c->params.master_address.inet.protocol == inetIPv6);
    uint8_t bits = fuzz_u8(input);
    c->absent = bits & 1;
    c->deserted = (bits & 3) == 3;
    return bits < 200 ? pcclMasterConnectionFailed : pcclSuccess;
}

bool comm_pause(pcclComm_t *c, pccl_ns time)
{
    assert(c == &comm && time > 0 && time <= 2 * PCCL_S);
    now += time;
    return fuzz_u8(input) < 250;
}

pccl_ns comm_limit(const pcclComm_t *c)
{
    assert(c == &comm);
    return PCCL_NEVER;
}

void comm_spare_wait(pcclComm_t *c, pccl_ns until)
{
    assert(c == &comm && until == PCCL_NEVER);
}

atomic_bool comm_tell_state;

void comm_tell_open(struct pcclComm_t *c)
{
    assert(c == &comm);
}

void comm_tell_call(struct pcclComm_t *c, const char *name, uint64_t bytes,
                    uint64_t tag)
{
    (void)c;
    (void)name;
    (void)bytes;
    (void)tag;
}

void comm_tell_return(struct pcclComm_t *c)
{
    (void)c;
}

pccl_ns comm_now(void)
{
    return now;
}

void comm_set_error(pcclComm_t *c, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    (void)vsnprintf(c->error, sizeof c->error, format, args);
    va_end(args);
}

static void connect_run(void)
{
    pcclComm_t *c = NULL;
    ccoip_socket_address_t address;
    const char *text = getenv("PCCL_MASTER");
    int version;
    pcclResult_t rc = pcclConnectFromEnv(NULL, fuzz_u8(input) ? &c : NULL);
    assert(rc != pcclInvalidUsage || !c || c->error[0] != '\0');
    if (text && pcclParseAddress(text, 7, &address) == pcclSuccess)
        assert(address.inet.protocol == inetIPv4 ||
               address.inet.protocol == inetIPv6);
    assert(pcclParseAddress(NULL, 7, &address) == pcclInvalidArgument);
    assert(pcclGetVersion(&version) == pcclSuccess && version == PCCL_VERSION);
    /* As pcclDestroyCommunicator() does. */
    free(comm.masters);
    comm.masters = NULL;
}

/* ------------------------------------------------------------- all variables
 */

static uint32_t warned;

static void warn(const char *text)
{
    assert(text);
    warned++;
}

static void set(struct fuzz_input *in)
{
    const char *name = names[fuzz_below(in, sizeof names / sizeof *names)];
    uint8_t kind = fuzz_u8(in);
    char text[600];
    size_t size = 0;
    if (kind < 200) {
        (void)setenv(name, values[kind % (sizeof values / sizeof *values)], 1);
        return;
    }
    size_t most = kind < 250 ? 16 : sizeof text - 1;
    while (size < most && in->left > 0) {
        char c = (char)fuzz_u8(in);
        if (c == '\0') break;
        text[size++] = c;
    }
    text[size] = '\0';
    (void)setenv(name, text, 1);
}

static bool is_seconds(int64_t ns)
{
    return ns == 0 || (ns >= 10000000 && ns <= (int64_t)1e15);
}

static void read_all(void)
{
    assert(is_seconds(env_seconds_ns("PCCL_DEADLINE", warn)));
    assert(is_seconds(env_seconds_ns("PCCL_MASTER_PATIENCE", warn)));
    assert(is_seconds(env_seconds_ns("PCCL_MASTER_GRACE", warn)));
    assert(is_seconds(env_stall_ns(warn)));
    assert(env_rank() >= -1);
    assert(env_drain_signal() >= 0);
    (void)env_relays();
    env_warn_unknown(warn);
    env_warn_idle(warn);
    int number = -7;
    bool known = launcher_number("PMI_APPNUM", &number);
    assert(known ? number >= 0 : number == -7);
    int rank, size;
    const char *launcher;
    if (foreign_task_read(&rank, &size, &launcher))
        assert(rank >= 0 && rank < size && size >= 2 && launcher);
    struct slurm_task task;
    if (!slurm_task_read(&task)) return;
    const char *colon = strrchr(task.master, ':');
    long port = colon ? strtol(colon + 1, NULL, 10) : 0;
    assert(task.rank >= 0 && task.rank < task.size);
    assert(port >= 20000 && port < 32000);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    struct fuzz_input in = {bytes, size};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        (void)unsetenv(names[i]);
    if (fuzz_u8(&in) % 2) { /* a task of srun, of which some is changed */
        (void)setenv("SLURM_STEP_NODELIST", "n[01-03,7],m", 1);
        (void)setenv("SLURM_JOB_ID", "1234", 1);
        (void)setenv("SLURM_STEP_ID", "0", 1);
        (void)setenv("SLURM_PROCID", "1", 1);
        (void)setenv("SLURM_STEP_NUM_TASKS", "4", 1);
    }
    for (int i = 0; i < 8 && in.left > 0; i++) set(&in);
    read_all();
    input = &in;
    connect_run();
    return 0;
}
