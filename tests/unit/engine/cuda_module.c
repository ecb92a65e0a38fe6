/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A CUDA module without CUDA, whose devices and mishaps the environment decides:
 *   FAKE_CUDA_VERSION   by how much the version of its table is off (0)
 *   FAKE_CUDA_DRIVER    that is installed, as CUDA counts (13000); 0: none
 *   FAKE_CUDA_DEVICES   compute capabilities ("9.0")
 *   FAKE_CUDA_STATUS    what count() returns
 */
#include "config.h"

#include "numbers/cuda/api.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *
setting(const char *name, const char *otherwise)
{
    const char *value = getenv(name);
    return value ? value : otherwise;
}

static long
number(const char *name, const char *otherwise)
{
    return strtol(setting(name, otherwise), NULL, 10);
}

/* Returns the fault of a status, which is its number. */
static enum qdqi_cuda_fault
fault(int status)
{
    return (enum qdqi_cuda_fault)status;
}

static const char *
text(int status)
{
    return status == QDQI_CUDA_LOST ? "fell off the bus" : "broken";
}

static int
versions(int *driver, int *built)
{
    *driver = (int)number("FAKE_CUDA_DRIVER", "13000");
    *built = 13000;
    return 0;
}

static int
count(int *n)
{
    *n = 0;
    for (const char *s = setting("FAKE_CUDA_DEVICES", "9.0"); *s; s++)
        *n += *s == '.';
    return (int)number("FAKE_CUDA_STATUS", "0");
}

static int
describe(int device, struct qdqi_cuda_device *ret)
{
    const char *s = setting("FAKE_CUDA_DEVICES", "9.0");
    memset(ret, 0, sizeof *ret);
    snprintf(ret->name, sizeof ret->name, "Fake %d", device);
    for (; device > 0; device--)
        s = strchr(s, ' ') + 1;
    ret->major = (int)strtol(s, NULL, 10);
    ret->minor = (int)strtol(strchr(s, '.') + 1, NULL, 10);
    return 0;
}

static int
use(int device)
{
    return device == 2 ? QDQI_CUDA_MEMORY : 0;
}

const struct qdqi_cuda_api *qdqi_cuda_module(void);

__attribute__((visibility("default"))) const struct qdqi_cuda_api *
qdqi_cuda_module(void)
{
    static struct qdqi_cuda_api api = {
        .fault = fault,
        .text = text,
        .versions = versions,
        .count = count,
        .describe = describe,
        .use = use,
    };
    api.version = (uint32_t)(QDQI_CUDA_VERSION + number("FAKE_CUDA_VERSION", "0"));
    return &api;
}
