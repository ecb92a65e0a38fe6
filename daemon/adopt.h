/* SPDX-License-Identifier: Apache-2.0 */
/* qdqd --adopt: stored files whose database is lost become blobs of a new one. */
#ifndef QDQD_ADOPT_H
#define QDQD_ADOPT_H

#include "api/problem.h"

#include <stdint.h>

/* Adopts the files of a state folder and those of its tenants. *ret_n is their
   number. */
bool adopt_state(const char *state, uint64_t *ret_n, struct api_problem *p);

#endif
