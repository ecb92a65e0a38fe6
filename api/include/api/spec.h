/* SPDX-License-Identifier: Apache-2.0 */
/* The spec's JSON form. */
#ifndef API_SPEC_H
#define API_SPEC_H

#include "api/problem.h"
#include "qdq/spec.h"

struct api_spec; /* a decoded spec and the memory that its strings live in */

/*
 * Decodes `len` bytes of JSON; NULL or only white space means `{}`. Every mistake is
 * named by its JSON pointer from the spec's root: not JSON (INVALID_JSON), an unknown
 * or duplicate member, a wrong type, a value out of range (INVALID_SPEC), a known
 * member or value that this version cannot do (UNSUPPORTED).
 */
bool api_spec_decode(const char *text, size_t len, struct api_spec **ret,
                     struct api_problem *problem);
void api_spec_free(struct api_spec **spec);
const struct qdq_spec *api_spec_get(const struct api_spec *spec);

/*
 * The effective spec: every default written out, keys sorted, no spaces. Decoding it
 * gives the same spec. The caller frees it; NULL when out of memory.
 */
char *api_spec_encode(const struct qdq_spec *spec);

#endif
