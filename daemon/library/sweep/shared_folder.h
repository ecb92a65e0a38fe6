/* SPDX-License-Identifier: Apache-2.0 */
/* A folder of blobs that several daemons use, which share the record. */
#ifndef QDQD_LIBRARY_SWEEP_SHARED_FOLDER_H
#define QDQD_LIBRARY_SWEEP_SHARED_FOLDER_H

#include "api/problem.h"

struct library;

/* Looks at the files of the folder, if it is time to, and removes those that no row has named for
   `grace` ms. */
bool shared_folder_sweep(struct library *library, int64_t grace, struct api_problem *p);
/* Counts the files again, if it is time to: other daemons add and remove some. */
bool shared_folder_recount(struct library *library, int64_t grace,
                           struct api_problem *p);

#endif
