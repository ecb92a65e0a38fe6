/* SPDX-License-Identifier: Apache-2.0 */
/* Identities of the operator's scripts and of the runtimes, both of which affect
   results. */
#ifndef QDQD_WORKERS_SCRIPTS_H
#define QDQD_WORKERS_SCRIPTS_H

#include "api/digest.h"
#include "api/problem.h"

struct settings;

/* Computes a digest of the names and contents of the *.lua files in `folder`: other
   scripts may give other results. "" when there are none. IO, NO_MEMORY. */
bool scripts_digest(const char *folder, char ret[DIGEST_SIZE], struct api_problem *p);

#define RUNTIME_SIZE 128

/* Writes size and time of the libraries of ONNX Runtime and of the runtimes that judge in processes
   of their own, which an upgrade changes. "" for each when there is no such file; a library on the
   system's search path is not searched for. Without the others the text is that of versions that
   had none. */
void runtime_identity(const struct settings *settings, char ret[RUNTIME_SIZE]);

#endif
