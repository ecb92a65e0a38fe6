/* SPDX-License-Identifier: Apache-2.0 */
/* The operator's folder of scripts, as something to compare. */
#ifndef QDQD_SCRIPTS_H
#define QDQD_SCRIPTS_H

#include "digest.h"
#include "api/problem.h"

/*
 * A digest of the names and contents of the *.lua files of `folder`: jobs that ran with
 * other scripts have other results. "" where there are none. IO, NO_MEMORY.
 */
bool scripts_digest(const char *folder, char ret[DIGEST_SIZE], struct api_problem *p);

#endif
