/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "ground/base/arena.h"

#include <stdalign.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#ifdef QDQ_ARENA_EMULATOR
enum { CHUNK = 0 };
#else
enum { CHUNK = 64 * 1024 };
#endif

struct chunk {
    struct chunk *next;
    size_t used, size;
    alignas(max_align_t) unsigned char bytes[];
};

struct qdqi_arena {
    struct chunk *first; /* the chunk that small allocations come from */
    bool exhausted;
};

struct qdqi_arena *
qdqi_arena_new(void)
{
    return calloc(1, sizeof(struct qdqi_arena));
}

void
qdqi_arena_free(struct qdqi_arena **arena)
{
    if (!arena || !*arena)
        return;
    struct chunk *next;
    for (struct chunk *c = (*arena)->first; c; c = next) {
        next = c->next;
        free(c);
    }
    free(*arena);
    *arena = NULL;
}

/* Makes a chunk. A chunk that is shared by allocations is zeroed piece by piece as
   it is handed out, because most arenas need little of theirs. */
static struct chunk *
chunk_new(size_t size, bool own)
{
    struct chunk *c = own ? calloc(1, sizeof *c + size) : malloc(sizeof *c + size);
    if (!c)
        return NULL;
    c->next = NULL;
    c->used = 0;
    c->size = size;
    return c;
}

bool
qdqi_arena_exhausted(const struct qdqi_arena *arena)
{
    return arena->exhausted;
}

void *
qdqi_arena_alloc(struct qdqi_arena *arena, size_t size)
{
    const size_t align = alignof(max_align_t);
    if (size > SIZE_MAX / 2) {
        arena->exhausted = true;
        return NULL;
    }
    size = size ? (size + align - 1) / align * align : align;
    struct chunk *c = arena->first;
    bool own = false;
    if (!c || c->size - c->used < size) {
        /* a large allocation gets a chunk of its own, behind the current one */
        own = size > CHUNK / 4;
        c = chunk_new(own ? size : CHUNK, own);
        if (!c) {
            arena->exhausted = true;
            return NULL;
        }
        if (own && arena->first) {
            c->next = arena->first->next;
            arena->first->next = c;
        } else {
            c->next = arena->first;
            arena->first = c;
        }
    }
    void *p = c->bytes + c->used;
    c->used += size;
    return own ? p : memset(p, 0, size);
}

void *
qdqi_arena_array(struct qdqi_arena *arena, size_t n, size_t size)
{
    size_t total;
    if (__builtin_mul_overflow(n, size, &total))
        return NULL;
    return qdqi_arena_alloc(arena, total);
}

void *
qdqi_arena_copy(struct qdqi_arena *arena, const void *from, size_t n, size_t size)
{
    void *copy = qdqi_arena_array(arena, n, size);
    return copy && n ? memcpy(copy, from, n * size) : copy;
}

void *
qdqi_arena_grow(struct qdqi_arena *arena, void *rows, size_t n, size_t *capacity,
                size_t size)
{
    size_t room = *capacity ? *capacity * 2 : 16;
    if (n < *capacity)
        return rows;
    void *grown = qdqi_arena_array(arena, room, size);
    if (!grown)
        return NULL;
    *capacity = room;
    return n ? memcpy(grown, rows, n * size) : grown;
}

char *
qdqi_arena_strndup(struct qdqi_arena *arena, const char *text, size_t len)
{
    char *copy = qdqi_arena_alloc(arena, len + 1);
    if (copy)
        memcpy(copy, text, len);
    return copy;
}

char *
qdqi_arena_strdup(struct qdqi_arena *arena, const char *text)
{
    return qdqi_arena_strndup(arena, text, strlen(text));
}

char *
qdqi_arena_printf(struct qdqi_arena *arena, const char *fmt, ...)
{
    va_list args, again;
    va_start(args, fmt);
    va_copy(again, args);
    int len = vsnprintf(NULL, 0, fmt, args);
    char *text = len < 0 ? NULL : qdqi_arena_alloc(arena, (size_t)len + 1);
    if (text)
        vsnprintf(text, (size_t)len + 1, fmt, again);
    va_end(again);
    va_end(args);
    return text;
}

void *
qdqi_grow(void *rows, size_t *capacity, size_t needed, size_t size)
{
    const size_t least = 64, most = SIZE_MAX / 2 / size;
    size_t room = *capacity > least / 2 ? *capacity : least / 2;
    if (rows && needed <= *capacity)
        return rows;
    if (needed > most || room > most)
        return NULL;
    room = needed > 2 * room ? needed : 2 * room;
    if (!(rows = realloc(rows, room * size)))
        return NULL;
    *capacity = room;
    return rows;
}

enum qdq_code
qdqi_no_memory(struct qdq_error *err)
{
    return qdq_error_set(err, QDQ_NO_MEMORY, QDQ_AT_NOTHING, NULL, "out of memory");
}
