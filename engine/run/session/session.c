/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "run/session/session.h"

#include "ground/base/errors.h"
#include "numbers/arithmetic/half.h"
#include "transform/prepare/lower_opset.h"
#include "transform/rewrite/blocked.h"
#include "transform/rewrite/insert.h"
#include "run/session/crashes.h"
#include "run/session/float_weights.h"
#include "run/session/fused_pairs.h"
#include "run/session/data_folder.h"
#include "run/session/lift_weights.h"
#include "run/operators/operators.h"
#include "run/session/provider.h"
#include "run/session/runtime.h"
#include "run/operators/staging.h"
#include "run/operators/variants.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct qdqi_session {
    struct qdqi_runtime *runtime;
    const struct qdqi_provider *provider;
    const struct qdqi_op_variants *variants; /* in which the operators run there */
    struct qdqi_op ops[QDQI_MOST_OPS];       /* registered in the domain */
    void *ops_state;                         /* of the variants; NULL: there is none */
    const struct qdqi_device *dev;           /* NULL for the host */
    struct qdqi_staging *staging; /* inputs uploaded ahead; NULL when there were none */
    OrtMemoryInfo *memory;        /* the device's memory; NULL for the host's */
    OrtCustomOpDomain *domain;
    struct qdqi_op blocked; /* works in blocks (transform/rewrite/blocked.h) */
    OrtCustomOpDomain *runtime_domain; /* its domain; NULL when there is none */
    OrtSession *session;
    size_t n_outputs;
    char **output_names;
    OrtValue **values;           /* outputs of the last run */
    struct qdqi_output *outputs; /* views of the values */
    struct qdqi_arena *shapes;   /* memory of the last run's output shapes */
    int threads;                 /* that a run can use */
    struct qdqi_fused_pairs pairs;
    struct qdqi_arena *pairs_memory; /* NULL: there are none */
};

/* --- opening -------------------------------------------------------------- */

/* Gives the runtime the mapped files, from which it reads the weights. */
static OrtStatus *
add_files(const OrtApi *api, const struct qdqi_runnable *model, OrtSessionOptions *o)
{
    struct qdqi_arena *arena = qdqi_arena_new();
    if (!arena)
        return qdqi_op_no_memory(api);
    char **files = qdqi_arena_array(arena, model->n_files, sizeof *files);
    const char **names = qdqi_arena_array(arena, model->n_files, sizeof *names);
    size_t *sizes = qdqi_arena_array(arena, model->n_files, sizeof *sizes), n = 0;
    for (size_t i = 0; files && names && sizes && i < model->n_files; i++) {
        char *name = qdqi_arena_alloc(arena, QDQI_MAPPED_NAME);
        if (!name || !model->files[i].map)
            continue;
        qdqi_mapped_name(name, (unsigned)i);
        names[n] = name;
        files[n] = (char *)(uintptr_t)model->files[i].map;
        sizes[n++] = model->files[i].size;
    }
    OrtStatus *status =
        qdqi_arena_exhausted(arena)
            ? qdqi_op_no_memory(api)
            : api->AddExternalInitializersFromFilesInMemory(o, names, files, sizes, n);
    qdqi_arena_free(&arena); /* the runtime has copied the names */
    return status;
}

/* Gives the runtime the files: by their folder, where it maps them, or their bytes, which it
   copies. */
static OrtStatus *
give_files(const OrtApi *api, const struct qdqi_runnable *model, const char *folder,
           OrtSessionOptions *o)
{
    return folder
               ? api->AddSessionConfigEntry(
                     o, "session.model_external_initializers_file_folder_path", folder)
               : add_files(api, model, o);
}

static OrtStatus *
set_options(const struct qdqi_session *s, const struct qdqi_runnable *model,
            const struct qdqi_session_options *options, const char *folder,
            OrtSessionOptions *o)
{
    const OrtApi *api = s->runtime->api;
    OrtStatus *status;
    if ((status = options->threads      ? api->SetIntraOpNumThreads(o, options->threads)
                  : options->one_thread ? api->SetIntraOpNumThreads(o, 1)
                                        : api->DisablePerSessionThreads(o)) ||
        (options->trace && (status = api->EnableProfiling(o, options->trace))) ||
        (status = api->SetSessionExecutionMode(o, ORT_SEQUENTIAL)) ||
        (status = api->SetSessionGraphOptimizationLevel(
             o, options->basic ? ORT_ENABLE_BASIC : ORT_ENABLE_ALL)) ||
        (status =
             options->optimized ? api->SetOptimizedModelFilePath(o, options->optimized)
             : options->plain || options->threads
                 ? NULL
                 : api->AddSessionConfigEntry(o, "session.disable_quant_qdq", "1")))
        return status;
    /* With a pattern each session asks for all tensors of a run at once, in one block. */
    if (options->one_of_many &&
        ((status = api->AddSessionConfigEntry(o, "session.use_env_allocators", "1")) ||
         (status = api->DisableMemPattern(o))))
        return status;
    if (options->unpacked &&
        (status = api->AddSessionConfigEntry(o, "session.disable_prepacking", "1")))
        return status;
    status = qdqi_provider_append(s->provider, api, o, s->dev);
    return status ? status : give_files(api, model, folder, o);
}

static struct qdqi_op_objects
objects_of(const struct qdqi_session_options *options)
{
    return (struct qdqi_op_objects){.observers = options->observers,
                                    .moments = options->moments,
                                    .peaks = options->peaks,
                                    .fakes = options->fakes,
                                    .comparisons = options->comparisons};
}

/* Makes the device current and creates the state that operators need there. */
static enum qdq_code
enter_place(struct qdqi_session *s, const struct qdqi_session_options *options,
            struct qdq_error *err)
{
    const struct qdqi_op_objects objects = objects_of(options);
    enum qdq_code code = s->dev ? qdqi_device_enter(s->dev, err) : QDQ_OK;
    return code || !s->variants->open
               ? code
               : s->variants->open(&objects, s->dev, &s->ops_state, err);
}

/* Registers the operator that works in blocks, in front of the runtime's of that name. */
static OrtStatus *
add_blocked_op(struct qdqi_session *s, struct qdqi_observers *observers,
               OrtSessionOptions *o)
{
    const OrtApi *api = s->runtime->api;
    OrtStatus *status;
    if (s->pairs.any_blocked)
        qdqi_fake_blocked_init(&s->blocked, api, &s->pairs.fakes);
    else
        qdqi_observe_blocked_init(&s->blocked, api, observers);
    if ((status = api->CreateCustomOpDomain(QDQI_RUNTIME_DOMAIN, &s->runtime_domain)) ||
        (status = api->CustomOpDomain_Add(s->runtime_domain, &s->blocked.op)))
        return status;
    return api->AddCustomOpDomain(o, s->runtime_domain);
}

/* Registers those of our operators whose state the session has. */
static OrtStatus *
add_ops(struct qdqi_session *s, const struct qdqi_session_options *options,
        OrtSessionOptions *o)
{
    const OrtApi *api = s->runtime->api;
    OrtStatus *status = api->CreateCustomOpDomain(QDQI_DOMAIN, &s->domain);
    const struct qdqi_op_objects objects = objects_of(options);
    const size_t n = s->variants->init(&objects, s->ops_state, api, s->ops);
    for (size_t i = 0; !status && i < n; i++)
        status = api->CustomOpDomain_Add(s->domain, &s->ops[i].op);
    if (!status &&
        (s->pairs.any_blocked || (options->observers && options->observers->channels)))
        status = add_blocked_op(s, options->observers, o);
    return status ? status : api->AddCustomOpDomain(o, s->domain);
}

static enum qdq_code
read_output_names(struct qdqi_session *s, struct qdq_error *err)
{
    const OrtApi *api = s->runtime->api;
    OrtAllocator *allocator;
    enum qdq_code code = qdqi_runtime_check(
        s->runtime, api->GetAllocatorWithDefaultOptions(&allocator), "", err);
    if (!code)
        code = qdqi_runtime_check(
            s->runtime, api->SessionGetOutputCount(s->session, &s->n_outputs), "", err);
    if (code)
        return code;
    s->output_names = calloc(s->n_outputs + 1, sizeof *s->output_names);
    s->values = calloc(s->n_outputs + 1, sizeof(OrtValue *));
    s->outputs = calloc(s->n_outputs + 1, sizeof *s->outputs);
    if (!s->output_names || !s->values || !s->outputs)
        return qdqi_no_memory(err);
    for (size_t i = 0; i < s->n_outputs; i++) {
        char *name;
        code = qdqi_runtime_check(
            s->runtime, api->SessionGetOutputName(s->session, i, allocator, &name), "",
            err);
        if (code)
            return code;
        s->output_names[i] = strdup(name);
        allocator->Free(allocator, name);
        if (!s->output_names[i])
            return qdqi_no_memory(err);
    }
    return QDQ_OK;
}

/* Makes the bytes that the runtime loads. `obstacle` gets the node for which a model of a later
   opset than the runtime's stays one. `literal`: weights that the runtime has no kernel for are
   floats. */
static enum qdq_code
to_memory(const struct qdqi_runnable *model, bool literal, struct qdqi_bytes *ret,
          struct qdqi_obstacle *obstacle, struct qdq_error *err)
{
    struct qdqi_arena *arena = qdqi_arena_new();
    struct qdqi_runnable lowered = *model, lifted;
    if (!arena)
        return qdqi_no_memory(err);
    enum qdq_code code =
        qdqi_lower_opset(model->proto, arena, &lowered.proto, obstacle, err);
    if (!code && literal)
        code = qdqi_float_weights(&lowered, arena, &lowered.proto, err);
    lifted = lowered;
    if (!code)
        code = qdqi_lift_weights(&lowered, arena, &lifted.proto, err);
    if (!code)
        code = qdqi_model_to_memory(&lifted, ret, err);
    qdqi_arena_free(&arena);
    return code;
}

/* Says of a model that the runtime refuses why it was not run as one of an older opset. */
static enum qdq_code
explain_opset(const struct qdqi_obstacle *o, enum qdq_code code, struct qdq_error *err)
{
    if (!code || !err || !o->opset || code == QDQ_NO_MEMORY)
        return code;
    char text[sizeof err->text];
    snprintf(text, sizeof text, "%s", err->text);
    snprintf(err->text, sizeof err->text,
             "the model cannot be run as one of opset %d: node '%.80s' (%.40s): "
             "%.90s; %.200s",
             QDQI_OPSET_THAT_RUNS, o->node, o->op, o->why, text);
    return code;
}

static enum qdq_code
create_from(struct qdqi_session *s, const struct qdqi_runnable *model,
            const char *folder, const struct qdqi_session_options *options,
            struct qdq_error *err)
{
    struct qdqi_runtime *r = s->runtime;
    struct qdqi_bytes bytes = {0};
    struct qdqi_obstacle obstacle = {.opset = 0};
    OrtSessionOptions *o = NULL;
    /* A model in one file is loaded as any user would load it: with its weights, which
       count as memory. */
    const bool is_whole = options->threads && model->n_files == 1 &&
                          model->files[0].map && !qdqi_is_later(model->proto);
    const struct qdqi_mapped *whole = is_whole ? model->files : NULL;
    enum qdq_code code = enter_place(s, options, err);
    if (code ||
        (!whole && (code = to_memory(model, !options->plain && !options->threads,
                                     &bytes, &obstacle, err))))
        return code;
    if ((code = qdqi_runtime_check(r, r->api->CreateSessionOptions(&o),
                                   "session options", err)) ||
        (code = qdqi_runtime_check(r, set_options(s, model, options, folder, o),
                                   "session options", err)))
        goto out;
    if ((code = qdqi_runtime_check(r, add_ops(s, options, o), "operators", err)))
        goto out;
    code = qdqi_runtime_check(r,
                              r->api->CreateSessionFromArray(
                                  r->env, whole ? whole->map : bytes.data,
                                  whole ? whole->size : bytes.size, o, &s->session),
                              "ONNX Runtime cannot load the model", err);
    code = explain_opset(&obstacle, code, err);
    if (!code)
        code = read_output_names(s, err);
out:
    if (o)
        r->api->ReleaseSessionOptions(o);
    free(bytes.data);
    return code;
}

static enum qdq_code
create(struct qdqi_session *s, const struct qdqi_runnable *model,
       const struct qdqi_session_options *options, struct qdq_error *err)
{
    struct qdqi_arena *arena = options->unpacked ? qdqi_arena_new() : NULL;
    struct qdqi_runnable named = *model;
    struct qdqi_session_options all = *options;
    const char *folder =
        arena ? qdqi_data_folder(model->files, model->n_files, arena, &named.locations)
              : NULL;
    if (!folder)
        named.locations = model->locations;
    if (s->pairs.fakes.n > 0) {
        named.proto = s->pairs.proto;
        all.fakes = &s->pairs.fakes;
    }
    enum qdq_code code = create_from(s, &named, folder, &all, err);
    qdqi_arena_free(&arena);
    return code;
}

static void
release_domains(struct qdqi_session *s)
{
    const OrtApi *api = s->runtime->api;
    if (s->domain)
        api->ReleaseCustomOpDomain(s->domain);
    if (s->runtime_domain)
        api->ReleaseCustomOpDomain(s->runtime_domain);
    s->domain = s->runtime_domain = NULL;
}

/* Fuses the pairs of the model, where the options say so. */
static enum qdq_code
fuse_pairs(struct qdqi_session *s, const struct qdqi_runnable *model,
           const struct qdqi_session_options *options, struct qdq_error *err)
{
    if (!options->fuses_pairs || s->dev)
        return QDQ_OK;
    s->pairs_memory = qdqi_arena_new();
    return s->pairs_memory ? qdqi_fuse_pairs(model, s->pairs_memory, &s->pairs, err)
                           : qdqi_no_memory(err);
}

/* Creates the session: without fused pairs where the runtime does not load the model with them. */
static enum qdq_code
create_any(struct qdqi_session *s, const struct qdqi_runnable *model,
           const struct qdqi_session_options *options, struct qdq_error *err)
{
    enum qdq_code code = fuse_pairs(s, model, options, err);
    const bool fuses = s->pairs.fakes.n > 0;
    if (!code)
        code = create(s, model, options, err);
    if (code != QDQ_RUN_FAILED || !fuses)
        return code;
    release_domains(s);
    s->pairs = (struct qdqi_fused_pairs){0};
    *err = (struct qdq_error){0};
    return create(s, model, options, err);
}

/* Sessions of several threads may be used at the same time. */
static void
add_use(const struct qdqi_session *s, size_t bytes)
{
    struct qdqi_shared_use *use = &s->runtime->use;
    int most = atomic_load(&use->threads);
    atomic_fetch_add(&use->bytes, bytes);
    while (s->threads > most &&
           !atomic_compare_exchange_weak(&use->threads, &most, s->threads))
        ;
}

enum qdq_code
qdqi_session_load(struct qdqi_runtime *runtime, const struct qdqi_runnable *model,
                  const struct qdqi_session_options *options, struct qdqi_session **ret,
                  struct qdq_error *err)
{
    enum qdq_code code = qdqi_refuse_crash(model->proto, err);
    struct qdqi_session *s = code ? NULL : calloc(1, sizeof *s);
    if (!s)
        return code ? code : qdqi_no_memory(err);
    s->runtime = runtime;
    s->dev = options->dev;
    s->provider = options->dev        ? &qdqi_cuda_provider
                  : options->provider ? options->provider
                                      : &qdqi_cpu_provider;
    s->variants = s->provider->variants ? s->provider->variants : &qdqi_host_variants;
    s->threads = options->threads      ? options->threads
                 : options->one_thread ? 1
                                       : runtime->threads;
    for (size_t i = 0; i < model->n_files && !options->is_copy; i++)
        add_use(s, model->files[i].size);
    struct qdq_error why = {0};
    if (create_any(s, model, options, &why) && s->dev)
        (void)!qdqi_device_classify_error(s->dev, &why);
    if (why.code)
        qdqi_session_close(&s);
    else
        *ret = s;
    return qdqi_error_copy(&why, err);
}

enum qdq_code
qdqi_session_open(struct qdqi_runtime *runtime, const struct qdq_model *source,
                  const Onnx__ModelProto *proto,
                  const struct qdqi_session_options *options, struct qdqi_session **ret,
                  struct qdq_error *err)
{
    const struct qdqi_runnable model = {.proto = proto,
                                        .bulks = source->bulks,
                                        .files = source->files,
                                        .n_files = source->n_files};
    return qdqi_session_load(runtime, &model, options, ret, err);
}

enum qdq_code
qdqi_session_end_trace(struct qdqi_session *s, char *path, size_t size,
                       struct qdq_error *err)
{
    const OrtApi *api = s->runtime->api;
    OrtAllocator *allocator;
    char *name;
    enum qdq_code code = qdqi_runtime_check(
        s->runtime, api->GetAllocatorWithDefaultOptions(&allocator), "", err);
    if (code || (code = qdqi_runtime_check(
                     s->runtime, api->SessionEndProfiling(s->session, allocator, &name),
                     "ending the profiler", err)))
        return code;
    snprintf(path, size, "%s", name);
    allocator->Free(allocator, name);
    return QDQ_OK;
}

/* --- running -------------------------------------------------------------- */

static void
release_values(struct qdqi_session *s)
{
    for (size_t i = 0; s->values && i < s->n_outputs; i++) {
        if (s->values[i])
            s->runtime->api->ReleaseValue(s->values[i]);
        s->values[i] = NULL;
    }
    qdqi_arena_free(&s->shapes);
}

void
qdqi_session_close(struct qdqi_session **session)
{
    if (!session || !*session)
        return;
    struct qdqi_session *s = *session;
    const OrtApi *api = s->runtime->api;
    release_values(s);
    if (s->session)
        api->ReleaseSession(s->session);
    release_domains(s);
    if (s->ops_state)
        s->variants->close(s->ops_state);
    qdqi_arena_free(&s->pairs_memory);
    qdqi_staging_close(&s->staging);
    if (s->memory)
        api->ReleaseMemoryInfo(s->memory);
    for (size_t i = 0; s->output_names && i < s->n_outputs; i++)
        free(s->output_names[i]);
    free(s->output_names);
    free(s->values);
    free(s->outputs);
    free(s);
    *session = NULL;
}

static OrtStatus *
view_shape(const OrtApi *api, const OrtTensorTypeAndShapeInfo *info,
           struct qdqi_arena *arena, struct qdqi_output *ret)
{
    ONNXTensorElementDataType type;
    OrtStatus *status;
    if ((status = api->GetTensorElementType(info, &type)) ||
        (status = api->GetDimensionsCount(info, &ret->rank)))
        return status;
    int64_t *shape = qdqi_arena_array(arena, ret->rank, sizeof *shape);
    if (!shape)
        return qdqi_op_no_memory(api);
    /* ONNX Runtime's element types have the numbers of ONNX's */
    ret->dtype = (enum qdqi_dtype)type;
    ret->shape = shape;
    return api->GetDimensions(info, shape, ret->rank);
}

enum qdq_code
qdqi_output_to_float32(struct qdqi_output *output, struct qdqi_arena *arena,
                       struct qdq_error *err)
{
    if (output->dtype != QDQI_FLOAT16 && output->dtype != QDQI_FLOAT64)
        return QDQ_OK;
    float *floats = qdqi_arena_array(arena, output->n, sizeof *floats);
    if (!floats)
        return qdqi_no_memory(err);
    qdqi_load_floats(floats, output->dtype, output->data, output->n);
    output->dtype = QDQI_FLOAT32;
    output->data = floats;
    return QDQ_OK;
}

static OrtStatus *
view_value(struct qdqi_session *s, const OrtValue *value, struct qdqi_output *ret)
{
    const OrtApi *api = s->runtime->api;
    OrtTensorTypeAndShapeInfo *info;
    OrtStatus *status;
    int is_tensor = 0;
    *ret = (struct qdqi_output){0};
    if ((status = api->IsTensor(value, &is_tensor)) || !is_tensor)
        return status;
    if ((status = api->GetTensorTypeAndShape(value, &info)))
        return status;
    if (!(status = view_shape(api, info, s->shapes, ret)))
        status = api->GetTensorShapeElementCount(info, &ret->n);
    api->ReleaseTensorTypeAndShapeInfo(info);
    if (status || ret->dtype == QDQI_STRING)
        return status;
    void *data;
    status = api->GetTensorMutableData((OrtValue *)(uintptr_t)value, &data);
    if (status)
        return status;
    ret->data = data;
    return qdqi_output_to_float32(ret, s->shapes, NULL) ? qdqi_op_no_memory(api) : NULL;
}

/* Returns the memory that the inputs are in. */
static const OrtMemoryInfo *
memory_of(const struct qdqi_session *s, const struct qdqi_input *inputs)
{
    bool on_device = s->memory && s->staging && qdqi_staging_owns(s->staging, inputs);
    return on_device ? s->memory : s->runtime->memory;
}

static enum qdq_code
run(struct qdqi_session *s, const struct qdqi_input *inputs, size_t n,
    const char **names, const OrtValue **values, struct qdq_error *err)
{
    const OrtApi *api = s->runtime->api;
    const OrtMemoryInfo *memory = memory_of(s, inputs);
    for (size_t i = 0; i < n; i++) {
        OrtValue *value = NULL;
        enum qdq_code code =
            qdqi_runtime_check(s->runtime,
                               api->CreateTensorWithDataAsOrtValue(
                                   memory, (void *)(uintptr_t)inputs[i].data,
                                   inputs[i].size, inputs[i].shape, inputs[i].rank,
                                   (ONNXTensorElementDataType)inputs[i].dtype, &value),
                               "an input", err);
        if (code)
            return code;
        names[i] = inputs[i].name;
        values[i] = value;
    }
    return qdqi_runtime_check(s->runtime,
                              api->Run(s->session, NULL, names, values, n,
                                       (const char *const *)s->output_names,
                                       s->n_outputs, s->values),
                              "running the model failed", err);
}

/* Replaces the runtime's error by that of an operator, which is more precise, if one
   failed. */
static void
explain(struct qdqi_session *s, struct qdq_error *why)
{
    const struct qdq_error *fault =
        s->variants->fault ? s->variants->fault(s->ops_state) : NULL;
    if (fault)
        *why = *fault;
    else
        (void)!qdqi_device_classify_error(s->dev, why);
}

/* Runs the model like run(), with the work that a device needs before and after it. */
static enum qdq_code
run_on_device(struct qdqi_session *s, const struct qdqi_input *inputs, size_t n,
              const char **names, const OrtValue **values, struct qdq_error *err)
{
    struct qdq_error why = {0};
    enum qdq_code code = qdqi_device_enter(s->dev, &why);
    if (!code && run(s, inputs, n, names, values, &why))
        explain(s, &why);
    if (!why.code && s->variants->end_run)
        (void)!s->variants->end_run(s->ops_state, &why);
    return qdqi_error_copy(&why, err);
}

static enum qdq_code
open_staging(struct qdqi_session *s, struct qdq_error *err)
{
    enum qdq_code code = qdqi_staging_open(s->dev, &s->staging, err);
    if (code || !s->dev->runs_models)
        return code;
    return qdqi_runtime_check(s->runtime,
                              s->runtime->api->CreateMemoryInfo(
                                  s->provider->memory, OrtDeviceAllocator,
                                  s->dev->device, OrtMemTypeDefault, &s->memory),
                              "the device's memory", err);
}

enum qdq_code
qdqi_session_upload(struct qdqi_session *s, const struct qdqi_input *inputs,
                    size_t n_inputs, struct qdq_error *err)
{
    enum qdq_code code = qdqi_device_enter(s->dev, err);
    if (!code && !s->staging)
        code = open_staging(s, err);
    return code ? code : qdqi_staging_upload(s->staging, inputs, n_inputs, err);
}

enum qdq_code
qdqi_session_next_inputs(struct qdqi_session *s, const struct qdqi_input **ret,
                         struct qdq_error *err)
{
    enum qdq_code code = qdqi_device_enter(s->dev, err);
    return code ? code : qdqi_staging_next(s->staging, ret, err);
}

static OrtStatus *
view_declared(const struct qdqi_session *s, size_t i, struct qdqi_arena *arena,
              struct qdqi_output *ret)
{
    const OrtApi *api = s->runtime->api;
    const OrtTensorTypeAndShapeInfo *info = NULL;
    OrtTypeInfo *type;
    OrtStatus *status = api->SessionGetOutputTypeInfo(s->session, i, &type);
    if (status)
        return status;
    if (!(status = api->CastTypeInfoToTensorInfo(type, &info)) && info)
        status = view_shape(api, info, arena, ret);
    api->ReleaseTypeInfo(type);
    return status;
}

enum qdq_code
qdqi_session_declared(const struct qdqi_session *s, size_t i, struct qdqi_arena *arena,
                      struct qdqi_output *ret, struct qdq_error *err)
{
    *ret = (struct qdqi_output){0};
    return qdqi_runtime_check(s->runtime, view_declared(s, i, arena, ret),
                              "an output's type", err);
}

enum qdq_code
qdqi_session_collect(struct qdqi_session *s, struct qdq_error *err)
{
    return s->variants->collect ? s->variants->collect(s->ops_state, err) : QDQ_OK;
}

enum qdq_code
qdqi_session_restore(struct qdqi_session *s, struct qdq_error *err)
{
    return s->variants->restore ? s->variants->restore(s->ops_state, err) : QDQ_OK;
}

enum qdq_code
qdqi_session_run(struct qdqi_session *s, const struct qdqi_input *inputs,
                 size_t n_inputs, const struct qdqi_output **ret, size_t *ret_n,
                 struct qdq_error *err)
{
    release_values(s);
    for (size_t i = 0; i < n_inputs; i++)
        add_use(s, inputs[i].size);
    const char **names = calloc(n_inputs + 1, sizeof *names);
    const OrtValue **values = calloc(n_inputs + 1, sizeof *values);
    s->shapes = qdqi_arena_new();
    enum qdq_code code = QDQ_OK;
    if (!names || !values || !s->shapes)
        code = qdqi_no_memory(err);
    else
        code = (s->dev ? run_on_device : run)(s, inputs, n_inputs, names, values, err);
    for (size_t i = 0; !code && i < s->n_outputs; i++)
        code =
            qdqi_runtime_check(s->runtime, view_value(s, s->values[i], &s->outputs[i]),
                               "reading an output", err);
    for (size_t i = 0; values && i < n_inputs; i++)
        if (values[i])
            s->runtime->api->ReleaseValue((OrtValue *)(uintptr_t)values[i]);
    free(names);
    free(values);
    if (!code) {
        *ret = s->outputs;
        *ret_n = s->n_outputs;
    }
    return code;
}
