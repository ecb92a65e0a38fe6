/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "run/session/runtime.h"

#include "run/operators/device_memory.h"
#include "run/session/provider.h"

#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

/* Returns the end of a function's signature: the first closed bracket that a space follows. */
static const char *
end_of_signature(const char *at)
{
    for (int depth = 0; *at; at++) {
        depth += (*at == '(') - (*at == ')');
        if (*at == ')' && depth == 0 && at[1] == ' ')
            return strncmp(at + 1, " const ", 7) == 0 ? at + 8 : at + 2;
    }
    return at;
}

/* Returns what follows a place in the runtime's source, "/path/file.cc:12 type name(types) ";
   `at` where there is none. */
static const char *
skip_place(const char *at)
{
    const size_t path = strcspn(at, " :"), number = strspn(at + path + 1, "0123456789");
    if (*at != '/' || at[path] != ':' || number == 0 || at[path + 1 + number] != ' ')
        return at;
    const char *end = end_of_signature(at + path + 1 + number);
    return *end ? end : at;
}

/* Copies a message without the places in the runtime's source that it names, and without a
   full stop at its end. */
static void
copy_message(const char *from, char *to, size_t size)
{
    size_t n = 0;
    bool begins = true; /* a word */
    while (*from && n + 1 < size) {
        const char *next = begins ? skip_place(from) : from;
        begins = next != from || *from == ' ';
        if (next == from)
            to[n++] = *from++;
        else
            from = next;
    }
    while (n > 0 && strchr(" .\n", to[n - 1]))
        n--;
    to[n] = '\0';
}

enum qdq_code
qdqi_runtime_check(const struct qdqi_runtime *r, OrtStatus *status, const char *what,
                   struct qdq_error *err)
{
    if (!status)
        return QDQ_OK;
    char text[sizeof err->text];
    copy_message(r->api->GetErrorMessage(status), text, sizeof text);
    enum qdq_code code =
        qdq_error_set(err, QDQ_RUN_FAILED, QDQ_AT_NOTHING, NULL, "%s: %s", what, text);
    r->api->ReleaseStatus(status);
    return code;
}

/* Discards the runtime's log: a library does not log, and errors come back as
   statuses. */
static void ORT_API_CALL
drop_log(void *arg, OrtLoggingLevel severity, const char *category, const char *logid,
         const char *location, const char *message)
{
    (void)arg;
    (void)severity;
    (void)category;
    (void)logid;
    (void)location;
    (void)message;
}

/*
 * Disables the telemetry of ONNX Runtime. From version 1.31 on the Linux library writes
 * a machine identifier below ~/.cache when it starts and sends reports to its makers,
 * unless this environment variable was set before.
 */
static void
forbid_telemetry(void)
{
    setenv("ORT_DISABLE_TELEMETRY", "1", 1);
}

static enum qdq_code
load_api(struct qdqi_runtime *r, const char *library, struct qdq_error *err)
{
    forbid_telemetry();
    r->library = dlopen(library, RTLD_NOW | RTLD_LOCAL);
    if (!r->library)
        return qdq_error_set(err, QDQ_RUNTIME_MISSING, QDQ_AT_NOTHING, NULL,
                             "ONNX Runtime cannot be loaded: %s", dlerror());
    const OrtApiBase *(*get_base)(void);
    *(void **)&get_base = dlsym(r->library, "OrtGetApiBase");
    const OrtApiBase *base = get_base ? get_base() : NULL;
    r->api = base ? base->GetApi(ORT_API_VERSION) : NULL;
    if (!r->api)
        return qdq_error_set(err, QDQ_RUNTIME_MISSING, QDQ_AT_NOTHING, NULL,
                             "%s is no ONNX Runtime of version 1.%d or later", library,
                             ORT_API_VERSION);
    r->version = base->GetVersionString();
    return QDQ_OK;
}

/* Creates the environment with one thread pool that all sessions share, because many
   may be open at the same time. Its threads sleep between their tasks: by default they look for
   the next one in a loop, while this process compares, or another runtime works. */
static OrtStatus *
create_env(struct qdqi_runtime *r, int threads)
{
    const OrtApi *api = r->api;
    OrtThreadingOptions *o;
    OrtStatus *status = api->CreateThreadingOptions(&o);
    if (status)
        return status;
    if (!(status = api->SetGlobalIntraOpNumThreads(o, threads)) &&
        !(status = api->SetGlobalInterOpNumThreads(o, 1)) &&
        !(status = api->SetGlobalSpinControl(o, 0)))
        status = api->CreateEnvWithCustomLoggerAndGlobalThreadPools(
            drop_log, NULL, ORT_LOGGING_LEVEL_FATAL, "qdq", o, &r->env);
    api->ReleaseThreadingOptions(o);
    return status;
}

enum qdq_code
qdqi_runtime_open(const char *library, int threads, struct qdqi_runtime **ret,
                  struct qdq_error *err)
{
    struct qdqi_runtime *r = calloc(1, sizeof *r);
    if (!r)
        return qdqi_no_memory(err);
    r->threads = threads;
    enum qdq_code code = load_api(r, library, err);
    if (!code)
        code =
            qdqi_runtime_check(r, create_env(r, threads), "starting ONNX Runtime", err);
    if (!code)
        code = qdqi_runtime_check(r,
                                  r->api->CreateCpuMemoryInfo(
                                      OrtArenaAllocator, OrtMemTypeDefault, &r->memory),
                                  "starting ONNX Runtime", err);
    if (!code)
        code = qdqi_runtime_check(
            r, r->api->CreateAndRegisterAllocator(r->env, r->memory, NULL),
            "starting ONNX Runtime", err);
    if (code)
        qdqi_runtime_close(&r);
    else
        *ret = r;
    return code;
}

void
qdqi_runtime_close(struct qdqi_runtime **runtime)
{
    if (!runtime || !*runtime)
        return;
    struct qdqi_runtime *r = *runtime;
    if (r->memory)
        r->api->ReleaseMemoryInfo(r->memory);
    if (r->env)
        r->api->ReleaseEnv(r->env);
    /* The library is not closed with dlclose(): it leaves thread-local data behind. */
    free(r);
    *runtime = NULL;
}

const char *
qdqi_runtime_version(const struct qdqi_runtime *r)
{
    return r->version;
}

void
qdqi_runtime_begin_use(struct qdqi_runtime *r)
{
    atomic_store(&r->use.bytes, 0);
    atomic_store(&r->use.threads, 0);
}

struct qdqi_run_use
qdqi_runtime_use(const struct qdqi_runtime *r)
{
    return (struct qdqi_run_use){.bytes = atomic_load(&r->use.bytes),
                                 .threads = atomic_load(&r->use.threads)};
}

enum qdq_code
qdqi_runtime_try_device(const struct qdqi_runtime *r, int device, struct qdq_error *err)
{
    const struct qdqi_device dev = {.device = device, .runs_models = true};
    OrtSessionOptions *o = NULL;
    OrtStatus *status = r->api->CreateSessionOptions(&o);
    if (!status)
        status = qdqi_provider_append(&qdqi_cuda_provider, r->api, o, &dev);
    if (o)
        r->api->ReleaseSessionOptions(o);
    struct qdq_error why = {0};
    if (!qdqi_runtime_check(r, status, "its CUDA provider", &why))
        return QDQ_OK;
    return qdq_error_set(err, QDQ_NO_DEVICE, QDQ_AT_NOTHING, NULL,
                         "this ONNX Runtime (%s) runs no models on a GPU, as that of "
                         "the package onnxruntime-gpu does: %s",
                         r->version, why.text);
}
