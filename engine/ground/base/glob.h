/* SPDX-License-Identifier: Apache-2.0 */
#ifndef QDQI_GROUND_BASE_GLOB_H
#define QDQI_GROUND_BASE_GLOB_H

#include <stdbool.h>

enum { QDQI_MAX_GLOB = 1024 }; /* bytes of a pattern; callers refuse longer ones */

/*
 * Returns whether a whole text matches a pattern, in which `*` matches any text, `?`
 * any one byte, and every other byte itself. Takes at most as many steps as the product
 * of both lengths.
 */
bool qdqi_glob(const char *pattern, const char *text);

#endif
