/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The place of a pulled file below the folder of the pull. Each part of its name is opened in
 * the folder before it and never through a link, so that a file gets nowhere else, whatever
 * lies in the folder and whoever changes it meanwhile. Until it is published, the file has a
 * hidden name beside its place. Calls return false with a problem that names the place.
 */
#ifndef CLI_PULL_PLACE_H
#define CLI_PULL_PLACE_H

#include "remote/remote.h"

struct place {
    char *path;   /* for messages; owned, as are the next three */
    char *name;   /* its last part */
    char *hidden; /* the name of `fd` while it is under way */
    int folder;   /* the folder of both names; -1: none */
    int fd;       /* the file, readable, and writable while it is under way; -1: none */
    bool is_complete; /* the place has the wanted bytes, and `fd` is that file */
};
#define PLACE_NONE ((struct place){.folder = -1, .fd = -1})

/* Checks that no part of a name that a remote lists begins with a dot: such files change what
   programs do in a folder. */
bool place_check_name(const char *name, struct api_problem *problem);
/*
 * Opens the folder of the file, which is made when it is absent, and then the file under its
 * hidden name, which depends on `key`. `file` has the size and the digest that are known. A link, or something else that is no file, in the place is IO, and so are other
 * bytes unless `force` is set. The caller closes the place, also after a failure.
 */
bool place_open(int root, const char *path, const struct qdqr_file *file,
                const char *key, bool force, struct place *ret,
                struct api_problem *problem);
/* Gives the file its name. A file that is there is left alone where its bytes have `digest`,
   and replaced with `force`. *ret_new says whether nothing was there. */
bool place_publish(struct place *place, const char *digest, bool force, bool *ret_new,
                   struct api_problem *problem);
/* Gives a file that was published back its hidden name. */
void place_take_back(const struct place *place);
/* Removes the hidden file. */
void place_discard(const struct place *place);
void place_close(struct place *place);

#endif
