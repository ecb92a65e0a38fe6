/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The member `targets` of a spec, a list in the place of `target`: several results of one model.
 * Callers that make them take the spec apart here, into one for each target, which has `target` in the
 * place of the list and is else the same. The rest of the code knows specs of one target alone.
 */
#ifndef API_TARGETS_H
#define API_TARGETS_H

#include <stddef.h>

#include "api/problem.h"

/* The spec of one target. */
struct api_target_spec {
    const char *target; /* a constant name */
    char *text;         /* JSON; owned */
};

/* The specs in the order of the list; n is 0 for a spec without the member. */
struct api_target_specs {
    struct api_target_spec *items;
    size_t n;
};

/*
 * Sets *ret to the spec without `frontier`, which the caller frees, where the target of the spec
 * measures none; *why says so. NULL: the spec stays as it is. Returns false when out of memory.
 */
bool api_spec_without_frontier(const char *text, char **ret, struct api_problem *why);

/*
 * Takes the spec of `len` bytes apart. A `frontier` is for those of the targets that can measure
 * one, and an error where none can. A text without the member, and one that cannot be read, has
 * none and is left to api_spec_decode(); NULL is `{}`. All specs of a list are decoded, so that a
 * mistake in one of them shows here, with the name of the target. INVALID_SPEC: a list that is
 * empty or has something else than different names of targets, by the index of the first such item;
 * a spec that has `target`, too. The codes of api_spec_decode(). *ret is freed with
 * api_target_specs_fini(), also where this fails.
 */
bool api_spec_split(const char *text, size_t len, struct api_target_specs *ret,
                    struct api_problem *problem);
void api_target_specs_fini(struct api_target_specs *specs);

#endif
