/* SPDX-License-Identifier: Apache-2.0 */
/* Writes nodes in forms that the target's runtime computes right, or in one kernel. Targets know
   which (the hook `reform` of plan/placement/target.h). */
#include "config.h"
#include "transform/prepare/prepare.h"

#include "graph/edit/edit.h"
#include "plan/placement/target.h"

enum qdq_code
qdqi_step_reform(struct qdqi_preparing *p, struct qdq_model **ret,
                 struct qdq_error *err)
{
    struct qdq_spec spec = *p->spec;
    qdq_spec_complete(&spec);
    const struct qdqi_hooks *hooks = spec.target->hooks;
    bool any = false;
    if (!hooks->reform || p->model->proto->n_training_info)
        return QDQ_OK;
    struct qdqi_arena *arena = qdqi_arena_new();
    struct qdqi_edit *edit = arena ? qdqi_edit_new(p->model, arena) : NULL;
    enum qdq_code code = edit ? hooks->reform(&spec, p->model, edit, arena, &any, err)
                              : qdqi_no_memory(err);
    if (!code && any)
        code = qdqi_edit_derive(edit, &arena, ret, err);
    qdqi_arena_free(&arena);
    return code;
}
