/* SPDX-License-Identifier: Apache-2.0 */
/* A ring of the measured speeds of recent model runs. Not thread-safe: the caller
   holds a lock. */
#ifndef QDQD_JOBS_SPEEDS_H
#define QDQD_JOBS_SPEEDS_H

#include "api/digest.h"
#include "api/eta.h"

enum { SPEEDS_MOST = 64 };

struct speeds {
    struct {
        char model[DIGEST_SIZE]; /* id of the model; "": the row is empty */
        uint64_t spec;           /* see speeds_spec() */
        struct api_speed speed;
    } rows[SPEEDS_MOST]; /* a ring whose oldest row is at `next` */
    size_t next;
};

/* Returns a hash of the spec's text, which may be NULL. */
uint64_t speeds_spec(const char *text);
/* Finds the speed of a model by its digest: of a run with this spec, or else that of another one,
   which is not whole. Returns whether there is one. */
bool speeds_find(const struct speeds *speeds, const char *model, uint64_t spec,
                 struct api_speed *ret);
/* Adds the speed of a run. Ignores a run in which nothing was measured. */
void speeds_add(struct speeds *speeds, const char *model, uint64_t spec,
                const struct api_speed *speed);

#endif
