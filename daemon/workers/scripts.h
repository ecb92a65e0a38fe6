/* SPDX-License-Identifier: Apache-2.0 */
/* What of an operator's decides on results, as something to compare: scripts, runtime. */
#ifndef QDQD_WORKERS_SCRIPTS_H
#define QDQD_WORKERS_SCRIPTS_H

#include "base/digest.h"
#include "api/problem.h"

/*
 * A digest of the names and contents of the *.lua files of `folder`: jobs that ran with
 * other scripts have other results. "" where there are none. IO, NO_MEMORY.
 */
bool scripts_digest(const char *folder, char ret[DIGEST_SIZE], struct api_problem *p);

#define RUNTIME_SIZE 64

/* Size and time of ONNX Runtime's library: an upgrade changes them. "" where there is no
   such file; what the system's search path finds is not looked for. */
void runtime_identity(const char *library, char ret[RUNTIME_SIZE]);

#endif
