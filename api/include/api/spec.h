/* SPDX-License-Identifier: Apache-2.0 */
/* The spec as JSON. */
#ifndef API_SPEC_H
#define API_SPEC_H

#include "api/problem.h"
#include "qdq/spec.h"

struct api_spec; /* a decoded spec, which owns its strings and arrays */

/*
 * Decodes `len` bytes of JSON; NULL means `{}`. Every mistake is named by its JSON pointer
 * from the spec's root. INVALID_JSON: the text is not JSON; a text that is empty, or only
 * white space, was to be a spec and got lost.
 * INVALID_SPEC: an unknown or duplicate member, a wrong type, a value out of range.
 * UNSUPPORTED: a known member or value that this version does not support.
 */
bool api_spec_decode(const char *text, size_t len, struct api_spec **ret,
                     struct api_problem *problem);
void api_spec_free(struct api_spec **spec);
const struct qdq_spec *api_spec_get(const struct api_spec *spec);

/* Replaces task.model of a spec that has one by the id of its bytes. */
bool api_spec_set_metric(struct api_spec *spec, const char *id,
                         struct api_problem *problem);

/* Returns the text of the spec as it was given, with such a change; the caller frees it. NULL when
   out of memory. */
char *api_spec_text(const struct api_spec *spec);

/*
 * Encodes the effective spec: all defaults are written out, keys are sorted, and there
 * are no spaces. Decoding it gives the same spec. The caller frees the text; NULL when
 * out of memory.
 */
char *api_spec_encode(const struct qdq_spec *spec);

#endif
