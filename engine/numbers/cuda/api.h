/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The interface of the CUDA module: one table of functions, found under one name. The
 * module and libqdq are built together; the version keeps a module of another build
 * apart.
 *
 * Every int that is returned is 0 or a status that fault() and text() explain. Calls
 * work on the calling thread's current device, see use().
 */
#ifndef QDQI_NUMBERS_CUDA_API_H
#define QDQI_NUMBERS_CUDA_API_H

#include "numbers/cuda/kernels.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Increases with every change of the table or of the types that it refers to. */
enum { QDQI_CUDA_VERSION = 6 };

/* The kinds of failures, by what the caller can do about them. */
enum qdqi_cuda_fault {
    QDQI_CUDA_FINE = 0,
    QDQI_CUDA_NO_DRIVER,  /* install a driver */
    QDQI_CUDA_OLD_DRIVER, /* install a newer driver */
    QDQI_CUDA_NO_DEVICE,  /* there is none, none may be used, or all are too old */
    QDQI_CUDA_LOST,       /* the process must end; a new one may succeed */
    QDQI_CUDA_MEMORY,     /* ask for less memory */
    QDQI_CUDA_OTHER,      /* an error in the program */
};

struct qdqi_cuda_device {
    char name[128];
    int major, minor; /* compute capability */
    int multiprocessors;
    uint64_t memory; /* bytes */
};

enum { QDQI_CUDA_MIN_MAJOR = 7, QDQI_CUDA_MIN_MINOR = 5 };

struct qdqi_cuda_api {
    uint32_t version;
    /* True in tests that run without a device: the device's memory is the host's,
       and models run on the CPU. */
    bool is_host;

    enum qdqi_cuda_fault (*fault)(int status);
    const char *(*text)(int status);

    /*
     * Sets two versions of CUDA, as 1000 * major + 10 * minor: the newest that the
     * driver supports (0: there is no driver), and the one that the module was built
     * with.
     */
    int (*versions)(int *driver, int *built);
    int (*count)(int *n);
    int (*describe)(int device, struct qdqi_cuda_device *ret);
    /* Initializes a device and makes it the calling thread's current one. */
    int (*use)(int device);

    /* Allocate and free memory of the device, and pinned memory of the host. */
    int (*alloc)(size_t bytes, void **ret);
    int (*release)(void *memory);
    int (*alloc_host)(size_t bytes, void **ret);
    int (*release_host)(void *memory);

    int (*stream_open)(void **ret);
    int (*stream_close)(void *stream);
    /* Waits for the stream. Also returns errors of the queued work. */
    int (*stream_wait)(void *stream);

    /* These queue their work. Host memory must stay valid until the stream was
       waited for. */
    int (*upload)(void *device, const void *host, size_t bytes, void *stream);
    int (*download)(void *host, const void *device, size_t bytes, void *stream);
    int (*copy)(void *to, const void *from, size_t bytes, void *stream);
    int (*clear)(void *memory, size_t bytes, void *stream); /* to zeros */

    /* An event marks a place in a stream. Other streams can wait for it, and the
       time between two events can be measured. */
    int (*event_open)(void **ret);
    int (*event_close)(void *event);
    int (*event_record)(void *event, void *stream);
    int (*event_await)(void *event, void *stream);
    int (*event_wait)(void *event); /* blocks the calling thread */
    int (*event_seconds)(void *from, void *to, double *ret);

    /* The kernels of kernels.h. */
    int (*extremes_init)(struct qdqi_extremes *e, size_t n, void *stream);
    int (*extremes_update)(int type, const void *data, size_t n,
                           struct qdqi_extremes *e, void *stream);
    int (*extremes_each)(int type, const void *data, size_t n, size_t samples,
                         struct qdqi_extremes *e, void *stream);
    int (*histogram_init)(struct qdqi_cuda_histogram *h, size_t n, void *stream);
    int (*histogram_update)(int type, const void *data, size_t n,
                            struct qdqi_cuda_histogram *h, void *stream);
    int (*histogram_continue)(int type, const void *data, size_t n,
                              struct qdqi_cuda_histogram *h, void *stream);
    int (*histogram_extremes)(const struct qdqi_cuda_histogram *h, size_t n,
                              struct qdqi_extremes *ret, void *stream);
    int (*fake)(int type, const struct qdqi_grid *grid, const void *in, void *out,
                void *stream);
    size_t (*sums_workspace)(void);
    int (*sums_init)(struct qdqi_noise *s, size_t n, void *stream);
    int (*sums_update)(int type, const void *f, const void *q, size_t n,
                       struct qdqi_noise *s, void *workspace, void *stream);
    int (*moment_gather)(const struct qdqi_cuda_window *w,
                         const struct qdqi_cuda_moment *m,
                         const struct qdqi_cuda_rows *rows, void *stream);
    int (*moment_add)(const struct qdqi_cuda_moment *m, size_t n, void *stream);
};

/* The module's one symbol: a function of this type. */
#define QDQI_CUDA_ENTRY "qdqi_cuda_module"
typedef const struct qdqi_cuda_api *qdqi_cuda_entry(void);

#ifdef __cplusplus
}
#endif

#endif
