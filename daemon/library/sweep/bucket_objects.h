/* SPDX-License-Identifier: Apache-2.0 */
#ifndef QDQD_LIBRARY_SWEEP_BUCKET_OBJECTS_H
#define QDQD_LIBRARY_SWEEP_BUCKET_OBJECTS_H

#include "api/problem.h"

struct library;

/* Looks at the next page of the objects of a library in a bucket, if it is time to, and removes
   objects that no row has named for `grace` ms. *ret_more: there is another page. */
bool bucket_objects_sweep(struct library *library, int64_t grace, bool *ret_more,
                          struct api_problem *p);

#endif
