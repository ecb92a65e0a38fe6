/* SPDX-License-Identifier: Apache-2.0 */
/* The runtimes of an engine: each is started when a model has to be run by it. */
#include "config.h"
#include "runtimes/engine.h"

#include "ground/base/errors.h"
#include "runtimes/onnxruntime/onnxruntime.h"
#include "runtimes/process/served.h"

#include <stdlib.h>
#include <string.h>

/* --- slots ------------------------------------------------------------------ */

enum qdq_code
qdqi_slots_open(struct qdq_engine *engine, const struct qdq_engine_options *options,
                struct qdq_error *err)
{
    while (qdqi_deploy_row(engine->n_slots))
        engine->n_slots++;
    engine->slots = calloc(engine->n_slots, sizeof *engine->slots);
    if (!engine->slots) {
        engine->n_slots = 0;
        return qdqi_no_memory(err);
    }
    for (size_t i = 0; i < engine->n_slots; i++) {
        struct qdqi_runtime_slot *slot = &engine->slots[i];
        const char *library = NULL;
        slot->ops = qdqi_deploy_row(i);
        if (slot->ops->row->library)
            memcpy(&library, (const char *)options + slot->ops->library_option,
                   sizeof library);
        if (library && !(slot->library = strdup(library)))
            return qdqi_no_memory(err);
    }
    return QDQ_OK;
}

static void
end_place(struct qdqi_runtime_slot *slot)
{
    if (slot->place)
        slot->ops->end(slot->place);
    slot->place = NULL;
}

void
qdqi_slots_restart(struct qdq_engine *engine)
{
    for (size_t i = 0; i < engine->n_slots; i++)
        if (engine->slots[i].ops && engine->slots[i].ops->provider)
            end_place(&engine->slots[i]);
}

void
qdqi_slots_close(struct qdq_engine *engine)
{
    for (size_t i = 0; i < engine->n_slots; i++) {
        end_place(&engine->slots[i]);
        qdqi_served_free(&engine->slots[i].served);
        free(engine->slots[i].library);
    }
    free(engine->slots);
}

static const char *
name_of(const struct qdqi_runtime_slot *slot)
{
    return slot->ops ? slot->ops->row->name : slot->served ? slot->served->name : "";
}

static struct qdqi_runtime_slot *
find_slot(const struct qdq_engine *engine, const char *name)
{
    for (size_t i = 0; i < engine->n_slots; i++)
        if (strcmp(name_of(&engine->slots[i]), name) == 0)
            return &engine->slots[i];
    return NULL;
}

/* Returns the slot of the runtime that calibrates. */
static struct qdqi_runtime_slot *
literal_slot(const struct qdq_engine *engine)
{
    size_t i = 0;
    while (!engine->slots[i].ops->calibrates)
        i++;
    return &engine->slots[i];
}

/* --- starting --------------------------------------------------------------- */

/* Starts a runtime in this process, unless that was tried. */
static enum qdq_code
start(struct qdq_engine *engine, struct qdqi_runtime_slot *slot,
      struct qdqi_deploy *ret, struct qdq_error *err)
{
    const struct qdqi_deploy_ops *ops = slot->ops;
    struct qdqi_deploy_start from = {.library = slot->library,
                                     .threads = engine->threads};
    enum qdq_code code = QDQ_OK;
    if (ops->provider && !ops->calibrates)
        code = qdqi_engine_runtime(engine, &from.runtime, err);
    else if (!slot->library && ops->calibrates)
        code = qdq_error_set(err, QDQ_RUNTIME_MISSING, QDQ_AT_NOTHING, NULL,
                             "%s is not configured, so no model can be run",
                             ops->row->title);
    else if (!slot->library)
        code = qdq_error_set(err, QDQ_RUNTIME_MISSING, QDQ_AT_NOTHING, NULL,
                             "%s is not configured (engine.%s)", ops->row->title,
                             ops->row->name);
    if (code)
        return code;
    if (!slot->place && !slot->why_not.code)
        (void)!ops->start(ops, &from, &slot->place, &slot->why_not);
    *ret = (struct qdqi_deploy){ops, slot->place};
    return qdqi_error_copy(&slot->why_not, err);
}

enum qdq_code
qdqi_engine_deploy_literal(struct qdq_engine *engine, struct qdqi_deploy *ret,
                           struct qdq_error *err)
{
    return start(engine, literal_slot(engine), ret, err);
}

enum qdq_code
qdqi_engine_runtime(struct qdq_engine *engine, struct qdqi_runtime **ret,
                    struct qdq_error *err)
{
    struct qdqi_deploy literal;
    enum qdq_code code = qdqi_engine_deploy_literal(engine, &literal, err);
    if (!code)
        *ret = qdqi_onnxruntime_library(literal.place);
    return code;
}

struct qdqi_runtime *
qdqi_engine_loaded_runtime(const struct qdq_engine *engine)
{
    const void *place = literal_slot(engine)->place;
    return place ? qdqi_onnxruntime_library(place) : NULL;
}

const char *
qdqi_engine_runtime_path(const struct qdq_engine *engine)
{
    return literal_slot(engine)->library;
}

enum qdq_code
qdq_engine_runtime_version(struct qdq_engine *engine, const char **ret,
                           struct qdq_error *err)
{
    struct qdqi_deploy literal;
    enum qdq_code code = qdqi_engine_deploy_literal(engine, &literal, err);
    if (!code)
        *ret = literal.ops->version(literal.place);
    return code;
}

const struct qdqi_deploy_ops *
qdqi_engine_ops(const struct qdq_engine *engine, const char *name)
{
    const struct qdqi_runtime_slot *slot = name ? find_slot(engine, name) : NULL;
    return !slot ? NULL : slot->served ? &slot->served->ops : slot->ops;
}

enum qdq_code
qdqi_engine_deploy(struct qdq_engine *engine, const char *name, struct qdqi_deploy *ret,
                   struct qdq_error *err)
{
    struct qdqi_runtime_slot *slot = find_slot(engine, name);
    if (!slot)
        return qdq_error_set(err, QDQ_RUNTIME_MISSING, QDQ_AT_NOTHING, NULL,
                             "no process is configured that judges by '%s'", name);
    return slot->served ? qdqi_served_reach(slot->served, ret, err)
                        : start(engine, slot, ret, err);
}

/* --- processes that judge --------------------------------------------------- */

const char *
qdqi_engine_crash(const struct qdq_engine *engine, const char *name)
{
    const struct qdqi_runtime_slot *slot = find_slot(engine, name);
    return slot && slot->served ? slot->served->crashed : "";
}

void
qdqi_engine_release_judges(struct qdq_engine *engine)
{
    for (size_t i = 0; i < engine->n_slots; i++)
        if (engine->slots[i].served)
            qdqi_served_release(engine->slots[i].served);
}

/* Adds a slot for a runtime that the engine has no row of. */
static enum qdq_code
add_slot(struct qdq_engine *engine, struct qdqi_served *served, struct qdq_error *err)
{
    struct qdqi_runtime_slot *slots =
        realloc(engine->slots, (engine->n_slots + 1) * sizeof *slots);
    if (!slots)
        return qdqi_no_memory(err);
    engine->slots = slots;
    slots[engine->n_slots++] = (struct qdqi_runtime_slot){.served = served};
    return QDQ_OK;
}

enum qdq_code
qdq_engine_serve(struct qdq_engine *engine, const struct qdq_served_runtime *as,
                 struct qdq_error *err)
{
    struct qdqi_runtime_slot *slot = find_slot(engine, as->name);
    struct qdqi_served *served = NULL;
    enum qdq_code code =
        as->connect ? qdqi_served_new(as, slot ? slot->ops : NULL, &served, err)
                    : QDQ_OK;
    if (!code && !slot && served)
        code = add_slot(engine, served, err);
    if (code) {
        qdqi_served_free(&served);
        return code;
    }
    if (slot) {
        qdqi_served_free(&slot->served);
        slot->served = served;
    }
    return QDQ_OK;
}
