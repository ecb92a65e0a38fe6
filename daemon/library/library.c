/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "library/library_inner.h"
#include "base/check.h"
#include "base/clock.h"
#include "library/ballast.h"
#include "library/cache.h"
#include "library/folder.h"
#include "library/late_sync.h"
#include "api/files.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/*
 * Blobs that a thread is publishing. Syncing takes long and happens without the lock,
 * so this list keeps other threads from removing the blobs until the rows that refer to
 * them exist. It lies on the stack of the publishing thread.
 */
struct incoming {
    size_t n;
    struct spool ***spools;
    char (*ids)[DIGEST_SIZE];
    struct incoming *next;
    struct late_files
        *late; /* filled in with those that are synced later; NULL: none */
};

bool
library_is_incoming(const struct library *library, const char *id)
{
    lock_assert_held(&library->lock);
    for (const struct incoming *one = library->incoming; one; one = one->next)
        for (size_t i = 0; i < one->n; i++)
            if (strcmp(one->ids[i], id) == 0)
                return true;
    return false;
}

/* Removes a blob that no row refers to. Where the record is shared, another daemon may be
   about to add such a row: then the blob stays. The caller holds the lock. */
static void
discard_if_unreferenced(void *arg, const char *id)
{
    struct library *library = arg;
    lock_assert_held(&library->lock);
    if (!store_is_shared(library->store) && !library_is_incoming(library, id) &&
        !store_needs_blob(library->store, id))
        blob_remove(library->blobs, id);
}

/* Returns whether a blob is known to be durable: this daemon has synced it, or a row names it,
   which was added after that. Where daemons share the record, asking takes longer than
   syncing a file that has not changed. */
static bool
is_stored(struct library *library, const char *id, bool *ret, struct api_problem *p)
{
    *ret = !library->bucket && blob_is_durable(library->blobs, id);
    return *ret || store_is_shared(library->store) ||
           (!library->bucket && !blob_exists(library->blobs, id)) ||
           store_has_blob(library->store, id, ret, p);
}

/* Finds the spools whose blob is stored. It stays as long as it is incoming. */
static bool
find_stored(struct library *library, const struct incoming *incoming,
            struct api_problem *p)
{
    bool ok = true;
    lock_assert_held(&library->lock);
    for (size_t i = 0; i < incoming->n && ok; i++) {
        bool stored;
        ok = is_stored(library, incoming->ids[i], &stored, p);
        if (ok && stored)
            spool_set_stored(*incoming->spools[i]);
    }
    return ok;
}

/* Publishes the spools as blobs. Locks the library, also on failure:
   the caller adds the rows and unlocks. */
static bool
publish_blobs(struct library *library, struct incoming *incoming, struct api_problem *p)
{
    lock_acquire(&library->lock);
    incoming->next = library->incoming;
    library->incoming = incoming;
    bool ok = find_stored(library, incoming, p);
    lock_release(&library->lock);
    if (ok && incoming->late)
        late_choose(library, incoming->spools, incoming->n, incoming->late);
    ok = ok &&
         (!library->bucket ||
          cache_upload(library->blobs, incoming->spools, incoming->n, p)) &&
         library_unmark(library, incoming->ids, incoming->n, p) &&
         spools_commit(incoming->spools, incoming->n, p);
    lock_acquire(&library->lock);
    struct incoming **at = &library->incoming;
    while (*at != incoming) {
        QDQD_CHECK(*at);
        at = &(*at)->next;
    }
    *at = incoming->next;
    library->stored_at = 0; /* the rows that follow have to be counted */
    return ok;
}

/* Removes the published blobs that no row refers to, because adding a row failed.
   The caller holds the lock. */
static void
discard_unreferenced(struct library *library, const struct incoming *incoming)
{
    lock_assert_held(&library->lock);
    for (size_t i = 0; i < incoming->n; i++)
        discard_if_unreferenced(library, incoming->ids[i]);
}

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
    bool has_blobs = !place->bucket && blobs_used(library->blobs) > 0;
    return (place->adopt || folder_check_database(library->dir, path, has_blobs, p)) &&
           store_open(database, &library->store, p) &&
           folder_check_record(library->dir, path, library->store, has_blobs,
                               place->adopt, p) &&
           late_restore(library, p) &&
           (place->bucket || library_find_leftovers(library, p));
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
    library->bucket = place->bucket;
    lock_init(&library->lock, LOCK_LIBRARY);
    snprintf(database, sizeof database, "%s/" FOLDER_DATABASE, path);
    bool ok = folder_open(path, &library->dir, p) &&
              blobs_open(library->dir, &library->blobs, p) &&
              (!place->bucket ||
               cache_join(library->blobs, place->bucket, place->tenant, p)) &&
              (place->record ? store_open_at(place->record, &library->store, p)
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

void
library_set_tenant(struct library *library, const char *tenant)
{
    library->tenant = tenant;
}

void
library_set_sharers(struct library *library, library_sharers_fn fn, void *arg)
{
    library->sharers = fn;
    library->sharers_arg = arg;
}

const char *
library_tenant(const struct library *library)
{
    return library->tenant && *library->tenant ? library->tenant : "-";
}

struct store *
library_store(struct library *library)
{
    return library->store;
}

struct blobs *
library_blobs(struct library *library)
{
    return library->blobs;
}

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
    bool ok = publish_blobs(library, &incoming, p) &&
              store_file_add(library->store, kind, &file, &is_new, p);
    if (!ok)
        discard_unreferenced(library, &incoming);
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
        bool there = library->bucket
                         ? parts[i].spool || store_needs_blob(library->store, id)
                         : blob_exists(library->blobs, id);
        if (!there)
            return api_problem_set(p, API_NOT_FOUND, QDQ_AT_NOTHING, NULL,
                                   "%s is not stored any more", id);
        /* Another thread is still publishing this blob, which has to be durable before
           a row refers to it. */
        if (!library->bucket && library_is_incoming(library, id) &&
            !blob_sync(library->blobs, id, p))
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
        ok = publish_blobs(library, &incoming, p) &&
             check_parts(library, parts, n, p) && check_first(library, id, &files, p) &&
             store_model_add(library->store, &file, &files, &is_new, p);
        if (!ok)
            discard_unreferenced(library, &incoming);
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

/* Removes the blobs of a model that is removed. */
static void
remove_files(struct library *library, const struct store_model_files *files)
{
    for (size_t i = 0; i < files->n; i++)
        discard_if_unreferenced(library, files->items[i].digest);
}

/* Removes the observations of a model or dataset. A failure is ignored: observations
   expire. */
static void
remove_observations_of(struct library *library, enum store_kind kind, const char *id)
{
    struct api_problem ignored = {0};
    char blob[DIGEST_SIZE];
    bool any = true;
    while (any &&
           store_observations_forget(library->store, kind, id, blob, &any, &ignored))
        if (any)
            discard_if_unreferenced(library, blob);
}

/*
 * Prepares for another try of a removal that failed because the disk is full: frees the
 * ballast, and moves the log's contents into the database, so that the log's space is
 * used again. Returns whether another try makes sense.
 */
static bool
make_room(struct library *library, struct api_problem *p)
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
        remove_observations_of(library, kind, id);
        discard_if_unreferenced(library, id);
        remove_files(library, &files);
    }
    lock_release(&library->lock);
    store_model_files_fini(&files);
    return ok;
}

bool
library_remove(struct library *library, enum store_kind kind, const char *id,
               enum store_remover who, struct api_problem *p)
{
    bool ok = remove_stored(library, kind, id, who, p) ||
              (make_room(library, p) && remove_stored(library, kind, id, who, p));
    ballast_fill(library->ballast);
    return ok;
}

/* The files of a result, in the order in which they are stored. */
enum { RESULT_MODEL, RESULT_REPORT, RESULT_FROZEN, RESULT_DATA, N_RESULTS };

/* A result while it is stored. */
struct result {
    size_t n; /* number of files */
    struct spool **files[N_RESULTS];
    char digests[N_RESULTS][DIGEST_SIZE];
    char id[DIGEST_SIZE]; /* id of the model */
    uint64_t size;        /* bytes of the model's files */
    struct store_model_file model[2];
    struct store_model_files model_files; /* empty when the model is one file */
};

/* Adds the data file of a model whose external data lies in a file of its own. */
static bool
add_data(struct result *result, const char *path, struct api_problem *p)
{
    static char name[] = LIBRARY_RESULT_NAME;
    struct store_model_file *files = result->model;
    const size_t from[] = {RESULT_MODEL, RESULT_DATA};
    struct api_file named[2];
    char *const paths[] = {name, strdup(path)};
    for (size_t i = 0; i < 2; i++) {
        files[i].path = paths[i];
        files[i].size = spool_size(*result->files[from[i]]);
        memcpy(files[i].digest, result->digests[from[i]], DIGEST_SIZE);
        named[i] = (struct api_file){files[i].path, files[i].digest, files[i].size};
    }
    result->model_files = (struct store_model_files){2, files};
    result->size += files[1].size;
    char *text = paths[1] ? api_files_identity(named, 2) : NULL;
    bool ok =
        (text && digest_of(text, strlen(text), result->id)) || api_problem_no_memory(p);
    free(text);
    return ok;
}

static void
result_fini(struct result *result)
{
    free(result->model[1].path);
}

/* Collects the files, ids and sizes of a result. */
static bool
collect_result(const struct job_result *from, struct result *ret, struct api_problem *p)
{
    *ret = (struct result){
        .n = from->data ? N_RESULTS : RESULT_DATA,
        .files = {from->model, from->report, from->frozen, from->data},
        .size = spool_size(*from->model),
    };
    for (size_t i = 0; i < ret->n; i++)
        memcpy(ret->digests[i], spool_id(*ret->files[i]), DIGEST_SIZE);
    memcpy(ret->id, ret->digests[RESULT_MODEL], sizeof ret->id);
    return !from->data || add_data(ret, from->data_path, p);
}

bool
library_job_end(struct library *library, const char *id,
                const struct job_result *result, const struct api_problem *error,
                struct store_ended *ret, struct api_problem *p)
{
    struct result made;
    struct store_ended ended = {0};
    if (!collect_result(result, &made, p) || !blobs_check_room(library->blobs, 0, p)) {
        result_fini(&made);
        return false;
    }
    struct store_end end = {.state = error ? API_JOB_FAILED : API_JOB_SUCCEEDED,
                            .result_model = made.id,
                            .report = made.digests[RESULT_REPORT],
                            .frozen = made.digests[RESULT_FROZEN],
                            .summary = result->summary,
                            .result_size = made.size,
                            .result_files = &made.model_files,
                            .error = error,
                            .fence = result->fence};
    struct late_files late = {0};
    struct incoming incoming = {made.n, made.files, made.digests, NULL, &late};
    bool ok = publish_blobs(library, &incoming, p);
    end.unsynced = late.files;
    end.n_unsynced = late.n;
    ok = ok && store_job_end(library->store, id, API_JOB_RUNNING, &end, clock_wall_ms(),
                             &ended, p);
    if (!ok || !ended.was)
        discard_unreferenced(library, &incoming);
    lock_release(&library->lock);
    late_added(library, &late, ok && ended.was);
    result_fini(&made);
    if (ok)
        *ret = ended;
    return ok;
}

/* Finds the files of the model that a job made, which nothing refers to once the job
   is removed. */
static bool
find_result_files(struct library *library, const char *id,
                  struct store_model_files *ret, struct api_problem *p)
{
    struct store_job job;
    if (!store_job_get(library->store, id, &job, p))
        return false;
    bool ok = !job.result_files ||
              store_model_files(library->store, job.result_model, ret, p);
    store_job_fini(&job);
    return ok;
}

static bool
remove_job(struct library *library, const char *id, enum store_remover who,
           struct api_problem *p)
{
    struct store_job job;
    struct store_model_files files = {0};
    lock_acquire(&library->lock);
    bool ok = find_result_files(library, id, &files, p) &&
              store_job_remove(library->store, id, who, &job, p);
    if (ok) {
        remove_files(library, &files);
        if (job.result_model) {
            discard_if_unreferenced(library, job.result_model);
            if (!store_needs_blob(library->store, job.result_model))
                remove_observations_of(library, STORE_MODEL, job.result_model);
        }
        if (job.report)
            discard_if_unreferenced(library, job.report);
        if (job.frozen)
            discard_if_unreferenced(library, job.frozen);
        store_job_fini(&job);
    }
    lock_release(&library->lock);
    store_model_files_fini(&files);
    return ok;
}

bool
library_job_remove(struct library *library, const char *id, enum store_remover who,
                   struct api_problem *p)
{
    bool ok = remove_job(library, id, who, p) ||
              (make_room(library, p) && remove_job(library, id, who, p));
    ballast_fill(library->ballast);
    return ok;
}

/* --- observations --------------------------------------------------------- */

enum { MOST_OBSERVATIONS = 10000 }; /* limit of rows */

bool
library_observations_get(struct library *library, const char *key, struct spool *spool,
                         char ret_id[DIGEST_SIZE], struct api_problem *p)
{
    int fd = -1;
    bool any = false;
    char found[DIGEST_SIZE] = "";
    ret_id[0] = '\0';
    lock_acquire(&library->lock);
    bool ok =
        store_observations_use(library->store, key, clock_wall_ms(), ret_id, &any, p) &&
        (!any || library->bucket || blob_open(library->blobs, ret_id, &fd, p));
    lock_release(&library->lock);
    /* A bucket is asked without the lock. */
    if (ok && any && library->bucket)
        ok = blob_open(library->blobs, ret_id, &fd, p);
    ok = ok && (!any || spool_fill(spool, fd, found, p));
    if (strcmp(ret_id, found) != 0)
        ret_id[0] = '\0';
    if (fd >= 0)
        close(fd);
    return ok;
}

/* Removes the observations that were not used for longest. The caller holds the
   lock. */
static bool
trim(struct library *library, int64_t bytes, struct api_problem *p)
{
    lock_assert_held(&library->lock);
    char blob[DIGEST_SIZE];
    bool any = true, ok = true;
    while (ok && any) {
        ok = store_observations_evict(library->store, bytes, MOST_OBSERVATIONS, blob,
                                      &any, p);
        if (ok && any)
            discard_if_unreferenced(library, blob);
    }
    return ok;
}

bool
library_observations_keep(struct library *library, const struct store_observations *row,
                          struct spool **spool, int64_t bytes, struct api_problem *p)
{
    struct store_observations full = *row;
    char before[DIGEST_SIZE];
    bool had = false, stored = false;
    full.size = spool_size(*spool);
    memcpy(full.blob, spool_id(*spool), sizeof full.blob);
    struct incoming incoming = {.n = 1, .spools = &spool, .ids = &full.blob};
    if (!blobs_has_room(library->blobs, 0, p))
        return false;
    bool ok =
        publish_blobs(library, &incoming, p) &&
        store_observations_use(library->store, row->key, clock_wall_ms(), before, &had,
                               p) &&
        store_observations_put(library->store, &full, clock_wall_ms(), &stored, p);
    discard_if_unreferenced(library, full.blob);
    if (had)
        discard_if_unreferenced(library, before);
    ok = ok && trim(library, bytes, p);
    lock_release(&library->lock);
    return ok;
}

bool
library_observations_trim(struct library *library, int64_t bytes, struct api_problem *p)
{
    lock_acquire(&library->lock);
    bool ok = trim(library, bytes, p);
    lock_release(&library->lock);
    return ok;
}
