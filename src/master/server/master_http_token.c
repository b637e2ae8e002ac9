/* master_http_token.c - who needs a token, and which one will do. */
#include "master_http.h"

#include "http_gate.h"

#include <string.h>
#include <sys/random.h>

bool master_http_is_public(const char *host)
{
    return !host || (strncmp(host, "127.", 4) != 0 && strcmp(host, "::1") != 0);
}

bool master_http_new_token(char token[MASTER_HTTP_TOKEN_SIZE])
{
    static const char digits[] = "0123456789abcdef";
    unsigned char bytes[(MASTER_HTTP_TOKEN_SIZE - 1) / 2];
    if (getrandom(bytes, sizeof bytes, 0) != (ssize_t)sizeof bytes)
        return false;
    for (size_t i = 0; i < sizeof bytes; i++) {
        token[2 * i] = digits[bytes[i] >> 4];
        token[2 * i + 1] = digits[bytes[i] & 15];
    }
    token[MASTER_HTTP_TOKEN_SIZE - 1] = '\0';
    return true;
}

const char *master_http_token_fault(const char *token)
{
    return http_token_fault(token);
}
