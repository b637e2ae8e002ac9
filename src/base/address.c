/* address.c - parses and prints HOST:PORT. */
#include "address.h"

#include "decimal.h"

#include <stdio.h>
#include <string.h>

static bool port_parse(const char *text, uint16_t *port)
{
    uint64_t value;
    if (strlen(text) > 5 || !number_parse(text, UINT16_MAX, &value))
        return false;
    *port = (uint16_t)value;
    return true;
}

static bool host_copy(struct address *address, const char *host, size_t length)
{
    if (length >= sizeof address->host) return false;
    memcpy(address->host, host, length);
    address->host[length] = '\0';
    if (strcmp(address->host, "*") == 0) address->host[0] = '\0';
    return strpbrk(address->host, "[]/ \t") == NULL;
}

bool address_parse(const char *text, uint16_t default_port,
                   struct address *address)
{
    *address = (struct address){.port = default_port};
    if (*text == '\0') return false;
    if (text[strspn(text, "0123456789")] == '\0')
        return port_parse(text, &address->port);
    if (*text == '[') {
        const char *end = strchr(text, ']');
        if (!end || end == text + 1) return false;
        if (!host_copy(address, text + 1, (size_t)(end - text) - 1))
            return false;
        if (end[1] == '\0') return true;
        return end[1] == ':' && port_parse(end + 2, &address->port);
    }
    const char *colon = strchr(text, ':');
    if (!colon || strchr(colon + 1, ':')) /* a name, or IPv6 without port */
        return host_copy(address, text, strlen(text));
    return port_parse(colon + 1, &address->port) &&
           host_copy(address, text, (size_t)(colon - text));
}

bool address_next(const char **list, uint16_t default_port,
                  struct address *address)
{
    char one[HOST_SIZE + 8];
    size_t length = strcspn(*list, ",");
    if (length >= sizeof one) return false;
    memcpy(one, *list, length);
    one[length] = '\0';
    if (!address_parse(one, default_port, address)) return false;
    *list = (*list)[length] == ',' ? *list + length + 1 : NULL;
    return true;
}

bool address_is_host(const char *text)
{
    struct address address;
    return address_parse(text, 0, &address) && address.host[0] != '\0';
}

bool address_is_any(const struct address *address)
{
    return *address->host == '\0' || strcmp(address->host, "0.0.0.0") == 0 ||
           strcmp(address->host, "::") == 0;
}

char *address_print(const struct address *address, char *text, size_t size)
{
    const char *format = strchr(address->host, ':') ? "[%s]:%u" : "%s:%u";
    const char *host = *address->host ? address->host : "*";
    snprintf(text, size, format, host, (unsigned)address->port);
    return text;
}

char *address_print_local(const struct address *address, char *text,
                          size_t size)
{
    struct address local = *address;
    if (address_is_any(address))
        snprintf(local.host, sizeof local.host, "%s",
                 strcmp(local.host, "::") == 0 ? "::1" : "127.0.0.1");
    return address_print(&local, text, size);
}
