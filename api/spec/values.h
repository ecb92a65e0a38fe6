/* SPDX-License-Identifier: Apache-2.0 */
/* Decoders and encoders of a single value, for the rows of all tables. */
#ifndef API_SPEC_VALUES_H
#define API_SPEC_VALUES_H

#include "spec/table.h"

/* One of the names in `choices`; the field is an enum in their order. */
bool api_decode_choice(struct decoder *d, const struct member *m, json_t *value);
json_t *api_encode_choice(const void *object, const struct member *m);
json_t *api_encode_bias_correction(enum qdq_bias_correction value);
/* One of the names in `choices`; the field is a string. */
bool api_decode_name(struct decoder *d, const struct member *m, json_t *value);
/* One of two names; the field is a bool, true for the second one. */
bool api_decode_switch(struct decoder *d, const struct member *m, json_t *value);
json_t *api_encode_switch(const void *object, const struct member *m);
bool api_decode_flag(struct decoder *d, const struct member *m, json_t *value);
json_t *api_encode_flag(const void *object, const struct member *m);
/* A text that is not empty. */
bool api_decode_text(struct decoder *d, const struct member *m, json_t *value);
json_t *api_encode_text(const void *object, const struct member *m);
/* A number format, by its name in the rows of qdq/formats.h. */
bool api_decode_format(struct decoder *d, const struct member *m, json_t *value);
json_t *api_encode_format(const void *object, const struct member *m);
/* A list of formats of weights: bits by enum qdq_format. */
bool api_decode_format_set(struct decoder *d, const struct member *m, json_t *value,
                           unsigned *ret);
json_t *api_encode_format_set(unsigned set);
/* The names of the formats for weights and for activations; NULL behind the last one. */
const char *api_weight_format(size_t i);
#define API_FLOAT32 "float32"
/* Likewise, with "float32" as the last: the formats that a single layer's weight may have. */
const char *api_layer_weight_format(size_t i);
const char *api_activation_format(size_t i);
/* Returns the name in row i, of which "float32" is the one behind the last. */
const char *api_name_with_float(const char *(*name)(size_t), size_t i);
bool api_format_is_float(enum qdq_format format);
/* Returns the elements of the blocks that are a part of the format, or 0. */
int api_format_block(enum qdq_format format);
/* A flag whose default depends on other members. */
bool api_decode_bias_correction(struct decoder *d, const struct member *m,
                                json_t *value);
bool api_decode_tristate(struct decoder *d, const struct member *m, json_t *value);
json_t *api_encode_tristate(const void *object, const struct member *m);
/* A count of at least m->min; a smaller one means that there is none and is not encoded. */
bool api_decode_count(struct decoder *d, const struct member *m, json_t *value);
json_t *api_encode_count(const void *object, const struct member *m);

/* The part of a row behind its types. */
#define CHOICE(field, ...) \
    OWN(api_decode_choice, api_encode_choice, field, NAMES(__VA_ARGS__))
#define NAME(field, choices) OWN(api_decode_name, api_encode_text, field, choices)
#define SWITCH(field, ...) \
    OWN(api_decode_switch, api_encode_switch, field, NAMES(__VA_ARGS__))
#define FLAG(field) OWN(api_decode_flag, api_encode_flag, field, NULL)
#define FORMAT(field, choices) OWN(api_decode_format, api_encode_format, field, choices)
#define TEXT(field) OWN(api_decode_text, api_encode_text, field, NULL)
#define COUNT(field, min) \
    api_decode_count, api_encode_count, FIELD(field), NULL, min, NULL
#define COUNT_ONLY(field) api_decode_count, NULL, FIELD(field), NULL, 1, NULL

enum { API_COUNT_MAX = INT32_MAX }; /* the largest count or index */

/* Parse an integer from min to max, and a text that is not empty. */
bool api_parse_integer(struct decoder *d, const char *pointer, json_t *value,
                       int64_t min, int64_t max, int64_t *ret);
bool api_parse_text(struct decoder *d, const char *pointer, json_t *value,
                    const char **ret);

/* Returns the field that the member's value is stored in. */
void *api_field(struct decoder *d, const struct member *m);

#endif
