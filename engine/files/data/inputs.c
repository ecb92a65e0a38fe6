/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "files/data/inputs.h"
#include "files/data/random.h"
#include "qdq/words.h"

#include <stdio.h>
#include <string.h>

/* --- names ---------------------------------------------------------------- */

/* A JSON pointer into the spec: `base`, then a name escaped as in RFC 6901. */
struct place {
    char text[256];
};

static struct place
place_of(const char *base, const char *name)
{
    struct place place;
    size_t n = (size_t)snprintf(place.text, sizeof place.text, "%s/", base);
    for (; *name && n + 3 < sizeof place.text; name++) {
        if (*name == '~' || *name == '/')
            place.text[n++] = '~';
        place.text[n++] = *name == '~' ? '0' : *name == '/' ? '1' : *name;
    }
    place.text[n] = '\0';
    return place;
}

static const char *
symbol_at(const void *arg, size_t i)
{
    const struct qdq_model_info *model = arg;
    for (size_t k = 0; k < model->n_inputs; k++)
        for (size_t a = 0; a < model->inputs[k].rank; a++) {
            const struct qdq_dim *dim = &model->inputs[k].dims[a];
            if (dim->value < 0 && dim->symbol && i-- == 0)
                return dim->symbol;
        }
    return NULL;
}

static const char *
input_at(const void *arg, size_t i)
{
    const struct qdq_model_info *model = arg;
    return i < model->n_inputs ? model->inputs[i].name : NULL;
}

static bool
is_known(const char *name, const char *(*known)(const void *, size_t), const void *arg)
{
    const char *word;
    for (size_t i = 0; (word = known(arg, i)); i++)
        if (strcmp(word, name) == 0)
            return true;
    return false;
}

/* --- dims ----------------------------------------------------------------- */

static void
fix_dim(struct qdq_dim *dim, const struct qdq_calibration_spec *c)
{
    for (size_t i = 0; i < c->n_dims; i++)
        if (dim->value < 0 && dim->symbol &&
            strcmp(dim->symbol, c->dims[i].symbol) == 0)
            dim->value = c->dims[i].size;
}

enum qdq_code
qdqi_inputs_fix(const struct qdq_model_info *model, const struct qdq_spec *spec,
                struct qdqi_arena *arena, struct qdq_model_info *ret,
                struct qdq_error *err)
{
    struct qdq_value *inputs = qdqi_arena_array(arena, model->n_inputs, sizeof *inputs);
    if (!inputs)
        return qdqi_no_memory(err);
    for (size_t i = 0; i < model->n_inputs; i++) {
        const struct qdq_value *from = &model->inputs[i];
        struct qdq_dim *dims = qdqi_arena_array(arena, from->rank, sizeof *dims);
        if (!dims)
            return qdqi_no_memory(err);
        for (size_t k = 0; k < from->rank; k++) {
            dims[k] = from->dims[k];
            fix_dim(&dims[k], &spec->calibration);
        }
        inputs[i] = *from;
        inputs[i].dims = dims;
    }
    *ret = *model;
    ret->inputs = inputs;
    return QDQ_OK;
}

/* --- checks --------------------------------------------------------------- */

struct names {
    /* for example "/calibration/dims" and "symbolic dimension" */
    const char *base, *what;
    const char *(*known)(const void *arg, size_t i);
};

static const struct names of_dims = {"/calibration/dims", "symbolic dimension",
                                     symbol_at};
static const struct names of_preprocess = {"/preprocess", "input", input_at};
static const struct names of_random = {"/calibration/random", "input", input_at};

static enum qdq_code
check_name(const struct names *names, const struct qdq_model_info *model,
           const char *name, const struct qdq_spec *spec,
           struct qdqi_warnings *warnings, struct qdqi_arena *arena,
           struct qdq_error *err)
{
    if (is_known(name, names->known, model))
        return QDQ_OK;
    struct place place = place_of(names->base, name);
    const char *near = qdq_nearest_word(name, names->known, model);
    if (!spec->unmatched_is_error)
        return qdqi_warn(warnings, arena, err, "unmatched", NULL,
                         "%s: the model has no %s of that name", place.text,
                         names->what);
    return qdq_error_set(err, QDQ_UNMATCHED, QDQ_AT_POINTER, place.text,
                         "the model's inputs have no %s '%.128s'%s%.128s%s",
                         names->what, name, near ? ", did you mean '" : "",
                         near ? near : "", near ? "'?" : "");
}

static enum qdq_code
check_draws(const struct qdq_model_info *model, const struct qdq_spec *spec,
            struct qdqi_arena *arena, struct qdq_error *err)
{
    struct qdq_model_info fixed;
    enum qdq_code code = qdqi_inputs_fix(model, spec, arena, &fixed, err);
    for (size_t i = 0; !code && i < fixed.n_inputs; i++) {
        const struct qdq_random_input *given =
            qdqi_random_given(&spec->calibration, fixed.inputs[i].name);
        struct place place = place_of(of_random.base, fixed.inputs[i].name);
        struct qdqi_draw draw;
        code = qdqi_draw_init(&fixed.inputs[i], given, place.text, &draw, err);
    }
    return code;
}

enum qdq_code
qdqi_inputs_check(const struct qdq_model_info *model, const struct qdq_spec *spec,
                  struct qdqi_warnings *warnings, struct qdqi_arena *arena,
                  struct qdq_error *err)
{
    const struct qdq_calibration_spec *c = &spec->calibration;
    enum qdq_code code = QDQ_OK;
    for (size_t i = 0; !code && i < c->n_dims; i++)
        code =
            check_name(&of_dims, model, c->dims[i].symbol, spec, warnings, arena, err);
    for (size_t i = 0; !code && i < spec->n_preprocess; i++)
        code = check_name(&of_preprocess, model, spec->preprocess[i].input, spec,
                          warnings, arena, err);
    for (size_t i = 0; !code && i < c->n_random; i++)
        code = check_name(&of_random, model, c->random[i].input, spec, warnings, arena,
                          err);
    return code || c->random_samples == 0 ? code : check_draws(model, spec, arena, err);
}
