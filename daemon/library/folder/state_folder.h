/* SPDX-License-Identifier: Apache-2.0 */
/* The state folder itself: its permissions, its lock, and which record belongs to its
   blobs. */
#ifndef QDQD_LIBRARY_FOLDER_STATE_FOLDER_H
#define QDQD_LIBRARY_FOLDER_STATE_FOLDER_H

#include "api/problem.h"

#define FOLDER_DATABASE "qdqd.sqlite3"

struct store;

/* Opens the state folder and locks it for as long as the descriptor is open; makes the
   folder (mode 0700) when it does not exist. */
bool folder_open(const char *path, int *ret, struct api_problem *p);
/* Locks an open folder. The lock is that of the folder, not of a file in it that could
   be removed. */
bool folder_lock(int dir, const char *path, struct api_problem *p);

/* Checks before the database is opened that there is one, if there are blobs. */
bool folder_check_database(int dir, const char *path, bool has_blobs,
                           struct api_problem *p);
/*
 * Checks that the opened database is the one that the blobs belong to: the folder's
 * file `record` names it. Writes that file when it is absent and the database has rows
 * or there are no blobs, and always with `adopt`.
 */
bool folder_check_record(int dir, const char *path, struct store *store, bool has_blobs,
                         bool adopt, struct api_problem *p);

#endif
