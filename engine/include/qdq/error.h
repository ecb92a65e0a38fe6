/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Errors. Every call that can fail returns enum qdq_code (QDQ_OK = 0), writes its
 * results only on success and its struct qdq_error only on failure.
 *
 * The caller owns struct qdq_error. It never allocates, may be NULL, and keeps the
 * first error that is set in it, so the root cause survives unwinding. Start from
 * `struct qdq_error err = {0};`.
 */
#ifndef QDQ_ERROR_H
#define QDQ_ERROR_H

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define QDQ_API __attribute__((visibility("default")))
#define QDQ_MUST_CHECK __attribute__((warn_unused_result))
#define QDQ_PRINTF(fmt, args) __attribute__((format(printf, fmt, args)))

enum qdq_code {
    QDQ_OK = 0,
#define QDQ_CODE(name, slug, meaning) QDQ_##name,
#include "qdq/codes.h"
#undef QDQ_CODE
    QDQ_N_CODES
};

/* The kind of place that an error names in `where`. */
enum qdq_where {
    QDQ_AT_NOTHING = 0,
    QDQ_AT_POINTER, /* a place in the spec, as an RFC 6901 JSON pointer */
    QDQ_AT_NODE,    /* a node of the model, by its reported name */
    QDQ_AT_TENSOR,  /* a tensor of the model */
    QDQ_AT_INPUT,   /* a graph input or an array of the dataset */
    QDQ_AT_SAMPLE,  /* a sample's index, in decimal */
    QDQ_AT_OFFSET,  /* a byte offset in the file, in decimal */
    QDQ_N_WHERES
};

struct qdq_error {
    enum qdq_code code;
    enum qdq_where kind;
    /* "" when kind is QDQ_AT_NOTHING; a longer text is cut and ends in "..." */
    char where[256];
    char text[512]; /* one line, no final full stop */
};

/*
 * Sets *err unless it is NULL or already set. Returns `code`, so that a failing
 * function ends in `return qdq_error_set(err, ...)`. `where` may be NULL.
 */
QDQ_API enum qdq_code qdq_error_set(struct qdq_error *err, enum qdq_code code,
                                    enum qdq_where kind, const char *where,
                                    const char *fmt, ...) QDQ_PRINTF(5, 6);

/*
 * Print one line, as errors and warnings are, into `size` bytes, which are more than 4. Control
 * characters become spaces. A text that is too long is cut between two characters of UTF-8 and ends
 * in "...". Parts of characters, such as a precision like "%.64s" leaves, are dropped; other bytes
 * that are not UTF-8 stay.
 */
QDQ_API void qdq_text_vprint(char *to, size_t size, const char *fmt, va_list args)
    QDQ_PRINTF(3, 0);
QDQ_API void qdq_text_print(char *to, size_t size, const char *fmt, ...)
    QDQ_PRINTF(3, 4);

/* Copies a text, cut in the same way, with its control characters. */
QDQ_API void qdq_text_copy(char *to, size_t size, const char *from);

/* Return the stable slug of a code ("invalid_model"), and its meaning. Never NULL. */
QDQ_API const char *qdq_code_slug(enum qdq_code code);
QDQ_API const char *qdq_code_meaning(enum qdq_code code);

/* Returns the name of the problem document's member for `kind`: "pointer", "node"… */
QDQ_API const char *qdq_where_name(enum qdq_where kind);

#endif
