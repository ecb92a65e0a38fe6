/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Memory that lives and dies together: everything derived from one model, dataset, plan
 * or report lies in its arena and is freed with it, once.
 *
 * Not for bulk data: tensors stay mapped or in buffers of their own.
 * --enable-arena-emulator makes each allocation a malloc, so that sanitizers see
 * bounds.
 */
#ifndef QDQI_BASE_ARENA_H
#define QDQI_BASE_ARENA_H

#include "qdq/error.h"

struct qdqi_arena;

struct qdqi_arena *qdqi_arena_new(void); /* NULL when out of memory */
void qdqi_arena_free(struct qdqi_arena **arena);

/* Zeroed, aligned for any type; never NULL for size 0; NULL when out of memory. */
void *qdqi_arena_alloc(struct qdqi_arena *arena, size_t size);
/* The same for n elements; NULL also when the product overflows. */
void *qdqi_arena_array(struct qdqi_arena *arena, size_t n, size_t size);
/* Whether an allocation has failed; for callers of code that does not tell. */
bool qdqi_arena_exhausted(const struct qdqi_arena *arena);
char *qdqi_arena_strdup(struct qdqi_arena *arena, const char *text);
char *qdqi_arena_strndup(struct qdqi_arena *arena, const char *text, size_t len);
char *qdqi_arena_printf(struct qdqi_arena *arena, const char *fmt, ...)
    QDQ_PRINTF(2, 3);

/* Sets NO_MEMORY; for `return qdqi_no_memory(err)`. */
enum qdq_code qdqi_no_memory(struct qdq_error *err);

#endif
