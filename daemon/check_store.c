/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "check_store.h"
#include "carriers/bucket.h"
#include "folders.h"
#include "library/blob.h"
#include "library/bucket/bucket.h"
#include "library/folder/state_folder.h"
#include "store/backup.h"
#include "store/postgres/offline.h"
#include "api/grow.h"

#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define COPY "check-store.sqlite3"

/* A sorted list of ids. */
struct ids {
    char (*items)[DIGEST_SIZE];
    size_t n;
    bool failed;
};

static void
ids_add(struct ids *ids, const char *id)
{
    void *items = api_grow(ids->items, ids->n, 1, DIGEST_SIZE);
    ids->failed = ids->failed || !items;
    if (!items)
        return;
    ids->items = items;
    snprintf(ids->items[ids->n++], DIGEST_SIZE, "%s", id);
}

static int
compare(const void *a, const void *b)
{
    return strcmp(a, b);
}

/* Sorts a list and leaves each id once. */
static void
ids_finish(struct ids *ids)
{
    size_t n = 0;
    if (ids->n)
        qsort(ids->items, ids->n, DIGEST_SIZE, compare);
    for (size_t i = 0; i < ids->n; i++)
        if (!n || strcmp(ids->items[i], ids->items[n - 1]) != 0)
            memmove(ids->items[n++], ids->items[i], DIGEST_SIZE);
    ids->n = n;
}

static bool
ids_have(const struct ids *ids, const char *id)
{
    return ids->n && bsearch(id, ids->items, ids->n, DIGEST_SIZE, compare);
}

/* --- the record ----------------------------------------------------------- */

static bool
add_named(void *arg, const char *id, struct api_problem *p)
{
    (void)p;
    if (id && digest_is_id(id))
        ids_add(arg, id);
    return true;
}

static bool
add_text(void *arg, const char *id, const char *text, struct api_problem *p)
{
    (void)text;
    return add_named(arg, id, p);
}

/* Lists the blobs that the rows of a database of SQLite name, and in `kept` those whose bytes
   are in the record itself. */
static bool
list_file(const char *path, struct ids *ret, struct ids *kept, struct api_problem *p)
{
    char database[PATH_MAX], copy[PATH_MAX];
    if (snprintf(database, sizeof database, "%s/" FOLDER_DATABASE, path) >=
            (int)sizeof database ||
        snprintf(copy, sizeof copy, "%s/" COPY, path) >= (int)sizeof copy)
        return api_problem_set(p, API_IO, QDQ_AT_NOTHING, NULL, "%s: too long", path);
    bool ok = store_backup_copy(database, copy, p) &&
              store_backup_each(copy, add_named, ret, p) &&
              store_backup_texts(copy, add_text, kept, p);
    unlink(copy);
    return ok;
}

/* Returns the URL of the record without a pooler. */
static const char *
direct_url(const struct settings *settings)
{
    return *settings->store_direct_url ? settings->store_direct_url
                                       : settings->store_url;
}

/* Lists the blobs that the rows of a tenant name now, in SQLite by a copy of the database.
   `kept` gets those whose files the next start writes, where they are missing. */
static bool
list_rows(const struct settings *settings, const char *path, const char *tenant,
          struct ids *ret, struct ids *kept, struct api_problem *p)
{
    bool ok = *settings->store_url
                  ? survey_blobs(direct_url(settings), tenant, add_named, ret, p)
                  : list_file(path, ret, kept, p);
    ids_finish(ret);
    ids_finish(kept);
    return ok && ((!ret->failed && !kept->failed) || api_problem_no_memory(p));
}

/* --- the blobs ------------------------------------------------------------ */

static void
add_object(void *arg, const struct bucket_object *object)
{
    char id[DIGEST_SIZE];
    const char *name = strrchr(object->key, '/');
    if (strstr(object->key, "/marks/") || strstr(object->key, "/removals/"))
        return;
    snprintf(id, sizeof id, "sha256:%.64s", name ? name + 1 : object->key);
    if (digest_is_id(id))
        ids_add(arg, id);
}

static bool
list_bucket(const struct bucket *bucket, const char *tenant, struct ids *ret,
            struct api_problem *p)
{
    char prefix[BUCKET_KEY], token[BUCKET_TOKEN] = "";
    int64_t now;
    bool ok = true;
    snprintf(prefix, sizeof prefix, "%.100s/", *tenant ? tenant : "_");
    do
        ok = bucket->list(bucket->arg, prefix, token, add_object, ret, &now, p);
    while (ok && *token);
    return ok;
}

/* Lists the files of one of the 256 folders. */
static bool
list_folder(const char *path, unsigned i, struct ids *ret, struct api_problem *p)
{
    char name[PATH_MAX + 16], id[DIGEST_SIZE];
    snprintf(name, sizeof name, "%s/blobs/%02x", path, i);
    DIR *stream = opendir(name);
    if (!stream)
        return errno == ENOENT || api_problem_set(p, API_IO, QDQ_AT_NOTHING, NULL,
                                                  "%s: %s", name, strerror(errno));
    for (struct dirent *entry; (entry = readdir(stream));) {
        snprintf(id, sizeof id, "sha256:%.64s", entry->d_name);
        if (digest_is_id(id))
            ids_add(ret, id);
    }
    closedir(stream);
    return true;
}

static bool
list_blobs(const struct bucket *bucket, const char *path, const char *tenant,
           struct ids *ret, struct api_problem *p)
{
    bool ok = !bucket || list_bucket(bucket, tenant, ret, p);
    for (unsigned i = 0; ok && !bucket && i < 256; i++)
        ok = list_folder(path, i, ret, p);
    ids_finish(ret);
    return ok && (!ret->failed || api_problem_no_memory(p));
}

/* --- the comparison ------------------------------------------------------- */

struct check {
    const struct settings *settings;
    const struct bucket *bucket;
    FILE *out;
    struct store_checked *done;
};

enum { BEFORE, BLOBS, AFTER, KEPT, N_LISTS };

/* Rows are listed before and after the blobs. A blob is missing if both lists name it and the
   record has not its bytes, and an orphan if none does. */
static void
compare_lists(struct check *check, const char *tenant, const struct ids lists[N_LISTS])
{
    const struct ids *before = &lists[BEFORE], *blobs = &lists[BLOBS],
                     *after = &lists[AFTER];
    const char *name = *tenant ? tenant : "-";
    check->done->blobs += after->n;
    for (size_t i = 0; i < before->n; i++)
        if (!ids_have(blobs, before->items[i]) && ids_have(after, before->items[i]) &&
            !ids_have(&lists[KEPT], before->items[i])) {
            fprintf(check->out, "missing %s %s\n", name, before->items[i]);
            check->done->missing++;
        }
    for (size_t i = 0; i < blobs->n; i++)
        if (!ids_have(before, blobs->items[i]) && !ids_have(after, blobs->items[i])) {
            fprintf(check->out, "orphan %s %s\n", name, blobs->items[i]);
            check->done->orphans++;
        }
}

static bool
check_folder(void *arg, const char *path, const char *tenant, struct api_problem *p)
{
    struct check *check = arg;
    struct ids lists[N_LISTS] = {0};
    const struct settings *settings = check->settings;
    bool ok = list_rows(settings, path, tenant, &lists[BEFORE], &lists[KEPT], p) &&
              list_blobs(check->bucket, path, tenant, &lists[BLOBS], p) &&
              list_rows(settings, path, tenant, &lists[AFTER], &lists[KEPT], p);
    if (ok)
        compare_lists(check, tenant, lists);
    for (size_t i = 0; i < N_LISTS; i++)
        free(lists[i].items);
    return ok;
}

/* Checks a tenant of a record in PostgreSQL. */
static bool
check_tenant(void *arg, const char *tenant, struct api_problem *p)
{
    const struct check *check = arg;
    char path[PATH_MAX];
    int len = *tenant ? snprintf(path, sizeof path, "%s/tenants/%s",
                                 check->settings->state_dir, tenant)
                      : snprintf(path, sizeof path, "%s", check->settings->state_dir);
    if (len >= (int)sizeof path)
        return api_problem_set(p, API_IO, QDQ_AT_NOTHING, NULL, "%s: too long", path);
    return check_folder(arg, path, tenant, p);
}

bool
check_store(const struct settings *settings, FILE *out, struct store_checked *ret,
            struct api_problem *p)
{
    struct bucket_pool *pool = NULL;
    *ret = (struct store_checked){0};
    if (!bucket_open(settings, &pool, p))
        return false;
    struct check check = {settings, bucket_calls(pool), out, ret};
    bool ok = *settings->store_url
                  ? survey_tenants(direct_url(settings), check_tenant, &check, p)
                  : folders_each(settings->state_dir, check_folder, &check, p);
    bucket_close(&pool);
    return ok;
}
