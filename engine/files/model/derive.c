/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "files/model/derive.h"

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
