/* SPDX-License-Identifier: Apache-2.0 */
/* Models and datasets: their blobs together with their rows. */
#include "config.h"
#include "base/clock.h"
#include "library/inner.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

bool
library_add(struct library *library, enum store_kind kind, struct spool **spool,
            const char *info, struct store_file *ret, bool *ret_new,
            struct api_problem *p)
{
    struct store_file file = {.size = spool_size(*spool),
                              .created_at = clock_wall_ms()};
    memcpy(file.id, spool_id(*spool), sizeof file.id);
    if (info && !(file.info = strdup(info)))
        return api_problem_no_memory(p);
    bool is_new = false;
    struct incoming incoming = {.n = 1, .spools = &spool, .ids = &file.id};
    bool ok = library_publish(library, &incoming, p) &&
              store_file_add(library->store, kind, &file, &is_new, p);
    if (!ok)
        library_discard_incoming(library, &incoming);
    lock_release(&library->lock);
    ok = ok && store_sync(library->store, p);
    store_file_fini(&file);
    if (!ok || !store_file_get(library->store, kind, file.id, ret, p))
        return false;
    *ret_new = is_new;
    return true;
}

/* Checks that all parts are stored: the published ones, and those that are said to
   be stored. The caller holds the lock. */
static bool
check_parts(struct library *library, const struct library_part *parts, size_t n,
            struct api_problem *p)
{
    lock_assert_held(&library->lock);
    for (size_t i = 0; i < n; i++) {
        const char *id = parts[i].digest;
        if (!parts[i].spool && !library->blobs->ops->has_part(library, id))
            return api_problem_set(p, API_NOT_FOUND, QDQ_AT_NOTHING, NULL,
                                   "%s is not stored any more", id);
        /* Another thread is still publishing this blob, which has to be durable before
           a row refers to it. */
        if (library_is_incoming(library, id) && !blob_sync(library->blobs, id, p))
            return false;
    }
    return true;
}

/* Lists the parts that are not stored yet. */
static bool
list_incoming(const struct library_part *parts, size_t n, struct incoming *ret,
              struct api_problem *p)
{
    *ret = (struct incoming){.spools = calloc(n, sizeof *ret->spools),
                             .ids = calloc(n, sizeof *ret->ids)};
    if (!ret->spools || !ret->ids)
        return api_problem_no_memory(p);
    for (size_t i = 0; i < n; i++) {
        if (!parts[i].spool)
            continue;
        memcpy(ret->ids[ret->n], parts[i].digest, DIGEST_SIZE);
        ret->spools[ret->n++] = parts[i].spool;
    }
    return true;
}

/* Makes the rows of a model's files, which borrow from the parts. A model of one
   file has none. */
static bool
list_parts(const struct library_part *parts, size_t n, struct store_model_files *ret,
           struct api_problem *p)
{
    *ret = (struct store_model_files){.items = calloc(n, sizeof *ret->items)};
    if (!ret->items)
        return api_problem_no_memory(p);
    for (size_t i = 0; i < n && n > 1; i++) {
        struct store_model_file *file = &ret->items[ret->n++];
        file->path = parts[i].path;
        file->size = parts[i].size;
        memcpy(file->digest, parts[i].digest, sizeof file->digest);
    }
    return true;
}

/*
 * Checks which of the files is the model. The id does not say that: two files that name
 * each other as external data have one id, and only one of them can be stored as the
 * model. The caller holds the lock.
 */
static bool
check_first(struct library *library, const char *id,
            const struct store_model_files *files, struct api_problem *p)
{
    lock_assert_held(&library->lock);
    struct store_model_files before = {0};
    bool ok = store_model_files(library->store, id, &before, p);
    if (ok && before.n && files->n &&
        strcmp(before.items[0].path, files->items[0].path))
        ok =
            api_problem_set(p, API_MODEL_CONFLICT, QDQ_AT_NOTHING, NULL,
                            "%s is stored already, with %.100s as the model and %.100s "
                            "as a file of its data",
                            id, before.items[0].path, files->items[0].path);
    store_model_files_fini(&before);
    return ok;
}

bool
library_add_model(struct library *library, const char *id,
                  const struct library_part *parts, size_t n, struct store_file *ret,
                  bool *ret_new, struct api_problem *p)
{
    struct store_file file = {.created_at = clock_wall_ms()};
    struct store_model_files files;
    struct incoming incoming = {0};
    bool is_new = false;
    bool ok = list_parts(parts, n, &files, p) && list_incoming(parts, n, &incoming, p);
    snprintf(file.id, sizeof file.id, "%s", id);
    for (size_t i = 0; i < n; i++)
        file.size += parts[i].size;
    if (ok) {
        ok = library_publish(library, &incoming, p) &&
             check_parts(library, parts, n, p) && check_first(library, id, &files, p) &&
             store_model_add(library->store, &file, &files, &is_new, p);
        if (!ok)
            library_discard_incoming(library, &incoming);
        lock_release(&library->lock);
        ok = ok && store_sync(library->store, p);
    }
    free(incoming.spools);
    free(incoming.ids);
    free(files.items);
    if (!ok || !store_file_get(library->store, STORE_MODEL, id, ret, p))
        return false;
    *ret_new = is_new;
    return true;
}

void
library_forget_observations(struct library *library, enum store_kind kind,
                            const char *id)
{
    struct api_problem ignored = {0};
    char blob[DIGEST_SIZE];
    bool any = true;
    while (any &&
           store_observations_forget(library->store, kind, id, blob, &any, &ignored))
        if (any)
            library_discard(library, blob);
}

bool
library_make_room(struct library *library, struct api_problem *p)
{
    struct api_problem ignored = {0};
    if (p->code != API_DISK_FULL || !ballast_drop(library->ballast))
        return false;
    *p = (struct api_problem){0};
    (void)store_checkpoint(library->store, &ignored);
    return true;
}

static bool
remove_stored(struct library *library, enum store_kind kind, const char *id,
              enum store_remover who, struct api_problem *p)
{
    struct store_model_files files = {0};
    lock_acquire(&library->lock);
    bool ok =
        (kind != STORE_MODEL || store_model_files(library->store, id, &files, p)) &&
        store_file_remove(library->store, kind, id, who, p);
    if (ok) {
        library_forget_observations(library, kind, id);
        library_discard(library, id);
        library_discard_files(library, &files);
    }
    lock_release(&library->lock);
    store_model_files_fini(&files);
    return ok;
}

bool
library_remove(struct library *library, enum store_kind kind, const char *id,
               enum store_remover who, struct api_problem *p)
{
    bool ok =
        remove_stored(library, kind, id, who, p) ||
        (library_make_room(library, p) && remove_stored(library, kind, id, who, p));
    ballast_fill(library->ballast);
    return ok;
}
