/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Files of results that are synced later, many at once. Their bytes are in the record until then
 * (store/unsynced.h), so that no end of a job waits for them.
 */
#ifndef QDQD_LIBRARY_LATE_SYNC_H
#define QDQD_LIBRARY_LATE_SYNC_H

#include "library/library_inner.h"
#include "store/unsynced.h"

enum { LATE_MOST = 4 };

struct late_files {
    size_t n;
    struct store_text files[LATE_MOST];
};

/*
 * Chooses the files of a result that are synced later, and reads them. The first spool is the
 * model, and all spools that are stored are known. A result whose model is new, or that has
 * another large file, waits for its files: *ret is then empty.
 */
void late_choose(struct library *library, struct spool **const *spools, size_t n,
                 struct late_files *ret);
/* Counts those whose rows were added, and frees what was read. */
void late_added(struct library *library, struct late_files *files, bool were_added);
/* Writes the files again that a crash has lost, when the library is opened. */
bool late_restore(struct library *library, struct api_problem *p);

#endif
