/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The state folder: STATE/qdqd.sqlite3, STATE/blobs, STATE/tmp, and STATE/lock, which
 * keeps a second daemon out. Here rows and blobs are made to agree: what adds or
 * removes both runs under one lock. A crash in between leaves at worst a blob without a
 * row, which the next library_open() removes.
 *
 * Any thread may call. The order of locks: base/locks.h.
 */
#ifndef QDQD_LIBRARY_LIBRARY_H
#define QDQD_LIBRARY_LIBRARY_H

#include "library/blob.h"
#include "store/store.h"

struct library;

/* Makes the folder (0700) when absent. */
bool library_open(const char *path, struct library **ret, struct api_problem *p);
void library_close(struct library **library);

/* Whose it is, for the log: "" is nobody's, who is "-" there. Borrowed; to be said before
   other threads call. */
void library_name(struct library *library, const char *tenant);
const char *library_tenant(const struct library *library);
/* Both borrowed. */
struct store *library_store(struct library *library);
struct blobs *library_blobs(struct library *library);

/*
 * Stores a finished spool, which is consumed on success. *ret describes what is stored
 * (the caller ends it); *ret_new: false when it was there already. `info`: of a
 * dataset, or NULL.
 */
bool library_add(struct library *library, enum store_kind kind, struct spool **spool,
                 const char *info, struct store_file *ret, bool *ret_new,
                 struct api_problem *p);
/* A file of a model: what came in, or else what is stored already. */
struct library_part {
    struct spool **spool; /* finished; NULL: the blob `digest` is there */
    char digest[DIGEST_SIZE];
    char *path;
    uint64_t size;
};

/* Stores a model of several files under its id; the spools are consumed on success.
   NOT_FOUND: a blob is not there any more. MODEL_CONFLICT: the same files are stored with
   another of them as the model. */
bool library_add_model(struct library *library, const char *id,
                       const struct library_part *parts, size_t n,
                       struct store_file *ret, bool *ret_new, struct api_problem *p);
/* With it goes what was observed of a model, or with a dataset. */
bool library_remove(struct library *library, enum store_kind kind, const char *id,
                    struct api_problem *p);

/* What the model is called of a result of several files. */
#define LIBRARY_RESULT_NAME "model.onnx"

/* What a job made: finished spools, which are consumed when they are stored. */
struct job_result {
    struct spool **model, **report, **frozen;
    struct spool **data;   /* of the model, in a file of its own; NULL: none */
    const char *data_path; /* that the model names */
    const char *summary;   /* JSON */
};

/*
 * Stores what a job made, and its row: as succeeded, or with an error as failed. If it was
 * not running any more (cancelled), the result is dropped; see *ret.
 */
bool library_job_end(struct library *library, const char *id,
                     const struct job_result *result, const struct api_problem *error,
                     struct store_ended *ret, struct api_problem *p);
bool library_job_remove(struct library *library, const char *id, struct api_problem *p);

/* --- observations --------------------------------------------------------- */

/*
 * Fills an empty spool with what is kept under a key, and *ret_id with its blob's id: ""
 * where there is nothing, or it is not what it was.
 */
bool library_observations_get(struct library *library, const char *key,
                              struct spool *spool, char ret_id[DIGEST_SIZE],
                              struct api_problem *p);
/*
 * Keeps a finished spool, which is consumed on success, under row->key; blob and size are
 * not read. What was used least recently goes, as far as there are more than `bytes` in
 * all.
 */
bool library_observations_keep(struct library *library,
                               const struct store_observations *row,
                               struct spool **spool, int64_t bytes,
                               struct api_problem *p);
/* Removes what is more than `bytes`. */
bool library_observations_trim(struct library *library, int64_t bytes,
                               struct api_problem *p);

#endif
