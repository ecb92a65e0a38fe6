/* SPDX-License-Identifier: Apache-2.0 */
/* The table of the spec, and decoders and encoders of members with a file of their own. */
#ifndef API_SPEC_MEMBERS_H
#define API_SPEC_MEMBERS_H

#include "spec/values.h"

extern const struct table api_members;

/* Lists of the spec: accept.outputs, calibration.dims, calibration.random, preprocess, layers,
   cases and layer_support. */
extern const struct list api_output_gates, api_dims, api_random, api_preprocess,
    api_layers, api_cases, api_support;

/* A bound of a gate; NaN where there is none. */
bool api_decode_bound(struct decoder *d, const struct member *m, json_t *value);
json_t *api_encode_bound(const void *object, const struct member *m);
#define BOUND(field) OWN(api_decode_bound, api_encode_bound, field, NULL)
#define BOUND_ONLY(field) OWN(api_decode_bound, NULL, field, NULL)
/* Checks that the spec does not switch off the evaluation that `accept` needs. */
bool api_check_accept(struct decoder *d);
/* The formats of the spec, and of an entry of layers; the check of an entry is that they do
   not contradict its flags, and that of the spec that formats and `symmetric` go together. */
bool api_decode_weights(struct decoder *d, const struct member *m, json_t *value);
json_t *api_encode_weights(const void *spec, const struct member *m);
bool api_decode_activations(struct decoder *d, const struct member *m, json_t *value);
json_t *api_encode_activations(const void *spec, const struct member *m);
bool api_decode_layer_weights(struct decoder *d, const struct member *m, json_t *value);
json_t *api_encode_layer_weights(const void *entry, const struct member *m);
bool api_decode_layer_activations(struct decoder *d, const struct member *m,
                                  json_t *value);
json_t *api_encode_layer_activations(const void *entry, const struct member *m);
bool api_check_layer_formats(struct decoder *d, const json_t *item);
bool api_check_formats(struct decoder *d);
/* Checks that a percentile is given only with the method that uses it. */
bool api_check_percentile(struct decoder *d);

/* The task that the result is judged by. The check is that its bound and the evaluation go
   with it. */
bool api_decode_task(struct decoder *d, const struct member *m, json_t *value);
json_t *api_encode_task(const void *spec, const struct member *m);
bool api_check_task(struct decoder *d);

bool api_decode_sensitivity(struct decoder *d, const struct member *m, json_t *value);
bool api_decode_profile(struct decoder *d, const struct member *m, json_t *value);
bool api_decode_search(struct decoder *d, const struct member *m, json_t *value);

bool api_decode_ranges(struct decoder *d, const struct member *m, json_t *value);
json_t *api_encode_ranges(const void *spec, const struct member *m);
/* The id of the dataset that the ranges were found with. */
bool api_decode_source(struct decoder *d, const struct member *m, json_t *value);
/* Checks that bounds of random samples are given only where there are such samples. */
bool api_check_random(struct decoder *d);
bool api_decode_layers(struct decoder *d, const struct member *m, json_t *value);
/* Placement rules. They are switched when the target is known, to which all named ones must
   belong. */
bool api_decode_rules(struct decoder *d, const struct member *m, json_t *value);
json_t *api_encode_rules(const void *spec, const struct member *m);
bool api_settle_rules(struct decoder *d);

bool api_decode_frontier(struct decoder *d, const struct member *m, json_t *value);
json_t *api_encode_frontier(const void *object, const struct member *m);
/* Checks that the target has the recipe that is asked for, and that no search is asked for,
   too. */
bool api_check_recipe(struct decoder *d);
bool api_check_host(struct decoder *d);
/* Notes what the spec leaves to the recipe `best`. The second function takes these
   members out of an encoded spec with such a recipe and states the others; `root`, which it
   takes and returns, may be NULL, and it returns NULL when out of memory. */
void api_settle_choices(struct decoder *d);
json_t *api_leave_open(const struct qdq_spec *spec, json_t *root);
/* The class of processors. The settling is for frozen specs of version 0.1. */
bool api_decode_host(struct decoder *d, const struct member *m, json_t *value);
const char *api_host_name(size_t i);
/* Checks that only a target with versions is given one. */
bool api_check_version(struct decoder *d);
void api_settle_host(struct decoder *d);

#endif
