/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "migrate_blobs.h"
#include "carriers/bucket.h"
#include "folders.h"
#include "library/blob.h"
#include "library/bucket/bucket.h"
#include "library/folder/state_folder.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* One state folder under way. */
struct upload {
    const struct bucket *bucket;
    const char *tenant;
    struct blobs *blobs;
    struct migrated_blobs *done;
    struct api_problem problem;
};

static void
upload_blob(void *arg, const char *id)
{
    struct upload *upload = arg;
    struct api_problem *p = &upload->problem;
    char key[BUCKET_KEY];
    struct stat st;
    bool was_there;
    int fd;
    if (p->set)
        return;
    if (!blob_read(upload->blobs, id, &fd, p)) {
        if (p->code == API_DAMAGED) {
            *p = (struct api_problem){0};
            upload->done->damaged++;
        }
        return;
    }
    snprintf(key, sizeof key, "%.100s/%.64s", *upload->tenant ? upload->tenant : "_",
             strchr(id, ':') + 1);
    if (fstat(fd, &st) != 0)
        api_problem_set(p, API_IO, QDQ_AT_NOTHING, NULL, "%s: %s", id, strerror(errno));
    else if (upload->bucket->put(upload->bucket->arg, key, fd, id, &was_there, p)) {
        upload->done->files++;
        upload->done->bytes += (uint64_t)st.st_size;
    }
    close(fd);
}

static bool
upload_folder(void *arg, const char *path, const char *tenant, struct api_problem *p)
{
    struct upload *upload = arg;
    int dir = -1;
    upload->tenant = tenant;
    bool ok = folder_open(path, &dir, p) && blobs_open(dir, &upload->blobs, p) &&
              blobs_each(upload->blobs, upload_blob, upload, p);
    if (ok && upload->problem.set) {
        *p = upload->problem;
        ok = false;
    }
    blobs_close(&upload->blobs);
    if (dir >= 0)
        close(dir);
    return ok;
}

bool
migrate_blobs(const struct settings *settings, const char *url,
              struct migrated_blobs *ret, struct api_problem *p)
{
    struct settings changed = *settings; /* borrows the texts */
    char *text = strdup(url), error[SETTINGS_ERROR];
    struct bucket_pool *pool = NULL;
    struct upload upload = {.done = ret};
    *ret = (struct migrated_blobs){0};
    if (!text)
        return api_problem_no_memory(p);
    changed.blobs_url = text;
    bool ok = bucket_check(&changed, error) ||
              api_problem_set(p, API_BAD_REQUEST, QDQ_AT_NOTHING, NULL, "%s", error);
    ok = ok && bucket_open(&changed, &pool, p);
    upload.bucket = bucket_calls(pool);
    ok = ok && folders_each(settings->state_dir, upload_folder, &upload, p);
    bucket_close(&pool);
    free(text);
    return ok;
}
