/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The state folder: STATE/qdqd.sqlite3, STATE/blobs, STATE/tmp, and STATE/lock, which
 * keeps a second daemon out. This file keeps rows and blobs consistent: calls that add
 * or remove both hold one lock. A crash in between leaves at worst a blob without a
 * row, which the next library_open() removes.
 *
 * Any thread may call. The order of locks: base/locks.h.
 */
#ifndef QDQD_LIBRARY_LIBRARY_H
#define QDQD_LIBRARY_LIBRARY_H

#include "library/blob.h"
#include "store/store.h"

struct library;

/* Opens the folder and creates it (mode 0700) when it is absent. */
bool library_open(const char *path, struct library **ret, struct api_problem *p);
void library_close(struct library **library);

/* Sets the tenant's name for the log: "" is the tenant without a name, which the log
   shows as "-". Borrowed; called before other threads use the library. */
void library_name(struct library *library, const char *tenant);
const char *library_tenant(const struct library *library);
/* Both are borrowed. */
struct store *library_store(struct library *library);
struct blobs *library_blobs(struct library *library);

/*
 * Stores a finished spool, which is consumed on success. *ret describes the stored
 * file; the caller ends it. *ret_new is false when the file was stored already. `info`
 * belongs to a dataset, or is NULL.
 */
bool library_add(struct library *library, enum store_kind kind, struct spool **spool,
                 const char *info, struct store_file *ret, bool *ret_new,
                 struct api_problem *p);
/* A file of a model: a spool that came in, or a blob that is stored already. */
struct library_part {
    struct spool **spool; /* finished; NULL: the blob `digest` is stored */
    char digest[DIGEST_SIZE];
    char *path;
    uint64_t size;
};

/*
 * Stores a model of several files under its id; the spools are consumed on success.
 * NOT_FOUND when a blob is not stored any more. MODEL_CONFLICT when the same files are
 * stored with another of them as the model.
 */
bool library_add_model(struct library *library, const char *id,
                       const struct library_part *parts, size_t n,
                       struct store_file *ret, bool *ret_new, struct api_problem *p);
/* Removes a file, and the observations of a model or with a dataset. */
bool library_remove(struct library *library, enum store_kind kind, const char *id,
                    struct api_problem *p);

/* The name of the model file in a result of several files. */
#define LIBRARY_RESULT_NAME "model.onnx"

/* The files that a job made: finished spools, which are consumed when they are
   stored. */
struct job_result {
    struct spool **model, **report, **frozen;
    /* the model's external data in a file of its own; NULL: none */
    struct spool **data;
    const char *data_path; /* the path by which the model names that file */
    const char *summary;   /* JSON */
};

/*
 * Stores the files that a job made, and ends its row: as succeeded, or as failed when
 * there is an error. The files are dropped when the job was not running any more
 * (cancelled); see *ret.
 */
bool library_job_end(struct library *library, const char *id,
                     const struct job_result *result, const struct api_problem *error,
                     struct store_ended *ret, struct api_problem *p);
bool library_job_remove(struct library *library, const char *id, struct api_problem *p);

/* --- observations --------------------------------------------------------- */

/* Fills an empty spool with the observations of a key, and *ret_id with their blob's
   id. *ret_id is "" when there are none or the blob is damaged. */
bool library_observations_get(struct library *library, const char *key,
                              struct spool *spool, char ret_id[DIGEST_SIZE],
                              struct api_problem *p);
/*
 * Keeps a finished spool, which is consumed on success, under row->key; blob and size
 * are not read. Removes the least recently used observations until no more than `bytes`
 * are left.
 */
bool library_observations_keep(struct library *library,
                               const struct store_observations *row,
                               struct spool **spool, int64_t bytes,
                               struct api_problem *p);
/* Removes observations until no more than `bytes` are left. */
bool library_observations_trim(struct library *library, int64_t bytes,
                               struct api_problem *p);

#endif
