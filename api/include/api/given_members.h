/* SPDX-License-Identifier: Apache-2.0 */
/* Members of a spec that are given one by one, as options of a command. */
#ifndef API_GIVEN_MEMBERS_H
#define API_GIVEN_MEMBERS_H

#include <stddef.h>

#include "api/problem.h"

/* One member. The texts are borrowed. */
struct api_spec_member {
    const char *giver; /* what messages call it: "--accept min_sqnr_db=30" */
    /* Names with dots between, or a JSON pointer, which begins with a slash (RFC 6901). An array is
       gone into by the index of an item that it has. */
    const char *path;
    /* JSON. A word that is no JSON is that text: letters, digits, "_", "-" and "." behind a letter. */
    const char *value;
};

/*
 * Returns the text of the spec of `len` bytes with these members, which the caller frees. A NULL
 * `text` is `{}`. Objects on a path are made where they are missing. NULL with a problem:
 * INVALID_JSON: `text` or a value is no JSON. INVALID_SPEC: the spec is no object; a path that leads
 * through something else, or to a member that has another value already, from the text or from a
 * member before.
 */
char *api_spec_with_members(const char *text, size_t len,
                            const struct api_spec_member *members, size_t n,
                            struct api_problem *problem);

#endif
