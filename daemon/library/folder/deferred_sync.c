/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Files of results whose sync is deferred until there are many. Their bytes are in the record until
 * then (store/unsynced.h), so that no end of a job waits for them.
 */
#include "config.h"
#include "library/inner.h"
#include "base/log.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { MOST_BYTES = 16 << 10, SYNC_FILES = 256 };

/* --- the end of a job ------------------------------------------------------- */

/* Reads a small file. Returns NULL when it is not small, or no text, or cannot be read: then
   it is synced at once. free() frees the text. */
static char *
read_text(const struct spool *spool)
{
    uint64_t size = spool_size(spool);
    char *text = size && size <= MOST_BYTES ? malloc((size_t)size + 1) : NULL;
    if (!text)
        return NULL;
    text[size] = '\0';
    if (pread(spool_fd(spool), text, (size_t)size, 0) == (ssize_t)size &&
        strlen(text) == size)
        return text;
    free(text);
    return NULL;
}

static void
free_texts(struct deferred_files *files)
{
    while (files->n)
        free(files->files[--files->n].text);
}

void
deferred_choose(struct library *library, struct incoming *incoming)
{
    struct deferred_files *ret = incoming->deferred;
    struct spool ***spools = incoming->spools;
    *ret = (struct deferred_files){0};
    if (store_is_shared(library->store) || incoming->n > DEFERRED_MOST ||
        !spool_is_stored(*spools[0]))
        return;
    for (size_t i = 1; i < incoming->n; i++) {
        if (spool_is_stored(*spools[i]))
            continue;
        char *text = read_text(*spools[i]);
        if (!text) {
            free_texts(ret);
            return;
        }
        struct store_text *file = &ret->files[ret->n++];
        snprintf(file->id, sizeof file->id, "%s", spool_id(*spools[i]));
        file->text = text;
    }
    for (size_t i = 1; i < incoming->n; i++)
        spool_set_deferred(*spools[i]);
}

void
deferred_added(struct library *library, struct deferred_files *files, bool were_added)
{
    if (were_added)
        library->unsynced += (int)files->n;
    free_texts(files);
}

/* --- syncing ---------------------------------------------------------------- */

/* A file has its name before its row is added, so those of the rows that there are now get
   synced. */
static bool
sync_all(struct library *library, struct api_problem *p)
{
    int64_t newest;
    int n = library->unsynced;
    if (!store_unsynced_newest(library->store, &newest, p))
        return false;
    if (!newest)
        return true;
    if (!blobs_sync_all(library->blobs, p) ||
        !store_unsynced_drop(library->store, newest, p))
        return false;
    library->unsynced -= n;
    return true;
}

void
library_sync_many(struct library *library)
{
    if (library->unsynced >= SYNC_FILES)
        library_sync_deferred(library);
}

void
library_sync_deferred(struct library *library)
{
    struct api_problem problem = {0};
    char quoted[LOG_QUOTED];
    if (library->unsynced <= 0 || atomic_exchange(&library->is_syncing, true))
        return;
    if (!sync_all(library, &problem))
        log_error("deferred_sync_failed", "detail=%s",
                  log_quote(quoted, problem.detail));
    atomic_store(&library->is_syncing, false);
}

/* --- after a crash ---------------------------------------------------------- */

/* Returns whether the blob has these bytes. */
static bool
is_there(struct library *library, const char *id, const char *text)
{
    char chunk[MOST_BYTES];
    struct api_problem ignored = {0};
    size_t size = strlen(text);
    int fd;
    if (!blob_open(library->blobs, id, &fd, &ignored))
        return false;
    ssize_t n = pread(fd, chunk, sizeof chunk, 0);
    close(fd);
    return n == (ssize_t)size && memcmp(chunk, text, size) == 0;
}

static bool
write_again(struct library *library, const char *id, const char *text,
            struct api_problem *p)
{
    struct spool *spool = NULL;
    bool ok = spool_open(library->blobs, &spool, p) &&
              spool_write(spool, text, strlen(text), p) && spool_finish(spool, p);
    if (ok)
        spool_set_replace(spool);
    ok = ok && spool_commit(&spool, p);
    spool_discard(&spool);
    if (ok)
        log_info("file_restored", "id=%s tenant=%s", id, library_tenant(library));
    return ok;
}

/* The rows stay until the next sync: a file may have its bytes and not be on the disk. */
bool
deferred_restore(struct library *library, struct api_problem *p)
{
    bool ok = true, any = true;
    for (int64_t seq = 0; ok && any; library->unsynced += any) {
        char id[DIGEST_SIZE], *text = NULL;
        ok = store_unsynced_next(library->store, &seq, id, &text, &any, p);
        if (ok && any && store_needs_blob(library->store, id) &&
            !is_there(library, id, text))
            ok = write_again(library, id, text, p);
        free(text);
    }
    return ok;
}
