/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tables describe the spec's JSON: which members an object has, which types and values
 * each member accepts, and where its value is stored. The decoder and the encoder of
 * table.c walk them, so a new member is a field of a struct of qdq/spec.h and a row. The
 * table of the spec itself is in members.c, and those of the items of its lists are in
 * layers.c, cases.c and support.c.
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
    json_t *root;         /* owns the strings of `spec` */
    struct block *blocks; /* own the arrays of `spec` */
};

/* The state while one object is decoded. */
struct decoder {
    struct api_spec *to;
    struct api_problem *problem;
    const struct table *table; /* the rows of the object's members */
    void *object;              /* the struct that the values are stored in */
    const char *at;            /* the object's pointer from the spec's root, RFC 6901 */
};

/* Stores a value, whose type is one of the member's. Returns false when it has set a
   problem. */
typedef bool (*decode_fn)(struct decoder *d, const struct member *m, json_t *value);
/* Returns the member's value for the effective spec; null leaves the member out. */
typedef json_t *(*encode_fn)(const void *object, const struct member *m);

enum {
    BOOL = 1 << 0,
    INTEGER = 1 << 1, /* a whole number: 3, 3.0 or 3e0 */
    NUMBER = 1 << 2,
    STRING = 1 << 3,
    ARRAY = 1 << 4,
    OBJECT = 1 << 5,
    NULL_VALUE = 1 << 6, /* null, which has a meaning here and is encoded, too */
};

/* The names that are a member's values: a list, or the names of the rows of a table of the
   engine. */
struct choices {
    const char *const *names;           /* ends with NULL; or is NULL, and then */
    const char *(*name_of_row)(size_t); /* returns NULL behind the last row */
};
#define NAMES(...) \
    (&(const struct choices){(const char *const[]){__VA_ARGS__, NULL}, NULL})
#define NAMES_OF_ROWS(function) (&(const struct choices){NULL, function})

struct member {
    const char *pointer; /* RFC 6901, from the table's object */
    unsigned types;
    decode_fn decode;
    encode_fn encode;              /* NULL: never encoded */
    ptrdiff_t field;               /* offset in the struct, or NO_FIELD */
    const struct choices *choices; /* in the order of the field's enum */
    int64_t min;                   /* the least count */
    const struct list *list;       /* the items of a member of ITEMS() */
};

enum { NO_FIELD = -1 };

/* The part of a row behind its types, for a member with functions of its own. The file that uses
   OWN() defines FIELD(), the offset of a field in its struct. */
#define OWN(decode, encode, field, choices) \
    decode, encode, FIELD(field), choices, 0, NULL
#define WITHOUT_FIELD(decode, encode) decode, encode, NO_FIELD, NULL, 0, NULL

/* --- objects and lists ---------------------------------------------------- */

/* Decodes the members of the object, or of the group at the pointer `base` in it. */
bool api_decode_members(struct decoder *d, const char *base, json_t *object);
/* Encodes the object with every member that has a value. */
json_t *api_encode_members(const struct table *table, const void *object);

/* The items of an array, or the members of an object whose keys are names of the model, and
   the structs that they are stored in. */
struct list {
    unsigned types; /* of an item; 0: `decode` checks it */
    size_t size;    /* of an item's struct, whose first field is the key in an object */
    size_t min, max;
    const struct table *table; /* the members of items that are objects */
    /* `key` is NULL in an array */
    bool (*decode)(struct decoder *d, const char *key, json_t *item);
    json_t *(*encode)(const void *item); /* NULL: by the table */
    ptrdiff_t items, n;                  /* offsets of the array and of its length */
};

/* Decodes the items into a new array, which the spec owns. Returns NULL when it has set a
   problem. */
void *api_decode_list(struct decoder *d, const struct member *m, json_t *value,
                      const struct list *list);
/* A member that is a list of the object. An object without a member is not encoded. */
bool api_decode_items(struct decoder *d, const struct member *m, json_t *value);
json_t *api_encode_items(const void *object, const struct member *m);
#define ITEMS(list) api_decode_items, api_encode_items, NO_FIELD, NULL, 0, &(list)

/* Allocates zeroed memory that the spec owns. Returns NULL when it has set a problem. */
void *api_spec_alloc(struct decoder *d, size_t n, size_t size);
/* Frees all memory that api_spec_alloc() allocated for the spec. */
void api_spec_free_arrays(struct api_spec *spec);

/* Sets a problem at a place below the object. Returns false, for `return`. */
bool api_refuse(struct decoder *d, enum api_code code, const char *pointer,
                const char *fmt, ...) QDQ_PRINTF(4, 5);

/* A place below the object in the form for messages: "weights.dtype", "layers[2].name". */
struct label {
    char text[64];
};
struct label api_label(const struct decoder *d, const char *pointer);

#endif
