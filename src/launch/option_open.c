/* option_open.c - options of open runs: who issues tokens, for whom, and who
 * decides beside them (rules K10 to K16). */
#include "option_table.h"

#include "../base/decimal.h"
#include "../base/secure_token.h"

#include <stdlib.h>
#include <string.h>

enum { DAY = 24 * 60 * 60, LIFETIME_DEFAULT = 30 * DAY };

#define LIFETIME_MAX 3.2e9 /* s: a century */

bool option_issue(struct parser *p, const char *value)
{
    p->options->issue = value;
    if (token_name_is_valid(value)) return true;
    return option_fail(p->options,
                       "%s: '%s' is no name: 1 to %d letters, digits and "
                       "._@-, the first one a letter, a digit or _@",
                       p->name, value, (int)GRANT_NAME_MAX);
}

bool option_group(struct parser *p, const char *value)
{
    uint64_t number;
    if (!number_parse(value, UINT32_MAX, &number))
        return option_fail(p->options, "%s: '%s' is no number of a peer group",
                           p->name, value);
    p->options->has_group = true;
    p->options->group = (uint32_t)number;
    return true;
}

bool option_rights(struct parser *p, const char *value)
{
    uint8_t rights = 0;
    for (const char *at = value;; at++) {
        size_t length = strcspn(at, ",");
        if (length == 4 && strncmp(at, "join", length) == 0)
            rights |= GRANT_JOIN;
        else if (length == 7 && strncmp(at, "observe", length) == 0)
            rights |= GRANT_OBSERVE;
        else
            return option_fail(p->options,
                               "%s: '%.*s' is no right: join, observe or both "
                               "with a comma between them",
                               p->name, (int)length, at);
        at += length;
        if (*at == '\0') break;
    }
    p->options->rights = rights;
    return true;
}

/* 90, 90s, 15m, 12h, 7d or never. */
bool option_expires(struct parser *p, const char *value)
{
    static const char units[] = "smhd";
    static const double seconds[] = {1, 60, 3600, DAY};
    struct options *o = p->options;
    size_t length = strlen(value);
    const char *unit = length > 1 ? strchr(units, value[length - 1]) : NULL;
    char number[32];
    double count = 0;
    o->has_lifetime = true;
    o->lifetime = 0;
    if (strcmp(value, "never") == 0) return true;
    if (unit) length--;
    if (length < sizeof number) {
        memcpy(number, value, length);
        number[length] = '\0';
        if (!decimal_parse(number, &count)) count = 0;
    }
    if (unit) count *= seconds[unit - units];
    if (count < 1 || count > LIFETIME_MAX)
        return option_fail(o, "%s: '%s' is no time: 90s, 15m, 12h, 7d or never",
                           p->name, value);
    o->lifetime = (uint64_t)count;
    return true;
}

static bool check_issue(struct options *o, bool alone)
{
    if (!o->issuer)
        return option_fail(o, "--issue signs with --issuer FILE, which "
                              "--make-issuer makes");
    if (!alone || o->join || o->has_listen || o->revoked || o->hook)
        return option_fail(o, "--issue writes a token to the standard output: "
                              "no program, no coordinator");
    if (!o->has_lifetime) o->lifetime = LIFETIME_DEFAULT;
    if (o->rights == 0) o->rights = GRANT_JOIN;
    return true;
}

bool option_check_open(struct options *o, bool alone)
{
    if (o->make_issuer) {
        o->mode = MODE_MAKE_ISSUER;
        return alone || option_fail(o, "--make-issuer makes files: no program");
    }
    if (o->issue) {
        o->mode = MODE_ISSUE;
        return check_issue(o, alone);
    }
    if (o->has_group || o->has_lifetime || o->rights != 0)
        return option_fail(o, "--group, --rights and --expires are of a token: "
                              "they belong to --issue NAME");
    bool coordinates = alone && !o->join && !o->asks_status;
    if ((o->issuer || o->revoked || o->hook) && !coordinates)
        return option_fail(o, "--issuer, --revoked and --hook belong to a "
                              "pccl-master that coordinates alone: no "
                              "program, no --join, no --status");
    if (o->revoked && !o->issuer)
        return option_fail(o, "--revoked names participants, who have tokens: "
                              "it needs --issuer FILE");
    if (o->issuer && o->insecure)
        return option_fail(o, "--issuer is for tokens, and --insecure takes "
                              "everybody");
    return true;
}
