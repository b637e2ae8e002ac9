/* allocation.c - hosts by the variables of batch systems. */
#include "allocation.h"

#include "option_table.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

bool hosts_parse_pairs(struct host_list *list, const char *text, bool lines,
                       char *error, size_t error_size)
{
    char name[HOST_SIZE], count[16], both[HOST_SIZE + 16];
    static_assert(HOST_SIZE > 255, "the width below");
    int used = 0, got;
    while ((got = sscanf(text, "%255s %15s%n", name, count, &used)) > 0) {
        if (got == 1) {
            snprintf(error, error_size, "'%s' has no number", name);
            return false;
        }
        snprintf(both, sizeof both, "%s:%s", name, count);
        if (!hosts_parse(list, both, error, error_size)) return false;
        text += used;
        if (lines) text += strcspn(text, "\n");
    }
    return true;
}

static bool parse_named(struct host_list *list, const char *path, bool engine,
                        char *error, size_t error_size)
{
    char *text = option_file(path);
    if (!text) {
        snprintf(error, error_size, "%s: %s", path, strerror(errno));
        return false;
    }
    bool good = engine ? hosts_parse_pairs(list, text, true, error, error_size)
                       : hosts_parse_file(list, text, error, error_size);
    free(text);
    return good;
}

/* Flux tells the hosts of an instance by a command only. Without it the ranks
 * run here. */
static bool ask_flux(struct host_list *list, char *error, size_t error_size)
{
    char text[8192] = "";
    FILE *flux = popen("flux getattr hostlist", "re");
    size_t size = flux ? fread(text, 1, sizeof text - 1, flux) : 0;
    if (flux) pclose(flux);
    text[size] = '\0';
    text[strcspn(text, "\n")] = '\0';
    return !*text || hosts_parse_slurm(list, text, NULL, error, error_size);
}

bool allocation_hosts(struct host_list *list, const char **source, char *error,
                      size_t error_size)
{
    enum form { LINES, ENGINE, PAIRS, FLUX };
    static const struct {
        const char *name;
        enum form form;
    } known[] = {{"PBS_NODEFILE", LINES},      {"OAR_NODEFILE", LINES},
                 {"LSB_DJOB_HOSTFILE", LINES}, {"LSB_MCPU_HOSTS", PAIRS},
                 {"PE_HOSTFILE", ENGINE},      {"FLUX_URI", FLUX}};
    for (size_t i = 0; i < ARRAY_COUNT(known); i++) {
        const char *value = getenv(known[i].name);
        if (!value || !*value) continue;
        *source = known[i].name;
        if (known[i].form == PAIRS)
            return hosts_parse_pairs(list, value, false, error, error_size);
        if (known[i].form == FLUX) return ask_flux(list, error, error_size);
        return parse_named(list, value, known[i].form == ENGINE, error,
                           error_size);
    }
    *source = NULL;
    return true;
}
