/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "stages/calibrate/moments.h"

#include "graph/layers/moment_form.h"
#include "plan/placement/moment_memory.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* --- layers --------------------------------------------------------------- */

/* The layers of a weight must use it in one way. */
static void
check_use(struct qdqi_layer_moments *m, const struct qdqi_moment_form *f,
          const char *source)
{
    const bool is_first = !m->sources;
    if (!m->why)
        m->why = f->why;
    if (m->why)
        return;
    if (!is_first && (f->groups != m->groups || f->outputs_last != m->outputs_last))
        m->why = "layers that share it use it in different ways";
    m->groups = f->groups;
    m->outputs_last = f->outputs_last;
    m->sources = source;
}

/* Adds a layer to the moments of its weight, which are not allocated yet. */
static enum qdq_code
add_layer(struct qdqi_collection *c, const struct qdq_layer *layer,
          struct qdq_error *err)
{
    struct qdqi_attempt *a = c->attempt;
    struct qdqi_weight_moments *all = a->moments;
    const struct qdqi_node *node = &a->model->graph.nodes[layer->node];
    const char *weight = node->inputs[layer->weight_input]->name;
    struct qdqi_layer_moments *m = qdqi_map_get(all->by_weight, weight);
    const struct qdqi_moment_form f = qdqi_moment_form_of(node, layer);
    if (!m) {
        m = qdqi_arena_alloc(a->scratch, sizeof *m);
        if (!m || !qdqi_map_put(all->by_weight, weight, m))
            return qdqi_no_memory(err);
        *(all->first ? &c->last->next : &all->first) = m;
        c->last = m;
    }
    const char *source =
        f.why ? "" : qdqi_moment_source(a->scratch, node->inputs[0], &f);
    if (source && m->sources)
        source = qdqi_arena_printf(a->scratch, "%s\n%s", m->sources, source);
    if (!source)
        return qdqi_no_memory(err);
    check_use(m, &f, source);
    return QDQ_OK;
}

/* Allocates the moments of a weight, of which the form of a layer is given, unless another's
   are the same. */
static enum qdq_code
own_or_share(struct qdqi_collection *c, struct qdqi_layer_moments *m,
             const struct qdqi_moment_form *f, struct qdq_error *err)
{
    m->owner = qdqi_map_get(c->by_sources, m->sources);
    if (m->owner) {
        m->moments = m->owner->moments;
        m->why = m->owner->why;
        return QDQ_OK;
    }
    if (!qdqi_map_put(c->by_sources, m->sources, m))
        return qdqi_no_memory(err);
    const uint64_t bytes = qdqi_moment_form_bytes(f);
    if (bytes > c->most - c->bytes) {
        m->why = "the moments of all layers would take more than 1 GiB, and more than "
                 "half of what their weights take";
        return QDQ_OK;
    }
    c->bytes += bytes;
    m->moments = calloc(f->groups, sizeof *m->moments);
    m->groups = 0; /* those to be freed */
    for (; m->moments && m->groups < f->groups; m->groups++)
        if (!qdqi_moment_init(&m->moments[m->groups], f->k))
            return qdqi_no_memory(err);
    return m->moments ? QDQ_OK : qdqi_no_memory(err);
}

/* Gives the layer a slot, if its weight has moments of its own. */
static enum qdq_code
add_slot(struct qdqi_collection *c, const struct qdq_layer *layer,
         struct qdq_error *err)
{
    const struct qdqi_attempt *a = c->attempt;
    const struct qdqi_node *node = &a->model->graph.nodes[layer->node];
    struct qdqi_layer_moments *m =
        qdqi_map_get(a->moments->by_weight, node->inputs[layer->weight_input]->name);
    if (m->why || m->owner)
        return QDQ_OK;
    const struct qdqi_moment_form f = qdqi_moment_form_of(node, layer);
    enum qdq_code code = m->moments ? QDQ_OK : own_or_share(c, m, &f, err);
    if (code || m->why || m->owner)
        return code;
    struct qdqi_patches *p = qdqi_arena_alloc(a->scratch, sizeof *p);
    if (!p)
        return qdqi_no_memory(err);
    *p = (struct qdqi_patches){
        .window = f.window, .groups = m->groups, .moments = m->moments};
    c->tensors[c->all.n] = node->inputs[0];
    c->owners[c->all.n] = m;
    c->all.rows[c->all.n++] = p;
    return QDQ_OK;
}

/* Says once for each weight that its moment is cut. */
static enum qdq_code
warn_blocks(struct qdqi_attempt *a, const char *weight,
            const struct qdqi_layer_moments *m, struct qdq_error *err)
{
    if (m->key || m->why || m->owner || m->moments->block == m->moments->k)
        return QDQ_OK;
    return qdqi_attempt_warn(
        a, err, "moment_in_blocks", weight,
        "a row of %zu elements is longer than %d: products of elements of "
        "different blocks of %zu count as 0 when the weight is rounded",
        m->moments->k, QDQI_MOMENT_WHOLE, m->moments->block);
}

/*
 * Returns the hash of the names of all tensors that are observed beside the moments, and of those
 * that have moments. They decide what the runtime fuses, and with that the last bits of the moments.
 */
static enum qdq_code
hash_observed(const struct qdqi_collection *c, uint64_t *ret, struct qdq_error *err)
{
    const struct qdqi_attempt *a = c->attempt;
    const size_t n = a->plan->view.n_tensors;
    uint64_t *sums = qdqi_arena_array(a->scratch, n + c->all.n, sizeof *sums);
    size_t n_sums = 0;
    if (!sums)
        return qdqi_no_memory(err);
    for (size_t i = 0; i < n; i++) {
        const char *name = a->plan->view.tensors[i];
        if (a->plan->activations[i].leader == i && !a->plan->activations[i].has_range)
            sums[n_sums++] = qdqi_observations_sum(name, strlen(name));
    }
    for (size_t i = 0; i < c->all.n; i++)
        sums[n_sums++] =
            qdqi_observations_sum(c->tensors[i]->name, strlen(c->tensors[i]->name));
    *ret = qdqi_observations_sum(sums, n_sums * sizeof *sums);
    return QDQ_OK;
}

/* Returns what such a hash tells, by a plan alone and in any order. */
static uint64_t
hash_planned(const struct qdqi_attempt *a)
{
    const struct qdq_plan_view *plan = &a->plan->view;
    uint64_t sum = 0;
    for (size_t i = 0; i < plan->n_tensors; i++) {
        const struct qdqi_planned_tensor *t = &a->plan->activations[i];
        if (t->leader == i && !t->has_range)
            sum += qdqi_observations_sum(plan->tensors[i], strlen(plan->tensors[i]));
    }
    for (size_t i = 0; i < plan->n_layers; i++) {
        const struct qdq_layer *layer = &plan->layers[i];
        if (layer->weight_input >= 0)
            sum += ~qdqi_observations_sum(layer->name, strlen(layer->name));
    }
    return sum;
}

bool
qdqi_moments_are_stale(const struct qdqi_attempt *a)
{
    return a->moments && a->moments->observed != hash_planned(a);
}

/* Sets the keys of the weights' moments, which begin with the hash of what is observed. */
static enum qdq_code
set_keys(struct qdqi_attempt *a, const struct qdqi_collection *c, struct qdq_error *err)
{
    const struct qdq_plan_view *plan = &a->plan->view;
    uint64_t observed = 0;
    enum qdq_code code = hash_observed(c, &observed, err);
    for (size_t i = 0; i < plan->n_layers && !code; i++) {
        const struct qdq_layer *layer = &plan->layers[i];
        if (layer->weight_input < 0)
            continue;
        const struct qdqi_node *node = &a->model->graph.nodes[layer->node];
        const char *weight = node->inputs[layer->weight_input]->name;
        struct qdqi_layer_moments *m = qdqi_map_get(a->moments->by_weight, weight);
        if ((code = warn_blocks(a, weight, m, err)))
            return code;
        m->key = m->key ? qdqi_arena_printf(a->scratch, "%s\n%s", m->key, layer->name)
                        : qdqi_arena_printf(a->scratch, "%016" PRIx64 "\n%s\n%s",
                                            observed, weight, layer->name);
        if (!m->key)
            return qdqi_no_memory(err);
    }
    return code;
}

static enum qdq_code
plan_layers(struct qdqi_attempt *a, struct qdqi_collection *c, struct qdq_error *err)
{
    size_t n = a->plan->view.n_layers;
    const struct qdq_layer *layers = a->plan->view.layers;
    struct qdqi_arena *arena = a->scratch;
    enum qdq_code code = QDQ_OK;
    *c = (struct qdqi_collection){
        .attempt = a,
        .tensors = qdqi_arena_array(arena, n, sizeof(*c->tensors)),
        .owners = qdqi_arena_array(arena, n, sizeof(*c->owners)),
        .all.rows = qdqi_arena_array(arena, n, sizeof(*c->all.rows)),
        .by_sources = qdqi_map_new(arena),
        .most = qdqi_most_moments(a->plan)};
    struct qdqi_weight_moments *moments = qdqi_arena_alloc(arena, sizeof *moments);
    if (moments)
        moments->by_weight = qdqi_map_new(arena);
    if (!c->tensors || !c->owners || !c->all.rows || !c->by_sources || !moments ||
        !moments->by_weight)
        return qdqi_no_memory(err);
    a->moments = moments;
    moments->observed = hash_planned(a);
    for (size_t i = 0; i < n && !code; i++)
        if (layers[i].weight_input >= 0)
            code = add_layer(c, &layers[i], err);
    for (size_t i = 0; i < n && !code; i++)
        if (layers[i].weight_input >= 0)
            code = add_slot(c, &layers[i], err);
    return code ? code : set_keys(a, c, err);
}

enum qdq_code
qdqi_moments_plan(struct qdqi_attempt *a, struct qdqi_collection *ret,
                  struct qdq_error *err)
{
    *ret = (struct qdqi_collection){.attempt = a};
    if (!qdqi_moments_wanted(a))
        return QDQ_OK;
    enum qdq_code code = plan_layers(a, ret, err);
    if (!code && ret->all.n > 0 && !a->context->dataset)
        return qdq_error_set(err, QDQ_NO_CALIBRATION, QDQ_AT_POINTER,
                             a->spec->smooth_awq        ? "/smooth"
                             : qdq_spec_rounds(a->spec) ? "/weights/rounding"
                                                        : "/bias_correction",
                             "AWQ, rounding and the correction of biases need "
                             "calibration data, and there is none");
    return code;
}

/* --- collecting ----------------------------------------------------------- */

bool
qdqi_moments_are_kept(const struct qdqi_collection *c,
                      const struct qdqi_observations *earlier)
{
    for (size_t i = 0; i < c->all.n; i++)
        if (!earlier->bytes || !qdqi_map_get(earlier->moments, c->owners[i]->key))
            return false;
    return true;
}

void
qdqi_moments_reuse(struct qdqi_collection *c, const struct qdqi_observations *earlier)
{
    size_t n = 0;
    for (size_t i = 0; i < c->all.n; i++) {
        struct qdqi_layer_moments *m = c->owners[i];
        if (!m->is_kept)
            m->is_kept = qdqi_observations_restore_moments(earlier, m->key, m->groups,
                                                           m->moments);
        if (m->is_kept)
            continue;
        c->tensors[n] = c->tensors[i];
        c->owners[n] = m;
        c->all.rows[n++] = c->all.rows[i];
    }
    c->all.n = n;
}

enum qdq_code
qdqi_moments_begin(struct qdqi_collection *c, int64_t samples, bool may_reject,
                   struct qdq_error *err)
{
    c->all.holds = may_reject;
    c->all.per_sample = samples > 0 && samples < QDQI_MOMENT_SAMPLED
                            ? (size_t)((QDQI_MOMENT_SAMPLED + samples - 1) / samples)
                            : 1;
    for (size_t i = 0; i < c->all.n; i++)
        if (!qdqi_patches_begin(c->all.rows[i]))
            return qdqi_no_memory(err);
    return QDQ_OK;
}

void
qdqi_moments_restart(struct qdqi_collection *c)
{
    qdqi_patches_discard_held(&c->all);
    for (size_t i = 0; i < c->all.n; i++)
        qdqi_patches_reset(c->all.rows[i]);
}

/* Does the parts on the threads that the caller lends. */
static void
share(void *arg, void (*do_part)(void *part_arg, size_t i), size_t n, void *part_arg)
{
    const struct qdq_engine *engine = arg;
    const struct qdq_executor *e = engine->executor;
    if (e && engine->threads > 1 && n > 1)
        e->run(e->arg, engine->threads, n, do_part, part_arg);
    else
        for (size_t i = 0; i < n; i++)
            do_part(part_arg, i);
}

void
qdqi_moments_expect(struct qdqi_collection *c, int64_t samples)
{
    c->all.samples = samples;
    qdqi_patches_discard_held(&c->all);
}

enum qdq_code
qdqi_moments_settle(struct qdqi_collection *c, bool keep, struct qdq_error *err)
{
    if (!keep)
        qdqi_patches_discard_held(&c->all);
    else if (!qdqi_patches_take_held(&c->all, share, c->attempt->context->engine))
        return qdq_error_set(err, QDQ_RUN_FAILED, QDQ_AT_NOTHING, NULL,
                             "the input of a layer does not fit its weight");
    return QDQ_OK;
}

void
qdqi_moments_finish(struct qdqi_collection *c)
{
    qdqi_patches_free_held(&c->all);
    for (size_t i = 0; i < c->all.n; i++) {
        qdqi_patches_finish(c->all.rows[i], share, c->attempt->context->engine);
        qdqi_patches_fini(c->all.rows[i]);
    }
}

enum qdq_code
qdqi_moments_warn(const struct qdqi_collection *c, struct qdq_error *err)
{
    size_t n = 0;
    const struct qdqi_moment *worst = NULL;
    const char *tensor = NULL;
    for (size_t i = 0; i < c->all.n; i++) {
        const struct qdqi_moment *m = c->owners[i]->moments;
        const bool is_short = m->rows > 0 && m->rows < m->k;
        n += is_short;
        if (is_short && (!worst || m->rows * worst->k < worst->rows * m->k)) {
            worst = m;
            tensor = c->tensors[i]->name;
        }
    }
    return worst
               ? qdqi_attempt_warn(
                     c->attempt, err, "few_rows", tensor,
                     "the samples have %" PRIu64 " rows of %zu elements for it, and "
                     "fewer rows than elements for %zu tensors: rounding that goes by "
                     "them fits these samples more than other data",
                     worst->rows, worst->k, n)
               : QDQ_OK;
}

const struct qdqi_kept_moments *
qdqi_moments_new(const struct qdqi_collection *c,
                 const struct qdqi_observations *earlier)
{
    struct qdqi_kept_moments *first = NULL;
    const struct qdqi_weight_moments *all = c->attempt->moments;
    for (struct qdqi_layer_moments *m = all ? all->first : NULL; m; m = m->next) {
        struct qdqi_kept_moments *k;
        if (m->why || m->is_kept || m->owner ||
            (earlier->bytes && qdqi_map_get(earlier->moments, m->key)) ||
            !(k = qdqi_arena_alloc(c->attempt->scratch, sizeof *k)))
            continue;
        *k = (struct qdqi_kept_moments){m->key, m->groups, m->moments, first};
        first = k;
    }
    return first;
}
