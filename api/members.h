/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One table says everything about the spec's JSON: which members there are, which types
 * they take, which values this version can do and which it only knows, and where the
 * value goes. The decoder and the encoder (spec.c) walk it; a new member is a field of
 * struct qdq_spec and a row.
 */
#ifndef API_MEMBERS_H
#define API_MEMBERS_H

#include "api/spec.h"
#include "json.h"

struct api_spec {
    struct qdq_spec spec;
    json_t *root; /* strings of `spec` live here */
    struct qdq_given_range *ranges;
};

struct reader {
    struct api_spec *to;
    struct api_problem *problem;
};

struct member;

/* Reads a value of a type that the member takes. False when a problem was set. */
typedef bool (*read_fn)(struct reader *r, const struct member *m, json_t *value);
/* The member's value in the effective spec; null when there is nothing to say. */
typedef json_t *(*write_fn)(const struct qdq_spec *spec, const struct member *m);

enum {
    BOOL = 1 << 0,
    INTEGER = 1 << 1, /* an integral number, however written */
    NUMBER = 1 << 2,
    STRING = 1 << 3,
    ARRAY = 1 << 4,
    OBJECT = 1 << 5,
};

struct member {
    const char *pointer; /* RFC 6901, from the spec's root */
    unsigned types;
    read_fn read;
    write_fn write;  /* NULL: not written */
    ptrdiff_t field; /* offset in struct qdq_spec, or NO_FIELD */
    /* Choices: those that can be done, in the order of the field's enum, NULL, those
       that are only known, NULL. Fixed values: the only value that can be done, as
       JSON, or NULL. */
    const char *const *names;
    int64_t min; /* of counts */
};

enum { NO_FIELD = -1 };

extern const struct member api_members[];
extern const size_t api_n_members;

/* The member as people write it: "weights.dtype". */
struct label {
    char text[64];
};
struct label api_label(const struct member *m);

/* Reads the members of the object that stands at `base` (spec.c). */
bool api_read_members(struct reader *r, const char *base, json_t *object);

/* Readers and writers that have a file of their own: given ranges (ranges.c). */
bool api_read_ranges(struct reader *r, const struct member *m, json_t *value);
json_t *api_write_ranges(const struct qdq_spec *spec, const struct member *m);

#endif
