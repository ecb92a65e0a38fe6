/* SPDX-License-Identifier: Apache-2.0 */
/* Opens a model: maps its files, cuts the bulks, parses, checks and indexes. */
#include "config.h"
#include "files/model/model.h"

#include "files/model/constant.h"
#include "files/model/external.h"
#include "files/model/other_files.h"
#include "files/model/write.h"

#include <string.h>

/* Makes an empty model with room for its files. */
static enum qdq_code
model_new(size_t n_sent, struct qdq_model **ret, struct qdq_error *err)
{
    struct qdqi_arena *arena = qdqi_arena_new();
    struct qdq_model *m = arena ? qdqi_arena_alloc(arena, sizeof *m) : NULL;
    if (m) {
        m->arena = arena;
        m->files = qdqi_arena_array(arena, n_sent + 1, sizeof *m->files);
        m->locations = qdqi_arena_array(arena, n_sent, sizeof *m->locations);
    }
    if (!m || !m->files || !m->locations) {
        qdqi_arena_free(&arena);
        return qdqi_no_memory(err);
    }
    m->n_files = n_sent + 1;
    for (size_t i = 0; i < m->n_files; i++)
        m->files[i].fd = -1;
    *ret = m;
    return QDQ_OK;
}

static enum qdq_code
map_own_file(int fd, struct qdq_model *model, struct qdq_error *err)
{
    enum qdq_code code = qdqi_map_file(fd, "the model", &model->files[0], err);
    if (!code && model->files[0].size == 0)
        return qdq_error_set(err, QDQ_INVALID_MODEL, QDQ_AT_OFFSET, "0",
                             "the model is empty");
    return code;
}

/* More than ONNX will have: it has had 3 a year. A runtime may count up to the version. */
enum { MOST_OPSET = 1000 };

/* Checks the versions of ONNX's own operators. */
static enum qdq_code
check_opsets(const Onnx__ModelProto *proto, struct qdq_error *err)
{
    for (size_t i = 0; i < proto->n_opset_import; i++) {
        const Onnx__OperatorSetIdProto *opset = proto->opset_import[i];
        const char *domain = opset->domain ? opset->domain : "";
        const bool own = qdqi_is_onnx_domain(domain);
        const bool known = own || strcmp(domain, "ai.onnx.ml") == 0 ||
                           strcmp(domain, "com.microsoft") == 0;
        if ((own && opset->version < 1) || (known && opset->version > MOST_OPSET))
            return qdq_error_set(err, QDQ_INVALID_MODEL, QDQ_AT_NOTHING, NULL,
                                 "opset_import has version %lld of the operators '%s', "
                                 "and versions go from 1 to %d",
                                 (long long)opset->version, domain, MOST_OPSET);
    }
    return QDQ_OK;
}

static enum qdq_code
parse_proto(struct qdq_model *model, struct qdq_error *err)
{
    struct qdqi_bytes skeleton;
    const struct qdqi_mapped *file = &model->files[0];
    enum qdq_code code = qdqi_skeleton_cut(file->map, file->size, model->arena,
                                           &skeleton, &model->bulks, err);
    if (code)
        return code;
    ProtobufCAllocator allocator = qdqi_arena_allocator(model->arena);
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
    return check_opsets(model->proto, err);
}

/* Parses the model. The error of a file of another kind says what it is. */
static enum qdq_code
parse(struct qdq_model *model, struct qdq_error *err)
{
    const struct qdqi_mapped *file = &model->files[0];
    struct qdq_error why = {0};
    enum qdq_code code = parse_proto(model, &why);
    const char *other =
        code == QDQ_INVALID_MODEL ? qdqi_other_file(file->map, file->size) : NULL;
    if (other)
        return qdq_error_set(err, code, QDQ_AT_NOTHING, NULL, "not an ONNX model: %s",
                             other);
    return code ? qdq_error_set(err, code, why.kind, why.where, "%s", why.text) : code;
}

/* Checks that data and shape of every initializer agree, as far as its form is
   supported. */
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
qdq_model_open_files(int fd, const struct qdq_external *files, size_t n,
                     struct qdq_model **ret, struct qdq_error *err)
{
    struct qdq_model *model = NULL;
    enum qdq_code code = model_new(n, &model, err);
    if (code)
        return code;
    if ((code = map_own_file(fd, model, err)) || (code = parse(model, err)) ||
        (code = qdqi_external_resolve(model, files, n, err)) ||
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

enum qdq_code
qdq_model_open(int fd, struct qdq_model **ret, struct qdq_error *err)
{
    return qdq_model_open_files(fd, NULL, 0, ret, err);
}

enum qdq_code
qdqi_model_derive(const struct qdq_model *source, const struct qdqi_edited *edited,
                  struct qdqi_arena **arena, struct qdq_model **ret,
                  struct qdq_error *err)
{
    struct qdq_model *model = qdqi_arena_alloc(*arena, sizeof *model);
    enum qdq_code code;
    if (!model)
        return qdqi_no_memory(err);
    *model = *source;
    model->arena = *arena;
    model->is_derived = true;
    model->base = NULL;
    model->warnings = (struct qdqi_warnings){.n = 0};
    model->bulks = edited->bulks;
    /* Messages do not change any more once they are indexed here. */
    model->proto = (Onnx__ModelProto *)(uintptr_t)edited->proto;
    model->graph = (struct qdqi_graph){.n_nodes = 0};
    model->info = (struct qdq_model_info){.n_nodes = 0};
    if ((code = qdqi_graph_index(model, err)) ||
        (code = qdqi_graph_mark_fixed(model, err)) ||
        (code = qdqi_graph_infer_types(model, err)) ||
        (code = qdqi_model_fill_info(model, err)))
        return code;
    *arena = NULL;
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
    for (size_t i = 0; i < m->n_files && !m->is_derived; i++)
        qdqi_unmap(&m->files[i]);
    struct qdqi_arena *arena = m->arena; /* the model itself lies in its arena */
    qdqi_arena_free(&arena);
    qdq_model_free(&base);
    *model = NULL;
}

const char *
qdq_model_location(const struct qdq_model *model, size_t i)
{
    return i + 1 < model->n_files ? model->locations[i] : NULL;
}

enum qdq_code
qdq_model_locations(int fd, struct qdq_locations **ret, struct qdq_error *err)
{
    struct qdq_model *model = NULL;
    enum qdq_code code = model_new(0, &model, err);
    if (code)
        return code;
    if ((code = map_own_file(fd, model, err)) || (code = parse(model, err)) ||
        (code = qdqi_external_list(model, ret, err)))
        qdq_model_free(&model);
    else
        qdqi_unmap(&model->files[0]); /* everything else belongs to the list */
    return code;
}
