/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The state folder: STATE/qdqd.sqlite3, STATE/blobs, STATE/tmp, and STATE/lock, which
 * keeps a second daemon out. Here rows and blobs are made to agree: what adds or
 * removes both runs under one lock. A crash in between leaves at worst a blob without a
 * row, which the next library_open() removes.
 *
 * Any thread may call. Order of locks: library before store.
 */
#ifndef QDQD_LIBRARY_H
#define QDQD_LIBRARY_H

#include "blob.h"
#include "store.h"

struct library;

/* Makes the folder (0700) when absent. */
bool library_open(const char *path, struct library **ret, struct api_problem *p);
void library_close(struct library **library);

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
bool library_remove(struct library *library, enum store_kind kind, const char *id,
                    struct api_problem *p);

/*
 * Stores the finished spools of a job that ran, and its row as succeeded. *ret_was is
 * false when it was not running any more (cancelled): then they are dropped.
 */
bool library_job_succeed(struct library *library, const char *id, struct spool **model,
                         struct spool **report, const char *summary, bool *ret_was,
                         struct api_problem *p);
bool library_job_remove(struct library *library, const char *id, struct api_problem *p);

#endif
