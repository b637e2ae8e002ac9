/* master_http_token.c - who needs a token, and which one will do. */
#include "master_http.h"

#include "../../base/hex.h"
#include "http_gate.h"

#include <string.h>
#include <sys/random.h>

bool master_http_is_public(const char *host)
{
    return !host || (strncmp(host, "127.", 4) != 0 && strcmp(host, "::1") != 0);
}

bool master_http_new_token(char token[MASTER_HTTP_TOKEN_SIZE])
{
    uint8_t bytes[(MASTER_HTTP_TOKEN_SIZE - 1) / 2];
    if (getrandom(bytes, sizeof bytes, 0) != (ssize_t)sizeof bytes)
        return false;
    hex_print(bytes, sizeof bytes, token);
    return true;
}

const char *master_http_token_fault(const char *token)
{
    return http_token_fault(token);
}
