/* SPDX-License-Identifier: Apache-2.0 */
/* Copies of a database and the blobs that they name. A daemon may use the database
   meanwhile. */
#ifndef QDQD_STORE_BACKUP_H
#define QDQD_STORE_BACKUP_H

#include "api/problem.h"

/*
 * The columns that refer to blobs, and the schemas of SQLite that have them: NAMES(since, until,
 * "sql"). Names of tables have a mark before them, as in sql.h, where BLOB_NEEDED reads the same
 * columns. PostgreSQL has those whose `until` is INT_MAX. The id of a model of several files is not
 * a blob's id.
 */
/* clang-format off */
#define IS_ONE_FILE(id) "NOT EXISTS (SELECT 1 FROM @model_files WHERE model = " id ")"
#define BLOB_NAMES(NAMES)                                                             \
    NAMES(1, 5, "SELECT id FROM @files")                                              \
    NAMES(1, 5, "SELECT result_model FROM @jobs WHERE result_model IS NOT NULL")      \
    NAMES(6, INT_MAX, "SELECT id FROM @files WHERE kind != 0 OR " IS_ONE_FILE("files.id")) \
    NAMES(6, INT_MAX, "SELECT result_model FROM @jobs WHERE result_model IS NOT NULL" \
                      " AND " IS_ONE_FILE("result_model"))                            \
    NAMES(6, INT_MAX, "SELECT digest FROM @model_files")                              \
    NAMES(1, INT_MAX, "SELECT report FROM @jobs WHERE report IS NOT NULL")            \
    NAMES(2, INT_MAX, "SELECT frozen FROM @jobs WHERE frozen IS NOT NULL")            \
    NAMES(3, INT_MAX, "SELECT blob FROM @observations")
/* clang-format on */

/*
 * Writes the contents of the database at `from`, as of one moment, to `to`. An existing
 * `to` is replaced. The copy is durable when this returns. Writers of the database do
 * not wait for it.
 */
bool store_backup_copy(const char *from, const char *to, struct api_problem *p);

/* Checks that the database at `path` is whole and that this version knows its
   schema. No process uses it meanwhile. */
bool store_backup_check(const char *path, struct api_problem *p);

/*
 * Calls `fn` once with the id of every blob that the copy at `path` names, until `fn`
 * returns false. Then this returns false too, with the problem that `fn` has set.
 */
bool store_backup_each(const char *path,
                       bool (*fn)(void *arg, const char *id, struct api_problem *p),
                       void *arg, struct api_problem *p);

/* Does the same with each blob whose bytes, a text, the copy has itself, because its file may
   not be on the disk (store/unsynced.h). */
bool store_backup_texts(const char *path,
                        bool (*fn)(void *arg, const char *id, const char *text,
                                   struct api_problem *p),
                        void *arg, struct api_problem *p);

#endif
