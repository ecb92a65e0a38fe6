/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The mark of the place where the blobs of a shared record are: the URL of a bucket, or a random
 * text in the file .place of the folder blobs/, which daemons may share. The record keeps the mark of
 * the first daemon. One with other files would fail jobs of which it has no files.
 */
#include "config.h"
#include "library/inner.h"
#include "store/nodes.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#define PLACE ".place"
#define NEW_PLACE ".place-%016" PRIx64

/* Reads the mark of the folder; "" when it has none. */
static bool
read_place(int dir, char ret[STORE_PLACE], struct api_problem *p)
{
    ret[0] = '\0';
    int fd = openat(dir, PLACE, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return errno == ENOENT ||
               blobs_fail(p, "reading the mark of the blobs' folder");
    ssize_t n = read(fd, ret, STORE_PLACE - 1);
    close(fd);
    ret[n > 0 ? n : 0] = '\0';
    return n > 0 || blobs_fail(p, "reading the mark of the blobs' folder");
}

/* Gives the folder a mark, unless another daemon does so at the same time. The file has its name when
   it is whole. */
static bool
make_place(int dir, struct api_problem *p)
{
    uint64_t number;
    char name[40], text[STORE_PLACE];
    if (getrandom(&number, sizeof number, 0) != sizeof number)
        return blobs_fail(p, "choosing a mark");
    snprintf(name, sizeof name, NEW_PLACE, number);
    size_t len = (size_t)snprintf(text, sizeof text, "folder-%016" PRIx64, number);
    int fd = openat(dir, name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    bool ok = fd >= 0 && write(fd, text, len) == (ssize_t)len && fsync(fd) == 0 &&
              (linkat(dir, name, dir, PLACE, 0) == 0 || errno == EEXIST) &&
              fsync(dir) == 0;
    if (!ok)
        blobs_fail(p, "writing the mark of the blobs' folder");
    if (fd >= 0) {
        close(fd);
        (void)unlinkat(dir, name, 0);
    }
    return ok;
}

static bool
refuse(const char *path, const char *bucket_url, const char *kept,
       struct api_problem *p)
{
    bool in_bucket = !strncmp(kept, "s3:", 3);
    return api_problem_set(p, API_IO, QDQ_AT_NOTHING, NULL,
                           "store.url: the files of this record are in %s, and not in "
                           "%s%s. Daemons that share a "
                           "record share its files, too: in a bucket (blobs.url), or "
                           "in one folder (blobs)",
                           in_bucket ? kept : "another folder",
                           bucket_url ? bucket_url : path, bucket_url ? "" : "/blobs");
}

bool
library_check_place(struct library *library, const char *path, const char *bucket_url,
                    struct api_problem *p)
{
    char folder[STORE_PLACE], mine[STORE_PLACE], kept[STORE_PLACE];
    int dir = library->blobs->dir;
    if (!store_is_shared(library->store))
        return true;
    if (!read_place(dir, folder, p) ||
        (!*folder && !bucket_url &&
         (!make_place(dir, p) || !read_place(dir, folder, p))))
        return false;
    /* A folder whose files went to the bucket hands its record over. */
    snprintf(mine, sizeof mine, "%s", bucket_url ? bucket_url : folder);
    for (size_t n = strlen(mine); n && mine[n - 1] == '/';)
        mine[--n] = '\0';
    return store_place_keep(library->store, mine, *folder ? folder : NULL, kept, p) &&
           (!strcmp(kept, mine) || refuse(path, bucket_url, kept, p));
}
