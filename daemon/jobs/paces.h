/* SPDX-License-Identifier: Apache-2.0 */
/* How fast the last runs of models went, the oldest forgotten. Who calls sees to it that
   one thread does. */
#ifndef QDQD_JOBS_PACES_H
#define QDQD_JOBS_PACES_H

#include "base/digest.h"
#include "api/eta.h"

enum { PACES_MOST = 64 };

struct paces {
    struct {
        char model[DIGEST_SIZE]; /* "": none */
        struct api_pace pace;
    } rows[PACES_MOST]; /* a ring: the oldest is at `next` */
    size_t next;
};

/* Of a model's digest; NULL: not known. */
const struct api_pace *paces_of(const struct paces *paces, const char *model);
/* Only what says something: a run may have shown nothing. */
void paces_add(struct paces *paces, const char *model, const struct api_pace *pace);

#endif
