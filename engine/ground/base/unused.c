/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "ground/base/unused.h"

#include <features.h>

#ifdef __GLIBC__
#include <malloc.h>

enum { LARGE = 128 << 10 }; /* bytes; the C library begins with this, and raises it */

void
qdqi_keep_little_unused(void)
{
    (void)!mallopt(M_ARENA_MAX, 1);
    (void)!mallopt(M_MMAP_THRESHOLD, LARGE);
    (void)!mallopt(M_TRIM_THRESHOLD, LARGE);
}

void
qdqi_release_unused(void)
{
    (void)!malloc_trim(0);
}
#else
void
qdqi_keep_little_unused(void)
{
}

void
qdqi_release_unused(void)
{
}
#endif
