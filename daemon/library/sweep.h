/* SPDX-License-Identifier: Apache-2.0 */
/* Expiry and eviction: removes files that are older than the settings allow, or that
   there is no room for. */
#ifndef QDQD_LIBRARY_SWEEP_H
#define QDQD_LIBRARY_SWEEP_H

#include "library/library.h"

struct settings;

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

/* Looks at the next page of the objects of a library in a bucket, if it is time to, and removes
   objects that no row has named for `grace` ms. *ret_more: there is another page. */
bool bucket_sweep_page(struct library *library, int64_t grace, bool *ret_more,
                       struct api_problem *p);

/* Does the same with the files of a library whose record is shared and whose blobs are in the
   folder. */
bool folder_sweep(struct library *library, int64_t grace, struct api_problem *p);

/* Counts that folder's files again, if it is time to: other daemons add and remove some. */
bool folder_recount(struct library *library, int64_t grace, struct api_problem *p);

/* Returns the stored bytes that count towards the limit, those of the rows included. `counts` are
   the store's. Where the record is shared, or the blobs are in a bucket, what the rows name
   counts, and not the files in the folder. */
uint64_t sweep_counted(const struct library *library,
                       const struct store_counts *counts);

/* Logs that a round failed. */
void sweep_log_failure(struct library *library, const struct api_problem *problem);

#endif
