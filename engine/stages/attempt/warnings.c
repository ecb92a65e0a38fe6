/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "stages/attempt/warnings.h"

#include <string.h>

static bool
make_room(struct qdqi_stage_warnings *w)
{
    if (w->list.n < w->room)
        return true;
    const size_t room = w->room ? w->room * 2 : 16;
    enum qdq_stage *stages = qdqi_arena_array(w->arena, room, sizeof *stages);
    if (!stages)
        return false;
    if (w->list.n)
        memcpy(stages, w->stages, w->list.n * sizeof *stages);
    w->stages = stages;
    w->room = room;
    return true;
}

enum qdq_code
qdqi_stage_warnings_add(struct qdqi_stage_warnings *w, const struct qdq_warning *from,
                        struct qdq_error *err)
{
    if (!make_room(w))
        return qdqi_no_memory(err);
    w->stages[w->list.n] = w->stage;
    enum qdq_code code =
        qdqi_warn_text(&w->list, w->arena, err, from->code, from->node, from->detail);
    if (!code)
        w->list.rows[w->list.n - 1].rule = from->rule;
    return code;
}

void
qdqi_stage_warnings_remove(struct qdqi_stage_warnings *w, enum qdq_stage stage)
{
    size_t n = 0;
    for (size_t i = 0; i < w->list.n; i++) {
        if (w->stages[i] == stage)
            continue;
        w->stages[n] = w->stages[i];
        w->list.rows[n++] = w->list.rows[i];
    }
    w->list.n = n;
}

/* Adds the warnings of some stages. */
static enum qdq_code
copy(struct qdqi_stage_warnings *w, const struct qdqi_stage_warnings *from,
     enum qdq_stage first, enum qdq_stage last, struct qdq_error *err)
{
    enum qdq_code code = QDQ_OK;
    for (size_t i = 0; !code && i < from->list.n; i++) {
        w->stage = from->stages[i];
        if (w->stage >= first && w->stage <= last)
            code = qdqi_stage_warnings_add(w, &from->list.rows[i], err);
    }
    w->stage = from->stage;
    return code;
}

enum qdq_code
qdqi_stage_warnings_complete(struct qdqi_stage_warnings *w,
                             const struct qdqi_stage_warnings *other,
                             struct qdq_error *err)
{
    const struct qdqi_stage_warnings own = *w;
    *w = (struct qdqi_stage_warnings){.arena = own.arena};
    enum qdq_code code = copy(w, other, QDQ_STAGE_LOAD, QDQ_STAGE_LOAD, err);
    if (!code)
        code = copy(w, &own, QDQ_STAGE_EQUALIZE, QDQ_STAGE_QUANTIZE, err);
    return code ? code : copy(w, other, QDQ_STAGE_REFINE, QDQ_N_STAGES, err);
}
