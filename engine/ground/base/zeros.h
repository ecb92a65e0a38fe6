/* SPDX-License-Identifier: Apache-2.0 */
/* Large arrays of zeros. */
#ifndef QDQI_GROUND_BASE_ZEROS_H
#define QDQI_GROUND_BASE_ZEROS_H

#include <stddef.h>

/* Allocates as calloc() does; free() frees it. A large array lies in large pages where the
   kernel has some: its first use and the search for its addresses take less time. */
void *qdqi_zeros_new(size_t n, size_t size);

#endif
