/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "api/grow.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum { FIRST_ROOM = 8 };

/* Returns the room that an array of n elements has at least; 0 when it would overflow. */
static size_t
room_of(size_t n)
{
    size_t room = n ? FIRST_ROOM : 0;
    while (room && room < n)
        room *= 2;
    return room;
}

void *
api_grow(void *array, size_t n, size_t more, size_t size)
{
    size_t needed, bytes;
    if (__builtin_add_overflow(n, more ? more : 1, &needed))
        return NULL;
    size_t room = room_of(needed);
    if (array && n && room && room == room_of(n))
        return array;
    if (!room || __builtin_mul_overflow(room, size, &bytes) || bytes > PTRDIFF_MAX)
        return NULL;
    return realloc(array, bytes);
}

bool
api_append(char **text, size_t *len, const void *bytes, size_t n)
{
    char *grown = api_grow(*text, *len, n + 1, 1);
    if (!grown)
        return false;
    memcpy(grown + *len, bytes, n);
    *len += n;
    grown[*len] = '\0';
    *text = grown;
    return true;
}
