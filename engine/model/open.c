/* SPDX-License-Identifier: Apache-2.0 */
/* Opening a model: map, cut, parse, check, index. */
#include "config.h"
#include "model/model.h"

#include "model/constant.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

static void *
arena_alloc(void *arena, size_t size)
{
    return qdqi_arena_alloc(arena, size);
}

static void
arena_free(void *arena, void *pointer)
{
    (void)arena;
    (void)pointer;
}

static enum qdq_code
map_file(int fd, struct qdq_model *model, struct qdq_error *err)
{
    struct stat st;
    if (fstat(fd, &st) < 0)
        return qdq_error_set(err, QDQ_IO, QDQ_AT_NOTHING, NULL, "fstat: %s",
                             strerror(errno));
    if (!S_ISREG(st.st_mode))
        return qdq_error_set(err, QDQ_INVALID_MODEL, QDQ_AT_NOTHING, NULL,
                             "the model is not a regular file");
    if (st.st_size == 0)
        return qdq_error_set(err, QDQ_INVALID_MODEL, QDQ_AT_OFFSET, "0",
                             "the model is empty");
    model->size = (size_t)st.st_size;
    model->fd = fcntl(fd, F_DUPFD_CLOEXEC, 3);
    if (model->fd < 0)
        return qdq_error_set(err, QDQ_IO, QDQ_AT_NOTHING, NULL, "dup: %s",
                             strerror(errno));
    void *map = mmap(NULL, model->size, PROT_READ, MAP_PRIVATE, model->fd, 0);
    if (map == MAP_FAILED)
        return qdq_error_set(err, QDQ_IO, QDQ_AT_NOTHING, NULL, "mmap: %s",
                             strerror(errno));
    model->map = map;
    return QDQ_OK;
}

static enum qdq_code
parse(struct qdq_model *model, struct qdq_error *err)
{
    struct qdqi_bytes skeleton;
    enum qdq_code code = qdqi_skeleton_cut(model->map, model->size, model->arena,
                                           &skeleton, &model->bulks, err);
    if (code)
        return code;
    ProtobufCAllocator allocator = {arena_alloc, arena_free, model->arena};
    model->proto = onnx__model_proto__unpack(&allocator, skeleton.size, skeleton.data);
    if (!model->proto && qdqi_arena_exhausted(model->arena))
        return qdqi_no_memory(err);
    if (!model->proto)
        return qdq_error_set(err, QDQ_INVALID_MODEL, QDQ_AT_NOTHING, NULL,
                             "not an ONNX model: a field has the wrong type");
    if (!model->proto->graph)
        return qdq_error_set(err, QDQ_INVALID_MODEL, QDQ_AT_NOTHING, NULL,
                             "not an ONNX model: it has no graph");
    if (!model->proto->has_ir_version || model->proto->n_opset_import == 0)
        return qdq_error_set(err, QDQ_INVALID_MODEL, QDQ_AT_NOTHING, NULL,
                             "not an ONNX model: it has no %s",
                             model->proto->has_ir_version ? "opset_import"
                                                          : "ir_version");
    return QDQ_OK;
}

/* Data and shape of every initializer agree, as far as their form is read at all. */
static enum qdq_code
check_initializers(const struct qdq_model *model, struct qdq_error *err)
{
    for (size_t s = 0; s < model->graph.n_scopes; s++) {
        const Onnx__GraphProto *graph = model->graph.scopes[s].proto;
        for (size_t i = 0; i < graph->n_initializer; i++) {
            struct qdqi_constant ignored;
            struct qdq_error why = {0};
            const Onnx__TensorProto *t = graph->initializer[i];
            if (qdqi_stored_read(model, t, t->name ? t->name : "", &ignored, &why) ==
                QDQ_INVALID_MODEL)
                return qdq_error_set(err, why.code, why.kind, why.where, "%s",
                                     why.text);
        }
    }
    return QDQ_OK;
}

enum qdq_code
qdq_model_open(int fd, struct qdq_model **ret, struct qdq_error *err)
{
    struct qdqi_arena *arena = qdqi_arena_new();
    struct qdq_model *model = arena ? qdqi_arena_alloc(arena, sizeof *model) : NULL;
    if (!model) {
        qdqi_arena_free(&arena);
        return qdqi_no_memory(err);
    }
    model->arena = arena;
    model->fd = -1;
    enum qdq_code code;
    if ((code = map_file(fd, model, err)) || (code = parse(model, err)) ||
        (code = qdqi_graph_index(model, err)) ||
        (code = check_initializers(model, err)) ||
        (code = qdqi_graph_mark_fixed(model, err)) ||
        (code = qdqi_graph_infer_types(model, err)) ||
        (code = qdqi_model_fill_info(model, err))) {
        qdq_model_free(&model);
        return code;
    }
    *ret = model;
    return QDQ_OK;
}

void
qdq_model_free(struct qdq_model **model)
{
    if (!model || !*model)
        return;
    struct qdq_model *m = *model;
    struct qdq_model *base = m->base;
    if (m->map && !m->is_derived)
        munmap((void *)(uintptr_t)m->map, m->size);
    if (m->fd >= 0 && !m->is_derived)
        close(m->fd);
    struct qdqi_arena *arena = m->arena; /* the model itself lies in it */
    qdqi_arena_free(&arena);
    qdq_model_free(&base);
    *model = NULL;
}
