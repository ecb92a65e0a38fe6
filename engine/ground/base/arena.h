/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An arena holds memory with one lifetime: everything derived from one model, dataset,
 * plan or report lies in its arena and is freed with it, at once.
 *
 * An arena is not for bulk data: tensors stay in the mapped files or in buffers of
 * their own. configure's --enable-arena-emulator makes each allocation a malloc, so
 * that sanitizers see its bounds.
 */
#ifndef QDQI_GROUND_BASE_ARENA_H
#define QDQI_GROUND_BASE_ARENA_H

#include "qdq/error.h"

struct qdqi_arena;

struct qdqi_arena *qdqi_arena_new(void); /* returns NULL when out of memory */
void qdqi_arena_free(struct qdqi_arena **arena);

/* Returns zeroed memory that is aligned for any type; NULL when out of memory. A
   size of 0 gives a valid pointer. */
void *qdqi_arena_alloc(struct qdqi_arena *arena, size_t size);
/* Does the same for n elements. Also returns NULL when the product overflows. */
void *qdqi_arena_array(struct qdqi_arena *arena, size_t n, size_t size);
/* Copies n elements. Returns NULL when out of memory. */
void *qdqi_arena_copy(struct qdqi_arena *arena, const void *from, size_t n,
                      size_t size);

/* Makes room for one more than the n elements of an array, whose capacity at least doubles
   when it is full. Returns the array or a larger copy; NULL when out of memory. */
void *qdqi_arena_grow(struct qdqi_arena *arena, void *rows, size_t n, size_t *capacity,
                      size_t size);

/* Returns whether an allocation has failed. For callers of code that does not report
   it. */
bool qdqi_arena_exhausted(const struct qdqi_arena *arena);
char *qdqi_arena_strdup(struct qdqi_arena *arena, const char *text);
char *qdqi_arena_strndup(struct qdqi_arena *arena, const char *text, size_t len);
char *qdqi_arena_printf(struct qdqi_arena *arena, const char *fmt, ...)
    QDQ_PRINTF(2, 3);

/*
 * Grows an array on the heap that has room for *capacity elements of `size` bytes, so that
 * it has room for `needed`; the room at least doubles. Returns the array, or NULL when out
 * of memory or when the size overflows: then the old array is as it was.
 */
void *qdqi_grow(void *rows, size_t *capacity, size_t needed,
                size_t size) QDQ_MUST_CHECK;

/* Sets NO_MEMORY and returns it, so that a function can end in `return
   qdqi_no_memory(err)`. */
enum qdq_code qdqi_no_memory(struct qdq_error *err);

#endif
