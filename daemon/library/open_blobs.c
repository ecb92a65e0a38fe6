/* SPDX-License-Identifier: Apache-2.0 */
/* The begin and the end of the blobs in a state folder. */
#include "config.h"
#include "base/log.h"
#include "library/inner.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

static int
open_folder(int dir, const char *name)
{
    if (mkdirat(dir, name, 0700) && errno != EEXIST)
        return -1;
    return openat(dir, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
}

/* Makes the 256 folders once, so that a commit never has to. */
static bool
make_folders(int dir)
{
    for (unsigned i = 0; i < 256; i++) {
        char name[4];
        snprintf(name, sizeof name, "%02x", i);
        if (mkdirat(dir, name, 0700) && errno != EEXIST)
            return false;
    }
    return fsync(dir) == 0;
}

static bool
sweep_tmp(int tmp)
{
    size_t n = 0;
    DIR *stream = blobs_open_stream(tmp, ".");
    if (!stream)
        return false;
    for (struct dirent *entry; (entry = readdir(stream));)
        if (entry->d_name[0] != '.')
            n += unlinkat(tmp, entry->d_name, 0) == 0;
    closedir(stream);
    if (n)
        log_info("unfinished_removed", "files=%zu", n);
    return true;
}

bool
blobs_open(int dir, struct blobs **ret, struct api_problem *p)
{
    struct blobs *blobs = calloc(1, sizeof *blobs);
    if (!blobs)
        return api_problem_no_memory(p);
    blobs->ops = &blobs_in_folder;
    blobs->scrub.fd = -1;
    lock_init(&blobs->naming, LOCK_NAMING);
    blobs->dir = open_folder(dir, "blobs");
    blobs->tmp = open_folder(dir, "tmp");
    blobs->damaged = open_folder(dir, "damaged");
    if (!blobs_verified_open(blobs)) {
        blobs_close(&blobs);
        return api_problem_no_memory(p);
    }
    if (blobs->dir < 0 || blobs->tmp < 0 || blobs->damaged < 0 ||
        !make_folders(blobs->dir) || !sweep_tmp(blobs->tmp) ||
        !blobs_recount(blobs, p)) {
        blobs_fail(p, "the state folder");
        blobs_close(&blobs);
        return false;
    }
    *ret = blobs;
    return true;
}

void
blobs_close(struct blobs **blobs)
{
    if (!*blobs)
        return;
    if ((*blobs)->ops->close)
        (*blobs)->ops->close(*blobs);
    if ((*blobs)->dir >= 0)
        close((*blobs)->dir);
    if ((*blobs)->tmp >= 0)
        close((*blobs)->tmp);
    if ((*blobs)->damaged >= 0)
        close((*blobs)->damaged);
    blobs_scrub_stop(&(*blobs)->scrub);
    free((*blobs)->verified);
    lock_fini(&(*blobs)->naming);
    free(*blobs);
    *blobs = NULL;
}
