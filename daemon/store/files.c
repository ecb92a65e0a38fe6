/* SPDX-License-Identifier: Apache-2.0 */
/* The store's files, and the queries for what may be removed. */
#include "config.h"
#include "store/inner.h"

#include <sys/random.h>

/* --- files ---------------------------------------------------------------- */

static bool
use_file(struct store *store, enum store_kind kind, const char *id, int64_t now,
         struct api_problem *p)
{
    bind_file(store, FILE_USE, kind, id);
    sqlite3_bind_int64(store->statements[FILE_USE], 3, now);
    return run(store, FILE_USE, p);
}

/* Adds or renews the row of a file. The caller holds the lock. */
static bool
add_file(struct store *store, enum store_kind kind, const struct store_file *file,
         bool *ret_new, struct api_problem *p)
{
    lock_assert_held(&store->lock);
    sqlite3_stmt *stmt = store->statements[FILE_ADD];
    bind_file(store, FILE_ADD, kind, file->id);
    sqlite3_bind_int64(stmt, 3, (int64_t)file->size);
    sqlite3_bind_int64(stmt, 4, file->created_at);
    bind_text(stmt, 5, file->info);
    if (!run(store, FILE_ADD, p))
        return false;
    *ret_new = sqlite3_changes(store->db) == 1;
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
    sqlite3_stmt *stmt = store->statements[FILE_GET];
    bool ok = true;
    int rc = sqlite3_step(stmt);
    if (rc == SQLITE_ROW) {
        column_chars(stmt, 0, file.id, sizeof file.id);
        file.size = (uint64_t)sqlite3_column_int64(stmt, 1);
        file.created_at = sqlite3_column_int64(stmt, 2);
        file.info = column_text(stmt, 3, &ok);
        file.expires_at = expires(sqlite3_column_int64(stmt, 4),
                                  sqlite3_column_int(stmt, 5) ? store->retention.jobs
                                                              : store->retention.files);
        ok = ok || api_problem_no_memory(p);
    } else {
        ok = rc == SQLITE_DONE ? api_problem_set(p, API_NOT_FOUND, QDQ_AT_NOTHING, NULL,
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

bool
store_file_remove(struct store *store, enum store_kind kind, const char *id,
                  struct api_problem *p)
{
    bool used = false;
    lock_acquire(&store->lock);
    bind_file(store, FILE_USED, kind, id);
    bool ok = ask(store, FILE_USED, &used, NULL, p);
    if (ok && used)
        ok = api_problem_set(p, API_IN_USE, QDQ_AT_NOTHING, NULL,
                             "a job that has not ended needs %s", id);
    if (ok) {
        bind_file(store, FILE_REMOVE, kind, id);
        ok = run(store, FILE_REMOVE, p);
    }
    if (ok && sqlite3_changes(store->db) == 0)
        ok = api_problem_set(p, API_NOT_FOUND, QDQ_AT_NOTHING, NULL,
                             "there is no such file");
    lock_release(&store->lock);
    return ok && store_sync(store, p);
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
    sqlite3_stmt *stmt = store->statements[MODEL_FILE_ADD];
    bool ok = true;
    for (size_t i = 0; ok && files && i < files->n; i++) {
        bind_text(stmt, 1, model);
        sqlite3_bind_int64(stmt, 2, (int64_t)i);
        bind_text(stmt, 3, files->items[i].path);
        bind_text(stmt, 4, files->items[i].digest);
        sqlite3_bind_int64(stmt, 5, (int64_t)files->items[i].size);
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
take_model_file(sqlite3_stmt *stmt, struct store_model_files *to, struct api_problem *p)
{
    struct store_model_file file = {.size = (uint64_t)sqlite3_column_int64(stmt, 2)};
    bool ok = true;
    struct store_model_file *grown =
        realloc(to->items, (to->n + 1) * sizeof *to->items);
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
    sqlite3_stmt *stmt = store->statements[MODEL_FILES];
    bind_text(stmt, 1, id);
    while ((rc = sqlite3_step(stmt)) == SQLITE_ROW && ok)
        ok = take_model_file(stmt, &files, p);
    ok = ok && (rc == SQLITE_DONE || fail(store, p));
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
    sqlite3_stmt *stmt = store->statements[s];
    sqlite3_bind_int64(stmt, 1, now);
    sqlite3_bind_int64(stmt, 2, age);
    int rc = sqlite3_step(stmt);
    bool ok = rc == SQLITE_ROW || rc == SQLITE_DONE || fail(store, p);
    *ret_any = rc == SQLITE_ROW;
    if (*ret_any) {
        column_chars(stmt, 0, ret, size);
        *ret_kind = sqlite3_column_int(stmt, 1);
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

bool
store_needs_blob(struct store *store, const char *id)
{
    bool needed = true;
    struct api_problem ignored = {0};
    lock_acquire(&store->lock);
    bind_text(store->statements[BLOB_NEEDED], 1, id);
    (void)ask(store, BLOB_NEEDED, &needed, NULL, &ignored);
    lock_release(&store->lock);
    return needed;
}

/* --- observations --------------------------------------------------------- */

/* Steps a bound statement that returns one blob or none, to its end. */
static bool
ask_blob(struct store *store, enum statement s, char ret[DIGEST_SIZE], bool *ret_any,
         struct api_problem *p)
{
    sqlite3_stmt *stmt = store->statements[s];
    int rc = sqlite3_step(stmt);
    *ret_any = rc == SQLITE_ROW;
    if (*ret_any) {
        column_chars(stmt, 0, ret, DIGEST_SIZE);
        rc = sqlite3_step(stmt);
    }
    bool ok = rc == SQLITE_DONE || fail(store, p);
    *ret_any = ok && *ret_any;
    done(stmt);
    return ok;
}

bool
store_observations_use(struct store *store, const char *key, int64_t now,
                       char ret[DIGEST_SIZE], bool *ret_any, struct api_problem *p)
{
    lock_acquire(&store->lock);
    bind_text(store->statements[OBSERVATIONS_USE], 1, key);
    sqlite3_bind_int64(store->statements[OBSERVATIONS_USE], 2, now);
    bool ok = ask_blob(store, OBSERVATIONS_USE, ret, ret_any, p);
    lock_release(&store->lock);
    return ok;
}

bool
store_observations_put(struct store *store, const struct store_observations *row,
                       int64_t now, bool *ret_stored, struct api_problem *p)
{
    lock_acquire(&store->lock);
    sqlite3_stmt *stmt = store->statements[OBSERVATIONS_PUT];
    bind_text(stmt, 1, row->key);
    bind_text(stmt, 2, row->model);
    bind_text(stmt, 3, row->calibration);
    bind_text(stmt, 4, row->blob);
    sqlite3_bind_int64(stmt, 5, (int64_t)row->size);
    sqlite3_bind_int64(stmt, 6, now);
    bool ok = run(store, OBSERVATIONS_PUT, p);
    if (ok)
        *ret_stored = sqlite3_changes(store->db) == 1;
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
    sqlite3_bind_int64(store->statements[OBSERVATIONS_EVICT], 1, bytes);
    sqlite3_bind_int64(store->statements[OBSERVATIONS_EVICT], 2, rows);
    bool ok = ask_blob(store, OBSERVATIONS_EVICT, ret, ret_any, p);
    lock_release(&store->lock);
    return ok && store_sync(store, p);
}

/* --- the database itself -------------------------------------------------- */

/* Reads the number of the database; 0: it has none yet. The caller holds the lock. */
static bool
read_number(struct store *store, uint32_t *ret, struct api_problem *p)
{
    sqlite3_stmt *stmt = NULL;
    lock_assert_held(&store->lock);
    bool ok =
        !sqlite3_prepare_v2(store->db, "PRAGMA application_id", -1, &stmt, NULL) &&
        sqlite3_step(stmt) == SQLITE_ROW;
    if (ok)
        *ret = (uint32_t)sqlite3_column_int(stmt, 0);
    else
        fail(store, p);
    sqlite3_finalize(stmt);
    return ok;
}

static bool
choose_number(struct store *store, uint32_t *ret, struct api_problem *p)
{
    char sql[64];
    lock_assert_held(&store->lock);
    if (getrandom(ret, sizeof *ret, 0) != sizeof *ret)
        return api_problem_set(p, API_INTERNAL, QDQ_AT_NOTHING, NULL,
                               "no random bytes: %s", strerror(errno));
    *ret = (*ret & 0x7fffffff) | 1;
    snprintf(sql, sizeof sql, "PRAGMA application_id = %u", (unsigned)*ret);
    return sqlite3_exec(store->db, sql, NULL, NULL, NULL) == SQLITE_OK ||
           fail(store, p);
}

bool
store_identify(struct store *store, struct store_identity *ret, struct api_problem *p)
{
    struct store_identity identity = {0};
    lock_acquire(&store->lock);
    bool ok = read_number(store, &identity.number, p);
    identity.is_new = identity.number == 0;
    ok = ok && (identity.number || choose_number(store, &identity.number, p)) &&
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
    bool ok = sqlite3_wal_checkpoint_v2(store->db, NULL, SQLITE_CHECKPOINT_RESTART,
                                        NULL, NULL) == SQLITE_OK ||
              fail(store, p);
    lock_release(&store->lock);
    return ok;
}

bool
store_job_forget(struct store *store, const char *blob, struct api_problem *p)
{
    lock_acquire(&store->lock);
    bind_text(store->statements[JOB_FORGET], 1, blob);
    bool ok = run(store, JOB_FORGET, p);
    lock_release(&store->lock);
    return ok;
}
