/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The files that a command reads and writes. All calls return false with a problem that
 * names the file. They are for one thread only.
 */
#ifndef CLI_FILES_H
#define CLI_FILES_H

#include "api/digest.h"
#include "api/problem.h"

/* Opens a regular file for reading; *ret is a descriptor that the caller closes. */
bool file_open(const char *path, int *ret, struct api_problem *problem);

/*
 * Opens data, which is a file, a folder of images or a text. The tokenizer beside
 * the model makes ids of tokens of a text (.txt); `model` is the path of the model, or NULL where there
 * is none. The images of a folder (.jpg, .jpeg, .png, with .cls
 * beside them) and of its folders, one level down, are packed in the order of their names into a
 * file without a name in TMPDIR or /tmp; equal images give equal bytes. The caller closes *ret.
 */
bool data_open(const char *path, const char *model, int *ret,
               struct api_problem *problem);
/* Opens a file without a name in TMPDIR or /tmp. Returns -1 with errno. */
int file_open_unnamed(void);

/* Returns whether an open file is the one of that path. */
bool file_is(int fd, const char *path);
/* Sets the problem of errno with a file. Returns false. */
bool file_fail(const char *path, struct api_problem *problem);
/* Returns the path with the ending `by` in the place of `ending`, if it has that, or behind it.
   The caller frees it; NULL when out of memory. */
char *path_ending_in(const char *path, const char *ending, const char *by);

/* Renames a file in an open folder, or by paths in AT_FDCWD, unless something has the new name
   already, which is EEXIST. Returns false with errno. */
bool file_rename_new(int folder, const char *from, const char *to);

/* Computes the digest of bytes in memory. */
bool digest_bytes(const void *data, size_t len, char ret[DIGEST_SIZE],
                  struct api_problem *problem);
/* Computes the digest of the whole file, wherever the descriptor stands. */
bool digest_file(int fd, const char *path, char ret[DIGEST_SIZE],
                 struct api_problem *problem);

/* Reads a whole text of at most 16 MiB; "-" is standard input. The caller frees it. */
bool file_read(const char *path, char **ret, size_t *ret_len,
               struct api_problem *problem);

/*
 * A file that gets its name only when it is complete. Until output_commit() it has a
 * temporary name in the same folder, with ".tmp" in it. SIGINT, SIGTERM and SIGHUP remove
 * the temporary files and then end the process, as they do by default.
 */
struct output {
    char *path, *temporary; /* owned; NULL where there is none */
    int fd;                 /* readable and writable */
    bool is_synced;         /* nothing is written any more */
};
#define OUTPUT_NONE ((struct output){.fd = -1})

/* Opens a file of that path. NULL: none, for which *ret stays OUTPUT_NONE. */
bool output_open(const char *path, struct output *ret, struct api_problem *problem);
bool output_write(struct output *output, const char *text, struct api_problem *problem);
/* Copies all bytes of the file `from`. */
bool output_copy(struct output *output, int from, struct api_problem *problem);
/* Copies at most `size` bytes from offset `at` of the file. */
bool output_copy_part(struct output *output, int from, uint64_t at, uint64_t size,
                      struct api_problem *problem);
/* Has the disk begin to write the file, and does not wait. Without an open file it does
   nothing. */
void output_begin_sync(const struct output *output);
/* Drops the cached bytes of the file that the output will replace, which takes as long as it is
   large, while there is something else to wait for. */
void output_drop_replaced(const struct output *output);
/* Syncs the file, to which nothing is written any more. */
bool output_sync(struct output *output, struct api_problem *problem);
/* Syncs the file, unless that was done, and renames it into place. These do nothing for
   OUTPUT_NONE, and neither does output_write(). */
bool output_commit(struct output *output, struct api_problem *problem);
/* The same, but a file that is there already is EEXIST's problem and stays. */
bool output_commit_new(struct output *output, struct api_problem *problem);
/* Removes a file that was committed as new, where what goes with it fails. */
void output_take_back(const struct output *output);
/* Removes the file if it was not committed; accepts OUTPUT_NONE. */
void output_close(struct output *output);

/* --- reports ---------------------------------------------------------------- */

/* Returns the media type of a report that is written to a path, by its ending: .json, .md, or a
   page. */
const char *report_form(const char *path);
/* Reads a whole report, which the caller frees. */
bool report_read(const char *path, char **ret, size_t *ret_len,
                 struct api_problem *problem);
/* Makes the page of a report's JSON and commits it. */
bool page_write(const char *json, size_t len, struct output *to,
                struct api_problem *problem);

#endif
