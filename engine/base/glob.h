/* SPDX-License-Identifier: Apache-2.0 */
#ifndef QDQI_BASE_GLOB_H
#define QDQI_BASE_GLOB_H

#include <stdbool.h>

enum { QDQI_MAX_GLOB = 1024 }; /* bytes of a pattern; callers refuse longer ones */

/* Whether a whole text fits a pattern, in which `*` stands for any text, `?` for any one
   byte, and all else for itself. Needs at most the product of both lengths in steps. */
bool qdqi_glob(const char *pattern, const char *text);

#endif
