/* SPDX-License-Identifier: Apache-2.0 */
/* ONNX Runtime as the runtime that judges: plain sessions, as anyone opens one. */
#include "config.h"
#include "libraries.h"
#include "runtimes/onnxruntime/onnxruntime.h"

#include "ground/base/seconds.h"
#include "files/data/file.h"
#include "qdq/quantize.h"

#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

struct place {
    struct qdqi_runtime *runtime;
    bool is_own; /* the runtime is closed with the place */
    const struct qdqi_provider *provider;
};

enum qdq_code
qdqi_onnxruntime_start(const struct qdqi_deploy_ops *ops,
                       const struct qdqi_deploy_start *from, void **ret,
                       struct qdq_error *err)
{
    struct place *p = malloc(sizeof *p);
    if (!p)
        return qdqi_no_memory(err);
    *p = (struct place){from->runtime, !from->runtime, ops->provider};
    enum qdq_code code =
        p->is_own ? qdqi_runtime_open(from->library, from->threads, &p->runtime, err)
                  : QDQ_OK;
    if (code)
        free(p);
    else
        *ret = p;
    return code;
}

void
qdqi_onnxruntime_end(void *place)
{
    struct place *p = place;
    if (p->is_own)
        qdqi_runtime_close(&p->runtime);
    free(p);
}

struct qdqi_runtime *
qdqi_onnxruntime_library(const void *place)
{
    return ((const struct place *)place)->runtime;
}

const char *
qdqi_onnxruntime_version(void *place)
{
    return qdqi_runtime_version(qdqi_onnxruntime_library(place));
}

static enum qdq_code
open_session(void *place, const struct qdq_model *model,
             const struct qdqi_deploy_options *options, const char *trace,
             struct qdqi_session **ret, struct qdq_error *err)
{
    const struct place *p = place;
    const struct qdqi_session_options plain = {
        .plain = options->threads == 0 && !options->literal,
        .dev = p->is_own ? options->dev : NULL, /* another provider is its own device */
        .provider = p->provider,
        .threads = options->threads,
        .optimized = trace ? NULL : options->optimized,
        .trace = trace};
    return qdqi_session_open(p->runtime, model, model->proto, &plain, ret, err);
}

enum qdq_code
qdqi_onnxruntime_open(void *place, const struct qdq_model *model,
                      const struct qdqi_deploy_options *options, void **ret,
                      struct qdq_error *err)
{
    struct qdqi_session *session = NULL;
    enum qdq_code code = open_session(place, model, options, NULL, &session, err);
    *ret = session;
    return code;
}

enum qdq_code
qdqi_onnxruntime_run(void *model, const struct qdqi_input *inputs, size_t n_inputs,
                     const struct qdqi_output **ret, size_t *ret_n, double *ret_ms,
                     struct qdq_error *err)
{
    double start = qdqi_seconds_now();
    enum qdq_code code = qdqi_session_run(model, inputs, n_inputs, ret, ret_n, err);
    *ret_ms = (qdqi_seconds_now() - start) * 1e3;
    return code;
}

const char *
qdqi_onnxruntime_precision(void *model)
{
    (void)model;
    return "f32";
}

void
qdqi_onnxruntime_close(void *model)
{
    struct qdqi_session *session = model;
    qdqi_session_close(&session);
}

/* --- the profiler --------------------------------------------------------- */

/* A model that is run with the profiler. */
struct tracing {
    void *place;
    const struct qdq_model *model;
    const struct qdqi_deploy_options *options;
    const struct qdqi_input *inputs;
    size_t n_inputs;
    int runs;
    struct qdqi_arena *arena;
    void **stays; /* is set to the session; NULL: it is closed */
};

/* Reads the whole file as text. Returns NULL when it is empty or cannot be read. */
static char *
read_text(int fd, struct qdqi_arena *arena)
{
    struct stat st;
    char *text = NULL;
    size_t got = 0;
    if (fstat(fd, &st) == 0 && st.st_size > 0)
        text = qdqi_arena_alloc(arena, (size_t)st.st_size + 1);
    if (text && qdqi_file_read(fd, 0, text, (size_t)st.st_size, &got))
        text = NULL;
    return text;
}

/*
 * Runs the model with the profiler, which writes to a file whose name begins with
 * `prefix`. *ret_text is NULL when there is no file. `fd` is the file that a caged process
 * writes instead; -1: there is none.
 */
static enum qdq_code
trace_to(const struct tracing *t, const char *prefix, int fd, char **ret_text,
         struct qdq_error *err)
{
    char path[PATH_MAX];
    struct qdqi_session *session = NULL;
    const struct qdqi_output *outputs;
    size_t n;
    enum qdq_code code =
        open_session(t->place, t->model, t->options, prefix, &session, err);
    for (int i = 0; !code && i < t->runs; i++)
        code = qdqi_session_run(session, t->inputs, t->n_inputs, &outputs, &n, err);
    if (!code)
        code = qdqi_session_end_trace(session, path, sizeof path, err);
    if (t->stays && !code)
        *t->stays = session;
    else
        qdqi_session_close(&session);
    if (code)
        return code;
    int file = fd >= 0 ? fd : open(path, O_RDONLY | O_CLOEXEC);
    if (file >= 0)
        *ret_text = read_text(file, t->arena);
    if (fd < 0) {
        unlink(path);
        if (file >= 0)
            close(file);
    }
    return QDQ_OK;
}

/* Traces the model in a process that can make folders. */
static enum qdq_code
trace_in_folder(const struct tracing *t, const char *folder, char **ret_text,
                struct qdq_error *err)
{
    char prefix[PATH_MAX];
    snprintf(prefix, sizeof prefix, "%.4000s/run", folder);
    return trace_to(t, prefix, -1, ret_text, err);
}

/*
 * Traces the model in a process that opens no paths. The runtime adds the time to the
 * path, and the worker's cage answers such a path with the descriptor that it names.
 */
static enum qdq_code
trace_in_buffer(const struct tracing *t, char **ret_text, struct qdq_error *err)
{
    char prefix[64];
    int fd = qdqi_file_open_buffer();
    if (fd < 0)
        return QDQ_OK;
    snprintf(prefix, sizeof prefix, "/proc/self/fd/%d", fd);
    enum qdq_code code = trace_to(t, prefix, fd, ret_text, err);
    close(fd);
    return code;
}

enum qdq_code
qdqi_onnxruntime_trace(void *place, const struct qdq_model *model,
                       const struct qdqi_deploy_options *options,
                       const struct qdqi_input *inputs, size_t n_inputs, int runs,
                       struct qdqi_arena *arena, void **stays, struct qdqi_trace *ret,
                       struct qdq_error *err)
{
    const struct tracing t = {place,    model, options, inputs,
                              n_inputs, runs,  arena,   stays};
    const char *tmp = getenv("TMPDIR");
    char folder[PATH_MAX], *text = NULL;
    *ret = (struct qdqi_trace){0};
    snprintf(folder, sizeof folder, "%.4000s/qdq-XXXXXX", tmp && *tmp ? tmp : "/tmp");
    bool made = mkdtemp(folder) != NULL;
    enum qdq_code code = made ? trace_in_folder(&t, folder, &text, err)
                              : trace_in_buffer(&t, &text, err);
    if (made)
        rmdir(folder);
    return code || !text ? code : qdqi_trace_parse(text, arena, ret, err);
}

static const struct qdq_runtime_row row = {
    .name = "onnxruntime",
    .title = "ONNX Runtime",
    .library = "libonnxruntime.so",
    .installed = QDQ_ORT_LIBRARY,
};

const struct qdqi_deploy_ops qdqi_deploy_onnxruntime = {
    .row = &row,
    .library_option = offsetof(struct qdq_engine_options, runtime),
    .kernels = &qdqi_onnxruntime_kernels,
    .provider = &qdqi_cpu_provider,
    .calibrates = true,
    .writes = true,
    .checks_float16 = true,
    QDQI_PROVIDER_FUNCTIONS,
};
