/* SPDX-License-Identifier: Apache-2.0 */
/* The versions of models that hooks have seen, so that each makes one job. */
#ifndef QDQD_STORE_HOOKED_H
#define QDQD_STORE_HOOKED_H

#include "store/store.h"

#define HOOKED_KEY 256

/* A version that a hook has seen. Texts are borrowed. */
struct store_hooked {
    const char *hook, *model, *version;
};

/* Adds the version with a key, unless it is there. `ret_key` is the key that it has then, and
   *ret_done whether its job was added. */
bool store_hooked_add(struct store *store, const struct store_hooked *seen,
                      const char *key, char ret_key[HOOKED_KEY], bool *ret_done,
                      struct api_problem *p);
/* Records that the job of the version was added. */
bool store_hooked_done(struct store *store, const struct store_hooked *seen,
                       struct api_problem *p);
/* Finds the lowest version of the model that the hook has seen; -1: none. */
bool store_hooked_first(struct store *store, const char *hook, const char *model,
                        int64_t *ret, struct api_problem *p);

#endif
