/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The interface of the CUDA module: one table of functions, found under one name. The
 * module and libqdq are built together; the version keeps a module of another build
 * apart.
 *
 * Every int that is returned is 0 or a status that fault() and text() explain. Calls
 * work on the calling thread's current device, see use().
 */
#ifndef QDQI_CUDA_API_H
#define QDQI_CUDA_API_H

#include "cuda/kernels.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Goes up with every change of the table or of what it points to. */
enum { QDQI_CUDA_VERSION = 2 };

/* The caller's options after a status. */
enum qdqi_cuda_fault {
    QDQI_CUDA_FINE = 0,
    QDQI_CUDA_NO_DRIVER,  /* install one */
    QDQI_CUDA_OLD_DRIVER, /* install a newer one */
    QDQI_CUDA_NO_DEVICE,  /* none there, none that may be used, or too old for us */
    QDQI_CUDA_LOST,       /* end the process and try again in a new one */
    QDQI_CUDA_MEMORY,     /* ask for less */
    QDQI_CUDA_OTHER,      /* a bug */
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
    /*
     * The device's memory is the host's, and models run on the CPU beside it: for tests,
     * of all that a device takes but the device.
     */
    bool is_host;

    enum qdqi_cuda_fault (*fault)(int status);
    const char *(*text)(int status);

    /* Versions of CUDA, 1000 * major + 10 * minor: the newest that the driver knows (0:
       no driver), and the one the module was built with. */
    int (*versions)(int *driver, int *built);
    int (*count)(int *n);
    int (*describe)(int device, struct qdqi_cuda_device *ret);
    /* Makes a device the calling thread's, and ready. */
    int (*use)(int device);

    /* Memory of the device; of the host, pinned. */
    int (*alloc)(size_t bytes, void **ret);
    int (*release)(void *memory);
    int (*alloc_host)(size_t bytes, void **ret);
    int (*release_host)(void *memory);

    int (*stream_open)(void **ret);
    int (*stream_close)(void *stream);
    /* Waits; returns what went wrong in the work that was queued, too. */
    int (*stream_wait)(void *stream);

    /* Queue; host memory must stay until the stream was waited for. */
    int (*upload)(void *device, const void *host, size_t bytes, void *stream);
    int (*download)(void *host, const void *device, size_t bytes, void *stream);
    int (*copy)(void *to, const void *from, size_t bytes, void *stream);

    /* Marks a place in a stream: other streams wait for it, and time is measured. */
    int (*event_open)(void **ret);
    int (*event_close)(void *event);
    int (*event_record)(void *event, void *stream);
    int (*event_await)(void *event, void *stream);
    int (*event_wait)(void *event); /* the calling thread does */
    int (*event_seconds)(void *from, void *to, double *ret);

    /* kernels.h */
    int (*extremes_init)(struct qdqi_extremes *e, size_t n, void *stream);
    int (*extremes_update)(int type, const void *data, size_t n,
                           struct qdqi_extremes *e, void *stream);
    int (*histogram_init)(struct qdqi_cuda_histogram *h, size_t n, void *stream);
    int (*histogram_update)(int type, const void *data, size_t n,
                            struct qdqi_cuda_histogram *h, void *stream);
    int (*fake)(int type, const struct qdqi_grid *grid, const void *in, void *out,
                void *stream);
    size_t (*sums_workspace)(void);
    int (*sums_init)(struct qdqi_error_sums *s, size_t n, void *stream);
    int (*sums_update)(int type, const void *f, const void *q, size_t n,
                       struct qdqi_error_sums *s, void *workspace, void *stream);
};

/* The module's one symbol: a function of this type. */
#define QDQI_CUDA_ENTRY "qdqi_cuda_module"
typedef const struct qdqi_cuda_api *qdqi_cuda_entry(void);

#ifdef __cplusplus
}
#endif

#endif
