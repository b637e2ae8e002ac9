/* bench_util.c - times, lists and connections for pccl-bench. */
#include "bench.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

int64_t bench_now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * INT64_C(1000000000) + t.tv_nsec;
}

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a;
    double y = *(const double *)b;
    return (x > y) - (x < y);
}

double bench_quantile(double *values, int count, double q)
{
    if (count == 0) return 0;
    qsort(values, (size_t)count, sizeof *values, by_value);
    int at = (int)(q * (count - 1) + 0.5);
    return values[at];
}

bool bench_size(const char **text, size_t *size)
{
    if (**text < '0' || **text > '9') return false;
    char *end;
    unsigned long long value = strtoull(*text, &end, 10);
    const char *units = "KMGkmg";
    const char *unit = *end ? strchr(units, *end) : NULL;
    int shift = unit ? 10 * (int)((unit - units) % 3 + 1) : 0;
    if (value > (UINT64_C(1) << 48) >> shift) return false;
    if (unit) end++;
    if (*end != '\0' && *end != ',') return false;
    *size = (size_t)value << shift;
    *text = *end == ',' ? end + 1 : end;
    return true;
}

bool bench_word(const char **text, char *word, size_t room)
{
    size_t length = strcspn(*text, ",");
    if (length == 0) return false;
    snprintf(word, room, "%.*s", (int)length, *text);
    *text += length;
    if (**text == ',') ++*text;
    return true;
}

bool bench_address(const char *address, ccoip_socket_address_t *to)
{
    unsigned ip[4];
    const char *colon = strrchr(address, ':');
    if (!colon ||
        sscanf(address, "%u.%u.%u.%u:", &ip[0], &ip[1], &ip[2], &ip[3]) != 4)
        return false;
    to->inet.protocol = inetIPv4;
    for (int i = 0; i < 4; i++) to->inet.ipv4.data[i] = (uint8_t)ip[i];
    to->port = (uint16_t)strtoul(colon + 1, NULL, 10);
    return true;
}

pcclComm_t *bench_connect(const char *address, int hint, int pool)
{
    pcclCommCreateParams_t params = {.p2p_connection_pool_size =
                                         (uint32_t)pool};
    if (!bench_address(address, &params.master_address)) {
        fprintf(stderr, "pccl-bench: PCCL_MASTER=%s is not IPv4:PORT\n",
                address);
        return NULL;
    }
    pcclComm_t *comm = NULL;
    pcclCommOptions_t options = {.size = sizeof options, .rank_hint = hint};
    pcclResult_t rc = pcclInit();
    if (rc == pcclSuccess) rc = pcclCreateCommunicator(&params, &comm);
    if (rc == pcclSuccess) rc = pcclSetOptions(comm, &options);
    if (rc == pcclSuccess) rc = pcclConnect(comm);
    if (rc == pcclSuccess) return comm;
    char why[256] = "";
    if (comm) (void)pcclGetLastError(comm, why, sizeof why);
    fprintf(stderr, "pccl-bench: %s: %s\n", pcclGetErrorString(rc), why);
    if (comm) (void)pcclDestroyCommunicator(comm);
    return NULL;
}

pcclComm_t *bench_join_run(const struct bench_options *o)
{
    const char *hint = getenv("PCCL_RANK");
    return bench_connect(getenv("PCCL_MASTER"),
                         hint ? (int)strtol(hint, NULL, 10) : -1, o->pool);
}
