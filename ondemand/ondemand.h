/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Functions of a library that is loaded when the first of them is called. libcurl, libzip,
 * libarchive, libjpeg, libpng, libsnappy and libzstd need some forty other libraries, and loading
 * them takes longer than a small command; libpcre2-8 and libutf8proc are for texts alone. So qdq and
 * libqdq are not linked with them: the files of this folder define their
 * functions, and each definition calls the one in the library. The daemon is linked with the
 * libraries, because a worker could not open them in its cage.
 *
 * Where a library cannot be loaded, its functions return failures, and errno is ELIBACC.
 */
#ifndef ONDEMAND_ONDEMAND_H
#define ONDEMAND_ONDEMAND_H

#include <stdatomic.h>

/* Returns the address of a library's function, which is looked up once and then kept at *at.
   NULL: the library cannot be loaded, or lacks it. Any thread may call it. */
void *ondemand_symbol(_Atomic(void *) *at, const char *library, const char *name);

/* Declares `call`, the library's function of the name `name`. */
#define ON_DEMAND_CALL(library, name)   \
    static _Atomic(void *) ondemand_at; \
    __typeof__(name) *call;             \
    *(void **)&call = ondemand_symbol(&ondemand_at, library, #name)

/* Defines a function that returns what the library's returns, or `failure`. */
#define ON_DEMAND(library, type, failure, name, parameters, arguments) \
    type name parameters                                               \
    {                                                                  \
        ON_DEMAND_CALL(library, name);                                 \
        return call ? call arguments : (failure);                      \
    }

/* The same for a function that returns nothing. */
#define ON_DEMAND_VOID(library, name, parameters, arguments) \
    void name parameters                                     \
    {                                                        \
        ON_DEMAND_CALL(library, name);                       \
        if (call)                                            \
            call arguments;                                  \
    }

#endif
