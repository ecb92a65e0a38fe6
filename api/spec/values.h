/* SPDX-License-Identifier: Apache-2.0 */
/* Readers and writers of one value, for the rows of every table. */
#ifndef API_SPEC_VALUES_H
#define API_SPEC_VALUES_H

#include "spec/table.h"

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
/* Its choices: format i of those for weights, or for activations; NULL past the last. */
const char *api_weight_format(size_t i);
const char *api_activation_format(size_t i);
bool api_format_is_float(enum qdq_format format);
/* A flag that may be left to be told from other members. */
bool api_read_tristate(struct reader *r, const struct member *m, json_t *value);
json_t *api_write_tristate(const void *object, const struct member *m);
/* Of at least m->min; what is below that says nothing and is not written. */
bool api_read_count(struct reader *r, const struct member *m, json_t *value);
json_t *api_write_count(const void *object, const struct member *m);

#define CHOICE api_read_choice, api_write_choice
#define NAME api_read_name, api_write_text
#define SWITCH api_read_switch, api_write_switch
#define FLAG api_read_flag, api_write_flag
#define FORMAT api_read_format, api_write_format
#define TRISTATE api_read_tristate, api_write_tristate
#define TEXT api_read_text, api_write_text
#define COUNT api_read_count, api_write_count

enum { API_MANY = INT32_MAX }; /* bound of counts and indices */

/* The integer, if it is from min to max; the text, if it is not empty. */
bool api_parse_integer(struct reader *r, const char *pointer, json_t *value,
                       int64_t min, int64_t max, int64_t *ret);
bool api_parse_text(struct reader *r, const char *pointer, json_t *value,
                    const char **ret);

/* Where the member's value goes. */
void *api_field(struct reader *r, const struct member *m);

#endif
