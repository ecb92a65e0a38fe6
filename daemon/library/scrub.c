/* SPDX-License-Identifier: Apache-2.0 */
/* The check of all blobs in the background. */
#include "config.h"
#include "library/inner.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#define CHUNK (64u << 10)

void
blobs_scrub_stop(struct scrub *scrub)
{
    if (scrub->fd >= 0)
        close(scrub->fd);
    scrub->fd = -1;
    digest_free(&scrub->digest);
}

/* Finds the first name of a folder that is after `name`; "" when there is none. */
static bool
next_in_folder(struct blobs *blobs, unsigned folder, const char *name,
               char ret[NAME_SIZE])
{
    char path[4], found[NAME_SIZE];
    snprintf(path, sizeof path, "%02x", folder);
    DIR *stream = blobs_open_stream(blobs->dir, path);
    ret[0] = '\0';
    if (!stream)
        return false;
    for (struct dirent *entry; (entry = readdir(stream));) {
        if (strlen(entry->d_name) != DIGEST_SIZE - 1 - strlen("sha256:"))
            continue;
        snprintf(found, sizeof found, "%s/%.80s", path, entry->d_name);
        if (strcmp(found, name) > 0 && (!*ret || strcmp(found, ret) < 0))
            snprintf(ret, NAME_SIZE, "%s", found);
    }
    closedir(stream);
    return true;
}

/* Opens the blob after the last one; none is open on return where all were read. */
static bool
open_next(struct blobs *blobs, struct scrub *scrub, struct api_problem *p)
{
    char next[NAME_SIZE] = "";
    unsigned folder = (unsigned)strtoul(scrub->name, NULL, 16);
    for (; folder < 256 && !*next; folder++)
        if (!next_in_folder(blobs, folder, scrub->name, next))
            return blobs_fail(p, "reading the blobs' folder");
    snprintf(scrub->name, sizeof scrub->name, "%s", next);
    scrub->at = 0;
    if (!*next)
        return true;
    scrub->digest = digest_new();
    if (!scrub->digest)
        return api_problem_no_memory(p);
    scrub->fd = openat(blobs->dir, next, O_RDONLY | O_CLOEXEC);
    if (scrub->fd >= 0 || errno == ENOENT)
        return true; /* one that was removed meanwhile is passed over */
    return blobs_fail(p, "opening a blob");
}

static bool
finish_blob(struct blobs *blobs, struct scrub *scrub, struct api_problem *p)
{
    char id[NAME_SIZE + 8], found[DIGEST_SIZE];
    struct api_problem told = {0};
    snprintf(id, sizeof id, "sha256:%s", scrub->name + 3);
    bool ok = digest_finish(scrub->digest, found) || api_problem_no_memory(p);
    if (ok)
        (void)blobs_judge_file(blobs, id, scrub->fd, !strcmp(id, found), &told);
    blobs_scrub_stop(scrub);
    return ok;
}

bool
blobs_scrub(struct blobs *blobs, uint64_t bytes, bool *ret_done, struct api_problem *p)
{
    struct scrub *scrub = &blobs->scrub;
    char *chunk = malloc(CHUNK);
    bool ok = chunk || api_problem_no_memory(p);
    *ret_done = false;
    for (uint64_t left = bytes; ok && left && !*ret_done;) {
        if (scrub->fd < 0) {
            blobs_scrub_stop(scrub);
            ok = open_next(blobs, scrub, p);
            *ret_done = ok && !*scrub->name;
            left--;
            continue;
        }
        size_t size = left < CHUNK ? (size_t)left : CHUNK;
        ssize_t n = blobs_hash_chunk(scrub->fd, scrub->at, chunk, size, scrub->digest);
        if (n < 0)
            ok = blobs_fail(p, "reading a blob");
        else if (n == 0)
            ok = finish_blob(blobs, scrub, p);
        scrub->at += n > 0 ? (uint64_t)n : 0;
        blobs->scrubbed += n > 0 ? (uint64_t)n : 0;
        left -= n > 0 ? (uint64_t)n : 0;
    }
    if (!ok)
        blobs_scrub_stop(scrub);
    free(chunk);
    return ok;
}
