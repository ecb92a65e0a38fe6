/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Named sections: "[KIND NAME]" in a file of settings, as many of a kind as there are names.
 * A kind is a table of keys, and each section of it becomes a struct of its own:
 *
 *     struct shelf {
 *         struct section section;
 *         char *place;
 *         _Atomic int64_t books;
 *     };
 *     static const struct setting_row shelf_rows[] = {
 *         ROW_TEXT("shelf", "place", struct shelf, place, "", NULL, START, "..."),
 *         ROW_NUMBER("shelf", "books", struct shelf, books, 10, 0, 99, COUNT, START, "..."),
 *     };
 *     static const struct section_kind kinds[] = {
 *         {"shelf", sizeof(struct shelf), shelf_rows, 2}};
 */
#ifndef QDQD_SETTINGS_SECTIONS_H
#define QDQD_SETTINGS_SECTIONS_H

#include "settings/rows.h"

#define SECTION_NAME 33 /* [a-z0-9][a-z0-9_-]{0,31} */
#define SECTION_KEYS 64 /* most sections of a kind */

struct section_kind {
    const char *name;
    size_t size; /* size of the struct */
    const struct setting_row *rows;
    size_t n_rows;
    bool takes_others; /* keys without a row are kept as texts */
};

/* A key without a row. */
struct section_other {
    char *key, *value;
    struct section_other *next; /* in the order of the file */
};

/* The first member of the struct of a kind. */
struct section {
    const struct section_kind *kind;
    char name[SECTION_NAME];
    char *where;    /* "FILE:LINE" */
    uint64_t given; /* a bit for each key that stands in the file */
    struct section_other *others;
    struct section *next; /* the next section of any kind, in the order of the files */
};

/* The sections of one or several files. */
struct sections {
    const struct section_kind *kinds;
    size_t n_kinds;
    struct section *first;
};

/* Returns NULL when there is no such section. */
struct section *sections_find(const struct sections *sections, const char *kind,
                              const char *name);
void sections_fini(struct sections *sections);

/* --- for the reader of files ---------------------------------------------- */

/*
 * Begins the section with a title (the text between the brackets) that stands at
 * `where`. *ret is NULL when its first word is not a kind. Returns false with the error
 * when the name is bad or stands there twice.
 */
bool sections_begin(struct sections *sections, const char *title, const char *where,
                    struct section **ret, char error[SETTINGS_ERROR]);
bool section_set(struct section *section, const char *key, const char *value,
                 const char *where, char error[SETTINGS_ERROR]);

#endif
