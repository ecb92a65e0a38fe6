/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Models of several files in requests and answers: their id, the JSON that names stored
 * files, and the relative paths of the files. Encoders return text that the caller
 * frees, or NULL when out of memory.
 */
#ifndef API_FILES_H
#define API_FILES_H

#include "api/problem.h"

#define API_MAX_EXTERNAL 128 /* largest number of files beside the model */
#define API_MAX_PATH 1024    /* largest length of a path in bytes */

/* A file of a model. */
struct api_file {
    const char *path;
    const char *digest; /* "sha256:…" of its bytes */
    uint64_t size;
};

/* Returns the text whose digest is the id of a model of several files:
   {"files":[{"digest":…,"path":…,"size":…},…]}, sorted by path, without spaces. */
char *api_files_identity(const struct api_file *files, size_t n);

/* Returns the files in the order of their paths; the caller frees the list. NULL: there is no
   memory. */
const struct api_file **api_files_sort(const struct api_file *files, size_t n);

/* A file that a client names: its path, and the digest of stored bytes. */
struct api_named_file {
    char *path, *digest;
};

struct api_named_files {
    size_t n; /* number of files, of which the first is the model */
    struct api_named_file items[1 + API_MAX_EXTERNAL];
};

/*
 * Decodes {"files":[{"path","digest"},…]}. BAD_REQUEST and INVALID_JSON name the member
 * by a JSON pointer; the other errors are MISSING_PART and LIMIT_EXCEEDED. Digests are
 * not checked. The caller frees *ret.
 */
bool api_named_files_decode(const char *text, size_t len, struct api_named_files *ret,
                            struct api_problem *problem);
void api_named_files_fini(struct api_named_files *files);

/* Returns whether this is a path below a folder: UTF-8 without control characters,
   not absolute, without ".." and backslashes, and with a name at its end. */
bool api_path_is_inside(const char *path);
/* Removes "./" and repeated slashes from the path. */
void api_path_normalize(char *path);
/* Returns the part behind the last '/'. */
const char *api_path_base(const char *path);
/* Returns whether the path ends so, behind at least one character. */
bool api_path_has_ending(const char *path, const char *ending);

/* Encodes the paths as a JSON array of strings, the form in which a worker sends
   them. */
char *api_paths_encode(const char *const *paths, size_t n);
/* Decodes such an array. Returns false when the text is no array of `n` strings or
   memory runs out; else the caller frees each string of `ret`. */
bool api_paths_decode(const char *text, char **ret, size_t n);

#endif
