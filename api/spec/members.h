/* SPDX-License-Identifier: Apache-2.0 */
/* The table of the spec, and the members that have a file of their own. */
#ifndef API_SPEC_MEMBERS_H
#define API_SPEC_MEMBERS_H

#include "spec/values.h"

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
