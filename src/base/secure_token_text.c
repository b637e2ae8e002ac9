/* secure_token_text.c - names and times of tokens, and what a fault of one says
 * to its holder. See secure_token.h. */
#include "secure_token.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

bool token_name_is_valid(const char *name)
{
    static const char letters[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
                                  "abcdefghijklmnopqrstuvwxyz0123456789._@-";
    size_t length = strlen(name);
    return length > 0 && length <= GRANT_NAME_MAX && *name != '.' &&
           *name != '-' && strspn(name, letters) == length;
}

enum token_fault token_at(const struct token *token, uint64_t now)
{
    if (token->issued > TOKEN_CLOCK_SKEW &&
        token->issued - TOKEN_CLOCK_SKEW > now)
        return TOKEN_EARLY;
    if (token->expires != 0 && now > TOKEN_CLOCK_SKEW &&
        now - TOKEN_CLOCK_SKEW >= token->expires)
        return TOKEN_EXPIRED;
    return TOKEN_FINE;
}

static void print_time(uint64_t at, char text[32])
{
    time_t time = (time_t)at;
    struct tm parts;
    if (!gmtime_r(&time, &parts) ||
        strftime(text, 32, "%Y-%m-%d %H:%M:%S UTC", &parts) == 0)
        snprintf(text, 32, "an unknown time");
}

void token_fault_text(enum token_fault fault, const struct token *token,
                      char *text, size_t size)
{
    static const char *const texts[TOKEN_FAULTS] = {
        [TOKEN_FINE] = "nothing is wrong with this token",
        [TOKEN_FOREIGN] = "this run takes tokens of participants, and not its "
                          "key: pccl-master --issue NAME makes one",
        [TOKEN_BROKEN] = "this token is of no form that this version knows",
        [TOKEN_OTHER_ISSUER] = "this token is of another issuer than this run "
                               "believes",
        [TOKEN_FORGED] = "this token is not signed by the issuer that it "
                         "names: it was changed",
    };
    char time[32];
    switch (fault) {
    case TOKEN_EARLY:
        print_time(token->issued, time);
        snprintf(text, size,
                 "the token of %s is valid from %s on: is a clock wrong?",
                 token->grant.name, time);
        return;
    case TOKEN_EXPIRED:
        print_time(token->expires, time);
        snprintf(text, size, "the token of %s expired at %s: ask for a new one",
                 token->grant.name, time);
        return;
    case TOKEN_REVOKED:
        snprintf(text, size, "the token of %s is revoked", token->grant.name);
        return;
    default:
        snprintf(text, size, "%s", texts[fault]);
        return;
    }
}
