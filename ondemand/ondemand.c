/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "ondemand.h"

#include <dlfcn.h>
#include <errno.h>

void *
ondemand_symbol(_Atomic(void *) *at, const char *library, const char *name)
{
    void *symbol = atomic_load_explicit(at, memory_order_acquire);
    if (symbol)
        return symbol;
    /* The library stays loaded until the process ends. */
    void *handle = dlopen(library, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
    if (handle) {
        symbol = dlsym(handle, name);
        dlclose(handle);
    }
    if (!symbol)
        errno = ELIBACC;
    atomic_store_explicit(at, symbol, memory_order_release);
    return symbol;
}
