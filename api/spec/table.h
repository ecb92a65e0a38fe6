/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tables say everything about the spec's JSON: which members an object has, which types
 * they have, which values this version can do and which it only knows, and where the
 * value goes. The decoder and the encoder of table.c walk them; a new member is a field
 * of a struct of qdq/spec.h and a row. The table of the spec itself is in members.c, and
 * those of the items of its lists are in layers.c, cases.c and support.c.
 */
#ifndef API_SPEC_TABLE_H
#define API_SPEC_TABLE_H

#include "api/spec.h"
#include "base/json.h"

struct member;

/* The members of one kind of object. */
struct table {
    const struct member *members;
    size_t n;
};
#define TABLE(members)                               \
    {                                                \
        members, sizeof(members) / sizeof *(members) \
    }

struct api_spec {
    struct qdq_spec spec;
    json_t *root;         /* strings of `spec` live here */
    struct block *blocks; /* and arrays here */
};

/* Reads one object. */
struct reader {
    struct api_spec *to;
    struct api_problem *problem;
    const struct table *table; /* the object's */
    void *object;              /* the struct that the members' fields lie in */
    const char *at;            /* the object's pointer from the spec's root, RFC 6901 */
};

/* Reads a value of a type that the member takes. False when a problem was set. */
typedef bool (*read_fn)(struct reader *r, const struct member *m, json_t *value);
/* The member's value in the effective spec; null when there is nothing to say. */
typedef json_t *(*write_fn)(const void *object, const struct member *m);

enum {
    BOOL = 1 << 0,
    INTEGER = 1 << 1, /* an integral number, however written */
    NUMBER = 1 << 2,
    STRING = 1 << 3,
    ARRAY = 1 << 4,
    OBJECT = 1 << 5,
    NOTHING = 1 << 6, /* null says something, so it is written, too */
};

/* The names that a member can have for its value: a list here, or the rows of a table of
   the engine. */
struct choices {
    const char *const *names;           /* ended by NULL; or NULL itself: */
    const char *(*name_of_row)(size_t); /* NULL past the last row */
};
#define NAMES(...) \
    (&(const struct choices){(const char *const[]){__VA_ARGS__, NULL}, NULL})
#define NAMES_OF_ROWS(function) (&(const struct choices){NULL, function})

struct member {
    const char *pointer; /* from the table's object */
    unsigned types;
    read_fn read;
    write_fn write;                /* NULL: not written */
    ptrdiff_t field;               /* offset in the struct, or NO_FIELD */
    const struct choices *choices; /* in the order of the field's enum */
    int64_t min;                   /* of counts */
};

enum { NO_FIELD = -1 };

/* --- objects and lists ---------------------------------------------------- */

/* Reads the members of the object, or of its group that stands at `base` in it. */
bool api_read_members(struct reader *r, const char *base, json_t *object);
/* The object of a table with every member that has a value. */
json_t *api_write_members(const struct table *table, const void *object);

/* What the items of an array are, and the structs that they become. */
struct list {
    unsigned types;
    size_t size; /* of an item's struct */
    size_t min, max;
    const struct table *table; /* of items that are objects */
    bool (*read)(struct reader *r, json_t *item);
};

/* The items as a new array, which the spec owns; NULL when a problem was set. */
void *api_read_list(struct reader *r, const struct member *m, json_t *array,
                    const struct list *list);

/* Zeroed memory that lives as long as the spec; NULL when a problem was set. */
void *api_spec_alloc(struct reader *r, size_t n, size_t size);
/* Frees all that api_spec_alloc() gave the spec. */
void api_spec_free_arrays(struct api_spec *spec);

/* Sets a problem at a place below the object; false, for `return`. */
bool api_refuse(struct reader *r, enum api_code code, const char *pointer,
                const char *fmt, ...) QDQ_PRINTF(4, 5);

/* A place below the object as people write it: "weights.dtype", "layers[2].name". */
struct label {
    char text[64];
};
struct label api_label(const struct reader *r, const char *pointer);

#endif
