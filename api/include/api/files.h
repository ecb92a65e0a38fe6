/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Models of several files on the wire: their id, the JSON that names stored files, and
 * the paths under which they lie beside each other. Encoders return text that the caller
 * frees, or NULL when out of memory.
 */
#ifndef API_FILES_H
#define API_FILES_H

#include "api/problem.h"

#define API_MAX_EXTERNAL 128 /* files beside the model */
#define API_MAX_PATH 1024    /* bytes of a path */

/* A file of a model. */
struct api_file {
    const char *path;
    const char *digest; /* "sha256:…" of its bytes */
    uint64_t size;
};

/*
 * What the id of a model of several files is the digest of:
 * {"files":[{"digest":…,"path":…,"size":…},…]}, sorted by path, without spaces.
 */
char *api_files_identity(const struct api_file *files, size_t n);

/* A file that a client names: by its path, and by the digest of what is stored. */
struct api_named_file {
    char *path, *digest;
};

struct api_named_files {
    size_t n; /* the model is the first */
    struct api_named_file items[1 + API_MAX_EXTERNAL];
};

/*
 * Reads {"files":[{"path","digest"},…]}. BAD_REQUEST and INVALID_JSON name the member by
 * JSON pointer; MISSING_PART, LIMIT_EXCEEDED. Digests are not looked at. The caller ends *ret.
 */
bool api_named_files_decode(const char *text, size_t len, struct api_named_files *ret,
                            struct api_problem *problem);
void api_named_files_fini(struct api_named_files *files);

/* Is this a path below a folder: UTF-8 without control characters, not absolute, without
   ".." and backslashes, and with a name at its end? */
bool api_path_is_inside(const char *path);
/* Takes "./" and doubled slashes out of it. */
void api_path_normalize(char *path);
/* What follows the last '/'. */
const char *api_path_base(const char *path);

/* A JSON array of strings, for what a worker says of paths. */
char *api_paths_encode(const char *const *paths, size_t n);
/* False when the text is no array of `n` strings, or there is no memory; else each string
   of `ret` is the caller's to free. */
bool api_paths_decode(const char *text, char **ret, size_t n);

#endif
