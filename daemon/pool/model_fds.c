/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "pool/model_fds.h"
#include "api/grow.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

bool
model_fds_name(struct model_fds *files, const char *name, struct api_problem *p)
{
    const char *text = name ? name : "";
    size_t size = strlen(text) + 1;
    char *grown = api_grow(files->names, files->names_len, size, 1);
    if (!grown)
        return api_problem_no_memory(p);
    memcpy(grown + files->names_len, text, size);
    files->names = grown;
    files->names_len += size;
    return true;
}

static bool
open_several(struct library *library, const struct store_model_files *files,
             struct model_fds *ret, struct api_problem *p)
{
    if (files->n > 1 + API_MAX_EXTERNAL)
        return api_problem_set(p, API_INTERNAL, QDQ_AT_NOTHING, NULL,
                               "the record of the model has too many files");
    for (size_t i = 0; i < files->n; i++) {
        const struct store_model_file *file = &files->items[i];
        if (!blob_read(library_blobs(library), file->digest, &ret->fds[i], p))
            return false;
        ret->n++;
        if (i && !model_fds_name(ret, file->path, p))
            return false;
    }
    return true;
}

bool
model_fds_open(struct library *library, const char *id, struct model_fds *ret,
               struct api_problem *p)
{
    struct store_model_files files = {0};
    *ret = (struct model_fds){0};
    bool ok = store_model_files(library_store(library), id, &files, p);
    if (ok && files.n)
        ok = open_several(library, &files, ret, p);
    else if (ok && (ok = blob_read(library_blobs(library), id, &ret->fds[0], p)))
        ret->n = 1;
    store_model_files_fini(&files);
    if (!ok)
        model_fds_fini(ret);
    return ok;
}

void
model_fds_fini(struct model_fds *files)
{
    while (files->n)
        close(files->fds[--files->n]);
    free(files->names);
    files->names = NULL;
    files->names_len = 0;
}

void
model_fds_attach(const struct model_fds *files, struct message *message)
{
    message->fds[0] = files->fds[0];
    if (!message->n_fds)
        message->n_fds = 1;
    for (size_t i = 1; i < files->n; i++)
        message->fds[message->n_fds++] = files->fds[i];
    message->n_files = files->n - 1;
    message->names = files->names;
    message->names_len = files->names_len;
}
