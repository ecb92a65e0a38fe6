/* SPDX-License-Identifier: Apache-2.0 */
/* The store's files, and the queries for what may be removed. */
#include "config.h"
#include "store/inner.h"
#include "api/grow.h"

/* --- files ---------------------------------------------------------------- */

static bool
use_file(struct store *store, enum store_kind kind, const char *id, int64_t now,
         struct api_problem *p)
{
    bind_file(store, FILE_USE, kind, id);
    bind_int(&store->statements[FILE_USE], 3, now);
    return run(store, FILE_USE, p);
}

/* Adds or renews the row of a file. The caller holds the lock. */
static bool
add_file(struct store *store, enum store_kind kind, const struct store_file *file,
         bool *ret_new, struct api_problem *p)
{
    lock_assert_held(&store->lock);
    bind_file(store, FILE_ADD, kind, file->id);
    bind_all(&store->statements[FILE_ADD], 3, INT((int64_t)file->size),
             INT(file->created_at), TEXT(file->info));
    if (!run(store, FILE_ADD, p))
        return false;
    *ret_new = changes(store) == 1;
    return *ret_new || use_file(store, kind, file->id, file->created_at, p);
}

bool
store_file_add(struct store *store, enum store_kind kind, const struct store_file *file,
               bool *ret_new, struct api_problem *p)
{
    bool is_new = false;
    lock_acquire(&store->lock);
    bool ok = add_file(store, kind, file, &is_new, p);
    lock_release(&store->lock);
    if (ok)
        *ret_new = is_new;
    return ok;
}

static bool
read_file(struct store *store, struct store_file *ret, struct api_problem *p)
{
    struct store_file file = {0};
    struct stmt *stmt = &store->statements[FILE_GET];
    bool ok = true;
    int rc = step(stmt);
    if (rc == DB_ROW) {
        column_chars(stmt, 0, file.id, sizeof file.id);
        file.size = (uint64_t)column_int(stmt, 1);
        file.created_at = column_int(stmt, 2);
        file.info = column_text(stmt, 3, &ok);
        file.expires_at = expires(column_int(stmt, 4), (int)column_int(stmt, 5)
                                                           ? store->retention.jobs
                                                           : store->retention.files);
        ok = ok || api_problem_no_memory(p);
    } else {
        ok = rc == DB_DONE ? api_problem_set(p, API_NOT_FOUND, QDQ_AT_NOTHING, NULL,
                                             "there is no such file")
                           : fail(store, p);
    }
    done(stmt);
    if (ok)
        *ret = file;
    return ok;
}

bool
store_file_get(struct store *store, enum store_kind kind, const char *id,
               struct store_file *ret, struct api_problem *p)
{
    lock_acquire(&store->lock);
    bind_file(store, FILE_GET, kind, id);
    bool ok = read_file(store, ret, p);
    lock_release(&store->lock);
    return ok;
}

void
store_file_fini(struct store_file *file)
{
    free(file->info);
    file->info = NULL;
}

/* --- models of several files ---------------------------------------------- */

bool
store_add_model_files(struct store *store, const char *model,
                      const struct store_model_files *files, struct api_problem *p)
{
    struct stmt *stmt = &store->statements[MODEL_FILE_ADD];
    bool ok = true;
    for (size_t i = 0; ok && files && i < files->n; i++) {
        bind_all(stmt, 1, TEXT(model), INT((int64_t)i), TEXT(files->items[i].path),
                 TEXT(files->items[i].digest), INT((int64_t)files->items[i].size));
        ok = run(store, MODEL_FILE_ADD, p);
    }
    return ok;
}

bool
store_model_add(struct store *store, const struct store_file *file,
                const struct store_model_files *files, bool *ret_new,
                struct api_problem *p)
{
    bool is_new = false;
    lock_acquire(&store->lock);
    bool ok = run(store, BEGIN, p);
    if (ok) {
        ok = add_file(store, STORE_MODEL, file, &is_new, p) &&
             store_add_model_files(store, file->id, files, p);
        for (size_t i = 0; ok && i < files->n; i++)
            ok = use_file(store, STORE_BLOB, files->items[i].digest, file->created_at,
                          p);
        ok = finish(store, ok, p);
    }
    lock_release(&store->lock);
    if (ok)
        *ret_new = is_new;
    return ok;
}

/* Appends the statement's current row. */
static bool
append_model_file(struct stmt *stmt, struct store_model_files *to,
                  struct api_problem *p)
{
    struct store_model_file file = {.size = (uint64_t)column_int(stmt, 2)};
    bool ok = true;
    struct store_model_file *grown = api_grow(to->items, to->n, 1, sizeof *to->items);
    if (!grown)
        return api_problem_no_memory(p);
    to->items = grown;
    column_chars(stmt, 1, file.digest, sizeof file.digest);
    file.path = column_text(stmt, 0, &ok);
    if (!ok || !file.path)
        return api_problem_no_memory(p);
    to->items[to->n++] = file;
    return true;
}

bool
store_model_files(struct store *store, const char *id, struct store_model_files *ret,
                  struct api_problem *p)
{
    struct store_model_files files = {0};
    bool ok = true;
    int rc;
    lock_acquire(&store->lock);
    struct stmt *stmt = &store->statements[MODEL_FILES];
    bind_text(stmt, 1, id);
    while ((rc = step(stmt)) == DB_ROW && ok)
        ok = append_model_file(stmt, &files, p);
    ok = ok && (rc == DB_DONE || fail(store, p));
    done(stmt);
    lock_release(&store->lock);
    if (ok)
        *ret = files;
    else
        store_model_files_fini(&files);
    return ok;
}

void
store_model_files_fini(struct store_model_files *files)
{
    for (size_t i = 0; i < files->n; i++)
        free(files->items[i].path);
    free(files->items);
    *files = (struct store_model_files){0};
}

/* --- what may be removed ------------------------------------------------- */

/* Steps a statement that returns the id and a number of the oldest row beyond `age`,
   or no row. */
static bool
ask_oldest(struct store *store, enum statement s, int64_t now, int64_t age, char *ret,
           size_t size, int *ret_kind, bool *ret_any, struct api_problem *p)
{
    lock_acquire(&store->lock);
    struct stmt *stmt = &store->statements[s];
    bind_all(stmt, 1, INT(now), INT(age));
    int rc = step(stmt);
    bool ok = rc == DB_ROW || rc == DB_DONE || fail(store, p);
    *ret_any = rc == DB_ROW;
    if (*ret_any) {
        column_chars(stmt, 0, ret, size);
        *ret_kind = (int)column_int(stmt, 1);
    }
    done(stmt);
    lock_release(&store->lock);
    return ok;
}

bool
store_oldest_job(struct store *store, int64_t now, int64_t age, char ret[JOB_ID_SIZE],
                 bool *ret_any, struct api_problem *p)
{
    int none;
    return ask_oldest(store, JOB_OLDEST, now, age, ret, JOB_ID_SIZE, &none, ret_any, p);
}

bool
store_oldest_file(struct store *store, int64_t now, int64_t age,
                  enum store_kind *ret_kind, char ret[DIGEST_SIZE], bool *ret_any,
                  struct api_problem *p)
{
    int kind = 0;
    bool ok =
        ask_oldest(store, FILE_OLDEST, now, age, ret, DIGEST_SIZE, &kind, ret_any, p);
    *ret_kind = (enum store_kind)kind;
    return ok;
}

static bool
ask_of_blob(struct store *store, enum statement s, const char *id, bool *ret,
            struct api_problem *p)
{
    lock_acquire(&store->lock);
    bind_text(&store->statements[s], 1, id);
    bool ok = ask(store, s, ret, NULL, p);
    lock_release(&store->lock);
    return ok;
}

bool
store_has_blob(struct store *store, const char *id, bool *ret, struct api_problem *p)
{
    return ask_of_blob(store, BLOB_STORED, id, ret, p);
}

bool
store_needs_blob(struct store *store, const char *id)
{
    bool needed;
    struct api_problem ignored = {0};
    return !ask_of_blob(store, BLOB_NEEDED, id, &needed, &ignored) || needed;
}

/* --- observations --------------------------------------------------------- */

/* Steps a bound statement that returns one blob or none, to its end. */
static bool
ask_blob(struct store *store, enum statement s, char ret[DIGEST_SIZE], bool *ret_any,
         struct api_problem *p)
{
    struct stmt *stmt = &store->statements[s];
    int rc = step(stmt);
    *ret_any = rc == DB_ROW;
    if (*ret_any) {
        column_chars(stmt, 0, ret, DIGEST_SIZE);
        rc = step(stmt);
    }
    bool ok = rc == DB_DONE || fail(store, p);
    *ret_any = ok && *ret_any;
    done(stmt);
    return ok;
}

bool
store_observations_use(struct store *store, const char *key, int64_t now,
                       char ret[DIGEST_SIZE], bool *ret_any, struct api_problem *p)
{
    lock_acquire(&store->lock);
    bind_all(&store->statements[OBSERVATIONS_USE], 1, TEXT(key), INT(now));
    bool ok = ask_blob(store, OBSERVATIONS_USE, ret, ret_any, p);
    lock_release(&store->lock);
    return ok;
}

bool
store_observations_put(struct store *store, const struct store_observations *row,
                       int64_t now, bool *ret_stored, struct api_problem *p)
{
    lock_acquire(&store->lock);
    bind_all(&store->statements[OBSERVATIONS_PUT], 1, TEXT(row->key), TEXT(row->model),
             TEXT(row->calibration), TEXT(row->blob), INT((int64_t)row->size),
             INT(now));
    bool ok = run(store, OBSERVATIONS_PUT, p);
    if (ok)
        *ret_stored = changes(store) == 1;
    lock_release(&store->lock);
    return ok && store_sync(store, p);
}

bool
store_observations_forget(struct store *store, enum store_kind kind, const char *id,
                          char ret[DIGEST_SIZE], bool *ret_any, struct api_problem *p)
{
    lock_acquire(&store->lock);
    bind_file(store, OBSERVATIONS_FORGET, kind, id);
    bool ok = ask_blob(store, OBSERVATIONS_FORGET, ret, ret_any, p);
    lock_release(&store->lock);
    return ok && store_sync(store, p);
}

bool
store_observations_evict(struct store *store, int64_t bytes, int64_t rows,
                         char ret[DIGEST_SIZE], bool *ret_any, struct api_problem *p)
{
    lock_acquire(&store->lock);
    bind_all(&store->statements[OBSERVATIONS_EVICT], 1, INT(bytes), INT(rows));
    bool ok = ask_blob(store, OBSERVATIONS_EVICT, ret, ret_any, p);
    lock_release(&store->lock);
    return ok && store_sync(store, p);
}

/* --- the database itself -------------------------------------------------- */

bool
store_identify(struct store *store, struct store_identity *ret, struct api_problem *p)
{
    struct store_identity identity = {0};
    lock_acquire(&store->lock);
    bool ok =
        store->db->class->identify(store->db, &identity.number, &identity.is_new, p) &&
        ask(store, ANY_ROW, &identity.has_rows, NULL, p);
    lock_release(&store->lock);
    if (ok)
        *ret = identity;
    return ok && store_sync(store, p);
}

bool
store_checkpoint(struct store *store, struct api_problem *p)
{
    lock_acquire(&store->lock);
    bool ok = store->db->class->checkpoint(store->db, p);
    lock_release(&store->lock);
    return ok;
}

bool
store_job_forget(struct store *store, const char *blob, struct api_problem *p)
{
    lock_acquire(&store->lock);
    bind_text(&store->statements[JOB_FORGET], 1, blob);
    bool ok = run(store, JOB_FORGET, p);
    lock_release(&store->lock);
    return ok;
}
