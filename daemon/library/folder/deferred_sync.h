/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Files of results whose sync is deferred until there are many. Their bytes are in the record until then
 * (store/unsynced.h), so that no end of a job waits for them.
 */
#ifndef QDQD_LIBRARY_FOLDER_DEFERRED_SYNC_H
#define QDQD_LIBRARY_FOLDER_DEFERRED_SYNC_H

#include "library/inner.h"
#include "store/unsynced.h"

enum { DEFERRED_MOST = 4 };

struct deferred_files {
    size_t n;
    struct store_text files[DEFERRED_MOST];
};

/*
 * Chooses the files of a result whose sync is deferred, and reads them into incoming->deferred.
 * The first spool is the model, and all spools that are stored are known. A result whose model is
 * new, or that has another large file, waits for its files: none is then chosen.
 */
void deferred_choose(struct library *library, struct incoming *incoming);
/* Counts those whose rows were added, and frees what was read. */
void deferred_added(struct library *library, struct deferred_files *files,
                    bool were_added);
/* Writes the files again that a crash has lost, when the library is opened. */
bool deferred_restore(struct library *library, struct api_problem *p);

#endif
