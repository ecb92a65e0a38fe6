/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The bytes of small files of results, kept in the record while the files themselves may not be
 * on the disk yet. So the end of a job waits for the record alone, and many such files are
 * synced at once later. A start after a crash writes the files from these rows. Only a record
 * of one daemon has them.
 */
#ifndef QDQD_STORE_UNSYNCED_H
#define QDQD_STORE_UNSYNCED_H

#include "store/store.h"

/* A file's id and its bytes, which are a text. */
struct store_text {
    char id[DIGEST_SIZE];
    char *text;
};

/* Adds a row, as a part of a transaction. The caller holds the store's lock. */
bool store_unsynced_add(struct store *store, const struct store_text *text,
                        struct api_problem *p);
/* Returns the number of the newest row in *ret; 0: there is none. */
bool store_unsynced_newest(struct store *store, int64_t *ret, struct api_problem *p);
/* Reads the first row after row *seq, and sets *seq to its number. *ret_any is false when
   there is none. The caller frees *ret_text. */
bool store_unsynced_next(struct store *store, int64_t *seq, char ret_id[DIGEST_SIZE],
                         char **ret_text, bool *ret_any, struct api_problem *p);
/* Removes the rows up to one. Their files must be durable. */
bool store_unsynced_drop(struct store *store, int64_t upto, struct api_problem *p);

#endif
