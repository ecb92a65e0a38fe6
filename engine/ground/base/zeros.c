/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "ground/base/zeros.h"

#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

enum { LARGE = 4 << 20 }; /* bytes: at least one large page of x86-64 lies within */

void *
qdqi_zeros_new(size_t n, size_t size)
{
    void *all = calloc(n, size);
#ifdef MADV_HUGEPAGE
    size_t page = (size_t)sysconf(_SC_PAGESIZE), before = (uintptr_t)all % page;
    if (all && n * size >= LARGE) {
        before = before ? page - before : 0;
        /* Advice that the kernel does not take changes nothing. */
        (void)madvise((char *)all + before, (n * size - before) / page * page,
                      MADV_HUGEPAGE);
    }
#endif
    return all;
}
