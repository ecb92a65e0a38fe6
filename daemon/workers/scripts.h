/* SPDX-License-Identifier: Apache-2.0 */
/* Identities of the operator's scripts and of ONNX Runtime, both of which affect
   results. */
#ifndef QDQD_WORKERS_SCRIPTS_H
#define QDQD_WORKERS_SCRIPTS_H

#include "api/digest.h"
#include "api/problem.h"

/* Computes a digest of the names and contents of the *.lua files in `folder`: other
   scripts may give other results. "" when there are none. IO, NO_MEMORY. */
bool scripts_digest(const char *folder, char ret[DIGEST_SIZE], struct api_problem *p);

#define RUNTIME_SIZE 64

/* Writes size and time of ONNX Runtime's library, which an upgrade changes. "" when
   there is no such file; a library on the system's search path is not searched for. */
void runtime_identity(const char *library, char ret[RUNTIME_SIZE]);

#endif
