/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "library/bucket/cache.h"
#include "library/folder/state_folder.h"
#include "library/inner.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

/* A damaged result is no answer to another job. */
static void
forget_damaged(void *arg, const char *id)
{
    struct library *library = arg;
    struct api_problem ignored = {0};
    (void)store_job_forget(library->store, id, &ignored);
}

/* Opens the record in the state folder, which must be that of the folder's blobs. */
static bool
open_own_record(struct library *library, const char *path, const char *database,
                const struct library_place *place, struct api_problem *p)
{
    const struct blob_store_ops *ops = library->blobs->ops;
    bool has_blobs = ops->has_blobs && ops->has_blobs(library->blobs);
    return (place->adopt || folder_check_database(library->dir, path, has_blobs, p)) &&
           store_open(database, &library->store, p) &&
           folder_check_record(library->dir, path, library->store, has_blobs,
                               place->adopt, p) &&
           deferred_restore(library, p) &&
           (!ops->find_leftovers || ops->find_leftovers(library, p));
}

/* Makes the files of the folder a cache of the bucket. */
static bool
keep_in_bucket(struct blobs *blobs, const struct library_place *place,
               struct api_problem *p)
{
    if (!cache_join(blobs, place->bucket, place->tenant, p))
        return false;
    blobs->ops = &blobs_in_bucket;
    return true;
}

bool
library_open_at(const char *path, const struct library_place *place,
                struct library **ret, struct api_problem *p)
{
    char database[PATH_MAX];
    struct library *library = calloc(1, sizeof *library);
    if (!library)
        return api_problem_no_memory(p);
    library->dir = library->ballast = -1;
    lock_init(&library->lock, LOCK_LIBRARY);
    snprintf(database, sizeof database, "%s/" FOLDER_DATABASE, path);
    bool ok =
        folder_open(path, &library->dir, p) &&
        blobs_open(library->dir, &library->blobs, p) &&
        (!place->bucket || keep_in_bucket(library->blobs, place, p)) &&
        (place->record ? store_open_at(place->record, &library->store, p) &&
                             library_check_place(library, path, place->bucket_url, p)
                       : open_own_record(library, path, database, place, p));
    if (!ok) {
        library_close(&library);
        return false;
    }
    blobs_on_damaged(library->blobs, forget_damaged, library);
    library->ballast = ballast_open(library->dir);
    *ret = library;
    return true;
}

bool
library_open(const char *path, struct library **ret, struct api_problem *p)
{
    return library_open_at(path, &(struct library_place){0}, ret, p);
}

void
library_close(struct library **library)
{
    if (!*library)
        return;
    store_close(&(*library)->store);
    blobs_close(&(*library)->blobs);
    if ((*library)->ballast >= 0)
        close((*library)->ballast);
    if ((*library)->dir >= 0)
        close((*library)->dir);
    lock_fini(&(*library)->lock);
    free(*library);
    *library = NULL;
}
