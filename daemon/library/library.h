/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The state folder: STATE/qdqd.sqlite3, STATE/blobs, STATE/tmp and some more, locked
 * as a whole against a second daemon. The library keeps rows and blobs consistent:
 * operations that add or remove both run under one lock. A crash between the two leaves
 * at worst a blob without a row, which is removed after a grace period.
 *
 * Any thread may call. The order of locks: base/locks.h.
 */
#ifndef QDQD_LIBRARY_LIBRARY_H
#define QDQD_LIBRARY_LIBRARY_H

#include "library/blob.h"
#include "store/store.h"

struct bucket;
struct library;
struct settings;

/* Opens the library; makes the folder (mode 0700) when it does not exist. IO: its
   blobs belong to another database, or to one that is gone. */
bool library_open(const char *path, struct library **ret, struct api_problem *p);
/* Where the record and the blobs of a library are. All is borrowed. */
struct library_place {
    const struct store_place *record; /* NULL: in the folder */
    /* The blobs are there, below the tenant's name, and the folder is a cache of them, which may
       be empty. NULL: in the folder. */
    const struct bucket *bucket;
    const char *bucket_url; /* where it is; NULL: there is none */
    const char *tenant;
    bool adopt; /* also when the folder's record is not that of its blobs */
};
bool library_open_at(const char *path, const struct library_place *place,
                     struct library **ret, struct api_problem *p);
/* Gives each blob that no row names a row of its own, whatever database there is.
   *ret_n is their number. */
bool library_adopt(const char *path, uint64_t *ret_n, struct api_problem *p);
void library_close(struct library **library);

/* Removes the blobs that no row names when the library has been open for `grace` milliseconds. */
bool library_remove_leftovers(struct library *library, int64_t grace,
                              struct api_problem *p);

/* Sets the tenant's name for the log; "" is the nameless tenant, logged as "-".
   Borrowed. Must be called before other threads call. */
void library_set_tenant(struct library *library, const char *tenant);
const char *library_tenant(const struct library *library);
/* Tells how many bytes all libraries on the disk store, and how many store any. */
typedef void (*library_sharers_fn)(void *arg, uint64_t *ret_used, unsigned *ret_n);
/* Sets the function that is asked when the disk is short, without a lock of the library's.
   Must be called before other threads call. */
void library_set_sharers(struct library *library, library_sharers_fn fn, void *arg);
/* Return the parts of the library, borrowed. */
struct store *library_store(struct library *library);
struct blobs *library_blobs(struct library *library);

/*
 * Stores a finished spool, which is consumed on success. *ret describes the stored file
 * (the caller frees its contents); *ret_new is false when it was stored already. `info`
 * describes a dataset; otherwise it is NULL.
 */
bool library_add(struct library *library, enum store_kind kind, struct spool **spool,
                 const char *info, struct store_file *ret, bool *ret_new,
                 struct api_problem *p);
/* One file of a model: a new one, or one that is stored already. */
struct library_part {
    struct spool **spool; /* finished; NULL: the blob `digest` exists */
    char digest[DIGEST_SIZE];
    char *path;
    uint64_t size;
};

/*
 * Stores a model of several files under its id; the spools are consumed on success.
 * NOT_FOUND: a blob no longer exists. MODEL_CONFLICT: the same files are stored with
 * another of them as the model.
 */
bool library_add_model(struct library *library, const char *id,
                       const struct library_part *parts, size_t n,
                       struct store_file *ret, bool *ret_new, struct api_problem *p);
/* Removes a model or dataset, together with its observations. */
bool library_remove(struct library *library, enum store_kind kind, const char *id,
                    enum store_remover who, struct api_problem *p);

/* The name of the model in a result of several files. */
#define LIBRARY_RESULT_NAME "model.onnx"

/* The result of a job: finished spools, which are consumed when they are stored. */
struct job_result {
    struct spool **model, **report, **frozen;
    struct spool **data;   /* the model's external data file; NULL: none */
    const char *data_path; /* the path by which the model refers to it */
    const char *summary;   /* JSON */
    int64_t fence;         /* store_end.fence */
};

/*
 * Stores the result of a job, and ends the job's row: succeeded, or failed when there
 * is an error. If the job was not running any more (it was cancelled), the result is
 * discarded; *ret says so.
 */
bool library_job_end(struct library *library, const char *id,
                     const struct job_result *result, const struct api_problem *error,
                     struct store_ended *ret, struct api_problem *p);
/* Syncs the files of results whose sync was deferred, and removes their bytes from the record. The
   caller holds no lock. */
void library_sync_deferred(struct library *library);
/* Does so when there are many. The ends of jobs call this after their clients know. */
void library_sync_many(struct library *library);
bool library_job_remove(struct library *library, const char *id, enum store_remover who,
                        struct api_problem *p);

/* --- observations --------------------------------------------------------- */

/* Copies the observations that are kept under a key into an empty spool; *ret_id is
   the id of their blob, or "" when there are none or they are damaged. */
bool library_observations_get(struct library *library, const char *key,
                              struct spool *spool, char ret_id[DIGEST_SIZE],
                              struct api_problem *p);
/*
 * Keeps a finished spool, which is consumed on success, under row->key; the blob and
 * size of the row are not read. Removes the least recently used observations beyond
 * `bytes` in all.
 */
bool library_observations_keep(struct library *library,
                               const struct store_observations *row,
                               struct spool **spool, int64_t bytes,
                               struct api_problem *p);
/* Removes observations until at most `bytes` are left. */
bool library_observations_trim(struct library *library, int64_t bytes,
                               struct api_problem *p);

/* --- journals --------------------------------------------------------------- */

/* Opens the journal of a job (struct qdq_work.journal), which is made where there is none, and which the caller closes. Returns
   -1 and sets errno on failure. */
int library_journal_open(struct library *library, const char *job);
/* Removes the journal of a job that has ended. The caller holds no lock. */
void library_journal_settle(struct library *library, const char *job);
/* Removes those of all jobs that have ended, or are not there. */
void library_journals_sweep(struct library *library);

/* --- expiry and eviction --------------------------------------------------- */

/* Sets the library's limits from the settings. May be called while other threads use
   the library. */
void sweep_configure(struct library *library, const struct settings *settings);

/* Removes some of the files that are too old at `now`. *ret_more: more are left, unless it fails.
   Files of a job that has not ended stay. */
bool sweep_round(struct library *library, const struct settings *settings, int64_t now,
                 bool *ret_more, struct api_problem *p);

/* Checks the library's blobs for so many bytes, if it is time to. Returns whether there
   is more to check now. */
bool sweep_scrub(struct library *library, uint64_t bytes, int64_t now_ms);

/* Returns the stored bytes that count towards the limit, those of the rows included. `counts` are
   the store's. Where the record is shared, or the blobs are in a bucket, what the rows name
   counts, and not the files in the folder. */
uint64_t sweep_counted(const struct library *library,
                       const struct store_counts *counts);

/* Logs that a round failed. */
void sweep_log_failure(struct library *library, const struct api_problem *problem);

#endif
