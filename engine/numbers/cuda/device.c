/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "numbers/cuda/device.h"

#include "ground/base/arena.h"

#include <dlfcn.h>
#include <stdlib.h>

struct qdqi_cuda {
    const struct qdqi_cuda_api *api;
    int n;
    struct qdqi_cuda_device *devices;
};

/* --- errors --------------------------------------------------------------- */

/* The error for each kind of failure. */
static const enum qdq_code codes[] = {
    [QDQI_CUDA_FINE] = QDQ_OK,
    [QDQI_CUDA_NO_DRIVER] = QDQ_NO_DRIVER,
    [QDQI_CUDA_OLD_DRIVER] = QDQ_OLD_DRIVER,
    [QDQI_CUDA_NO_DEVICE] = QDQ_NO_DEVICE,
    [QDQI_CUDA_LOST] = QDQ_DEVICE_LOST,
    [QDQI_CUDA_MEMORY] = QDQ_DEVICE_MEMORY,
    [QDQI_CUDA_OTHER] = QDQ_INTERNAL,
};

enum qdq_code
qdqi_cuda_check(const struct qdqi_cuda *cuda, int status, const char *what,
                struct qdq_error *err)
{
    enum qdqi_cuda_fault fault = cuda->api->fault(status);
    return fault == QDQI_CUDA_FINE
               ? QDQ_OK
               : qdq_error_set(err, codes[fault], QDQ_AT_NOTHING, NULL, "%s: %s", what,
                               cuda->api->text(status));
}

/* Sets the error when there are no devices: which of driver and device is missing. */
static enum qdq_code
no_devices(const struct qdqi_cuda_api *api, int status, struct qdq_error *err)
{
    int driver = 0, built = 0;
    api->versions(&driver, &built);
    switch (api->fault(status)) {
    case QDQI_CUDA_NO_DRIVER:
        return qdq_error_set(err, QDQ_NO_DRIVER, QDQ_AT_NOTHING, NULL,
                             "no NVIDIA driver is installed; one for CUDA %d is needed",
                             built / 1000);
    case QDQI_CUDA_OLD_DRIVER:
        return qdq_error_set(err, QDQ_OLD_DRIVER, QDQ_AT_NOTHING, NULL,
                             "the NVIDIA driver knows CUDA %d.%d at most; one for CUDA "
                             "%d is needed",
                             driver / 1000, driver % 1000 / 10, built / 1000);
    default:
        return qdq_error_set(err, QDQ_NO_DEVICE, QDQ_AT_NOTHING, NULL,
                             "no CUDA device can be used: %s",
                             status ? api->text(status) : "there is none");
    }
}

/* --- the module ----------------------------------------------------------- */

static enum qdq_code
load_module(const char *module, const struct qdqi_cuda_api **ret, struct qdq_error *err)
{
    void *library = dlopen(module, RTLD_NOW | RTLD_LOCAL);
    if (!library)
        return qdq_error_set(err, QDQ_NO_DEVICE, QDQ_AT_NOTHING, NULL,
                             "the CUDA module cannot be loaded: %s", dlerror());
    qdqi_cuda_entry *entry;
    *(void **)&entry = dlsym(library, QDQI_CUDA_ENTRY);
    const struct qdqi_cuda_api *api = entry ? entry() : NULL;
    if (!api || api->version != QDQI_CUDA_VERSION) {
        dlclose(library);
        return qdq_error_set(err, QDQ_NO_DEVICE, QDQ_AT_NOTHING, NULL,
                             "%s is not the CUDA module of this version", module);
    }
    *ret = api;
    return QDQ_OK;
}

static bool
is_usable(const struct qdqi_cuda_device *d)
{
    return d->major > QDQI_CUDA_MIN_MAJOR ||
           (d->major == QDQI_CUDA_MIN_MAJOR && d->minor >= QDQI_CUDA_MIN_MINOR);
}

static enum qdq_code
too_old(const struct qdqi_cuda_device *d, struct qdq_error *err)
{
    return qdq_error_set(err, QDQ_NO_DEVICE, QDQ_AT_NOTHING, NULL,
                         "no CUDA device can be used: '%s' has compute capability "
                         "%d.%d, %d.%d is needed",
                         d->name, d->major, d->minor, QDQI_CUDA_MIN_MAJOR,
                         QDQI_CUDA_MIN_MINOR);
}

static enum qdq_code
describe_devices(struct qdqi_cuda *cuda, struct qdq_error *err)
{
    bool any = false;
    for (int i = 0; i < cuda->n; i++) {
        int status = cuda->api->describe(i, &cuda->devices[i]);
        if (status)
            return qdqi_cuda_check(cuda, status, "asking for a CUDA device", err);
        any |= is_usable(&cuda->devices[i]);
    }
    return any ? QDQ_OK : too_old(&cuda->devices[0], err);
}

static enum qdq_code
find_devices(struct qdqi_cuda *cuda, struct qdq_error *err)
{
    int status = cuda->api->count(&cuda->n);
    if (status || cuda->n <= 0)
        return no_devices(cuda->api, status, err);
    cuda->devices = calloc((size_t)cuda->n, sizeof *cuda->devices);
    if (!cuda->devices)
        return qdqi_no_memory(err);
    return describe_devices(cuda, err);
}

enum qdq_code
qdqi_cuda_open(const char *module, struct qdqi_cuda **ret, struct qdq_error *err)
{
    struct qdqi_cuda *cuda = calloc(1, sizeof *cuda);
    if (!cuda)
        return qdqi_no_memory(err);
    enum qdq_code code = load_module(module, &cuda->api, err);
    if (!code)
        code = find_devices(cuda, err);
    if (code)
        qdqi_cuda_close(&cuda);
    else
        *ret = cuda;
    return code;
}

void
qdqi_cuda_close(struct qdqi_cuda **cuda)
{
    if (!cuda || !*cuda)
        return;
    free((*cuda)->devices);
    free(*cuda);
    *cuda = NULL;
}

/* --- devices -------------------------------------------------------------- */

const struct qdqi_cuda_api *
qdqi_cuda_functions(const struct qdqi_cuda *cuda)
{
    return cuda->api;
}

int
qdqi_cuda_count(const struct qdqi_cuda *cuda)
{
    return cuda->n;
}

const struct qdqi_cuda_device *
qdqi_cuda_device(const struct qdqi_cuda *cuda, int i)
{
    return &cuda->devices[i];
}

enum qdq_code
qdqi_cuda_use(const struct qdqi_cuda *cuda, int i, struct qdq_error *err)
{
    if (i < 0 || i >= cuda->n)
        return qdq_error_set(err, QDQ_NO_DEVICE, QDQ_AT_NOTHING, NULL,
                             "there is no CUDA device %d; %d %s here", i, cuda->n,
                             cuda->n == 1 ? "is" : "are");
    if (!is_usable(&cuda->devices[i]))
        return too_old(&cuda->devices[i], err);
    return qdqi_cuda_check(cuda, cuda->api->use(i), cuda->devices[i].name, err);
}
