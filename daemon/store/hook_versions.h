/* SPDX-License-Identifier: Apache-2.0 */
/* The versions of models that hooks have seen, so that each makes one job. */
#ifndef QDQD_STORE_HOOK_VERSIONS_H
#define QDQD_STORE_HOOK_VERSIONS_H

#include "store/store.h"

#define HOOK_VERSION_KEY 256

/* A version that a hook has seen. Texts are borrowed. */
struct store_hook_version {
    const char *hook, *model, *version;
};

/* Adds the version with a key, unless it is there. `ret_key` is the key that it has then, and
   *ret_done whether its job was added. */
bool store_hook_version_add(struct store *store, const struct store_hook_version *seen,
                            const char *key, char ret_key[HOOK_VERSION_KEY],
                            bool *ret_done, struct api_problem *p);
/* Records that the job of the version was added. */
bool store_hook_version_done(struct store *store, const struct store_hook_version *seen,
                             struct api_problem *p);
/* Finds the lowest version of the model that the hook has seen; -1: none. */
bool store_hook_version_first(struct store *store, const char *hook, const char *model,
                              int64_t *ret, struct api_problem *p);

#endif
