/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "settings/address.h"

#include <netdb.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

const char *
address_unix_path(const char *text)
{
    return strncmp(text, "unix:", 5) == 0 ? text + 5 : NULL;
}

/* Checks the port, because getaddrinfo() would use the lower 16 bits of any number. */
static bool
is_port(const char *text)
{
    size_t len = strlen(text);
    return len > 0 && len <= 5 && strspn(text, "0123456789") == len &&
           strtol(text, NULL, 10) <= UINT16_MAX;
}

bool
address_split(const char *text, char *host, size_t size, const char **ret_port)
{
    const char *colon = strrchr(text, ':');
    if (!colon || colon == text)
        return false;
    size_t len = (size_t)(colon - text);
    if (*text == '[' && text[len - 1] == ']') {
        text++;
        len -= 2;
    }
    if (len == 0 || len >= size || (*text != '[' && memchr(text, ']', len)))
        return false;
    memcpy(host, text, len);
    host[len] = '\0';
    *ret_port = colon + 1;
    return is_port(colon + 1);
}

bool
address_is_valid(const char *text)
{
    char host[NI_MAXHOST];
    const char *port, *path = address_unix_path(text);
    return path ? *path : address_split(text, host, sizeof host, &port);
}
