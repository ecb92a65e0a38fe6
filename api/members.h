/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tables say everything about the spec's JSON: which members an object has, which types
 * they take, which values this version can do and which it only knows, and where the
 * value goes. The decoder and the encoder (spec.c) walk them; a new member is a field
 * of a struct of qdq/spec.h and a row. The spec itself is the table of members.c; what
 * the items of its lists are stands in layers.c, cases.c and support.c.
 */
#ifndef API_MEMBERS_H
#define API_MEMBERS_H

#include "api/spec.h"
#include "json.h"

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

struct member {
    const char *pointer; /* from the table's object */
    unsigned types;
    read_fn read;
    write_fn write;  /* NULL: not written */
    ptrdiff_t field; /* offset in the struct, or NO_FIELD */
    /* Choices: those that can be done, in the order of the field's enum, NULL, those
       that are only known, NULL. Fixed values: the only value that can be done, as
       JSON, or NULL. */
    const char *const *names;
    int64_t min; /* of counts */
};

enum { NO_FIELD = -1 };

#define NAMES(...) ((const char *const[]){__VA_ARGS__, NULL})

/* --- objects and lists (spec.c) ------------------------------------------- */

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
void *api_keep(struct reader *r, size_t n, size_t size);

/* Sets a problem at a place below the object; false, for `return`. */
bool api_refuse(struct reader *r, enum api_code code, const char *pointer,
                const char *fmt, ...) QDQ_PRINTF(4, 5);

/* A place below the object as people write it: "weights.dtype", "layers[2].name". */
struct label {
    char text[64];
};
struct label api_label(const struct reader *r, const char *pointer);

/* --- readers and writers of one value (values.c) -------------------------- */

/* An enum's field. */
bool api_read_choice(struct reader *r, const struct member *m, json_t *value);
json_t *api_write_choice(const void *object, const struct member *m);
/* A choice kept as its name. */
bool api_read_name(struct reader *r, const struct member *m, json_t *value);
/* A choice of two, kept as a bool. */
bool api_read_switch(struct reader *r, const struct member *m, json_t *value);
json_t *api_write_switch(const void *object, const struct member *m);
bool api_read_flag(struct reader *r, const struct member *m, json_t *value);
json_t *api_write_flag(const void *object, const struct member *m);
/* Some text, not empty. */
bool api_read_text(struct reader *r, const struct member *m, json_t *value);
json_t *api_write_text(const void *object, const struct member *m);
/* A number format: a choice by the rows of qdq/formats.h. */
bool api_read_format(struct reader *r, const struct member *m, json_t *value);
json_t *api_write_format(const void *object, const struct member *m);
/* A flag that may be left to be told from other members. */
bool api_read_tristate(struct reader *r, const struct member *m, json_t *value);
json_t *api_write_tristate(const void *object, const struct member *m);
/* Of at least m->min; what is below that says nothing and is not written. */
bool api_read_count(struct reader *r, const struct member *m, json_t *value);
json_t *api_write_count(const void *object, const struct member *m);
/* Only the one value that means "without it" can be done, if there is one. */
bool api_read_fixed(struct reader *r, const struct member *m, json_t *value);
json_t *api_write_fixed(const void *object, const struct member *m);

#define CHOICE api_read_choice, api_write_choice
#define NAME api_read_name, api_write_text
#define SWITCH api_read_switch, api_write_switch
#define FLAG api_read_flag, api_write_flag
#define FORMAT api_read_format, api_write_format
#define TRISTATE api_read_tristate, api_write_tristate
#define TEXT api_read_text, api_write_text
#define COUNT api_read_count, api_write_count
#define FIXED api_read_fixed, api_write_fixed

enum { API_MANY = INT32_MAX }; /* bound of counts and indices */

/* The integer, if it is from min to max; the text, if it is not empty. */
bool api_take_integer(struct reader *r, const char *pointer, json_t *value, int64_t min,
                      int64_t max, int64_t *ret);
bool api_take_text(struct reader *r, const char *pointer, json_t *value,
                   const char **ret);

/* Where the member's value goes. */
void *api_field(struct reader *r, const struct member *m);

/* --- members that have a file of their own -------------------------------- */

extern const struct table api_members;

/* A bound of a gate, which is NaN where nothing is asked. */
bool api_read_bound(struct reader *r, const struct member *m, json_t *value);
json_t *api_write_bound(const void *object, const struct member *m);
#define BOUND api_read_bound, api_write_bound
bool api_read_output_gates(struct reader *r, const struct member *m, json_t *value);
json_t *api_write_output_gates(const void *spec, const struct member *m);
/* Can what accept asks for be found out, as far as the spec says? */
bool api_check_accept(struct reader *r);
/* Whether formats and symmetric go together. */
bool api_check_formats(struct reader *r);
/* Whether the method uses a percentile that was given. */
bool api_check_percentile(struct reader *r);

bool api_read_sensitivity(struct reader *r, const struct member *m, json_t *value);
bool api_read_search(struct reader *r, const struct member *m, json_t *value);

bool api_read_ranges(struct reader *r, const struct member *m, json_t *value);
json_t *api_write_ranges(const void *spec, const struct member *m);
/* The id of the data that the ranges were found with. */
bool api_read_source(struct reader *r, const struct member *m, json_t *value);
bool api_read_dims(struct reader *r, const struct member *m, json_t *value);
json_t *api_write_dims(const void *spec, const struct member *m);
bool api_read_random(struct reader *r, const struct member *m, json_t *value);
json_t *api_write_random(const void *spec, const struct member *m);
/* Whether what random samples are is said only where there are some. */
bool api_check_random(struct reader *r);
bool api_read_layers(struct reader *r, const struct member *m, json_t *value);
json_t *api_write_layers(const void *spec, const struct member *m);
bool api_read_cases(struct reader *r, const struct member *m, json_t *value);
json_t *api_write_cases(const void *spec, const struct member *m);
/* Placement rules, and whether all that are named are the target's. */
bool api_read_rules(struct reader *r, const struct member *m, json_t *value);
json_t *api_write_rules(const void *spec, const struct member *m);
bool api_check_rules(struct reader *r);
bool api_read_support(struct reader *r, const struct member *m, json_t *value);
json_t *api_write_support(const void *spec, const struct member *m);

#endif
