/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "stages/frontier/costs.h"

#include "plan/placement/target.h"

#include <math.h>
#include <stdint.h>
#include <string.h>

#define NONE SIZE_MAX

/* The time of a conversion, where none was seen: that of any node, and of an element. */
static const double node_ms = 0.0015, element_ms = 0.33e-6;

/* A conversion that no cut makes, as a part of the float model's time. */
static const double never_ms = 1000;

/* Rounds over what was seen; a correction of noise goes half of the way in each. */
enum { ROUNDS = 8 };

/* One correction changes times of conversions by no more than this factor. */
static const double most_change = 2;

struct making {
    const struct qdqi_attempt *attempt;
    const struct qdqi_graph *graph;
    const struct qdqi_profiled *profiled;
    struct qdqi_arena *arena;
    size_t *owner; /* by node: the layer that its time counts for; NONE: no layer's */
    double *elements; /* by layer: of its output */
    bool *is_blocked; /* by layer: in float its output is in the runtime's own layout */
    struct qdqi_map *makers; /* from a name of a kernel to the node that it computes */
    double converted_ms, converted, reordered_ms, reordered;
    size_t n_converted;
    struct qdqi_costs *to;
};

/* --- whose time it is ---------------------------------------------------------- */

/* Kernels have the name of their node, or that of its output. */
static bool
index_nodes(struct making *m)
{
    bool ok = (m->makers = qdqi_map_new(m->arena));
    for (size_t i = 0; ok && i < m->graph->n_nodes; i++) {
        struct qdqi_node *node = &m->graph->nodes[i];
        ok = qdqi_map_put(m->makers, node->name, node);
        for (size_t k = 0; ok && k < node->proto->n_output; k++)
            if (node->outputs[k])
                ok = qdqi_map_put(m->makers, node->outputs[k]->name, node);
    }
    return ok;
}

/* Returns the model's node that a kernel computes; NONE: it is of the runtime's own. */
static size_t
node_of(const struct making *m, const struct qdqi_traced_node *kernel)
{
    char name[1024];
    const size_t n = m->profiled->names->own_length(kernel->name);
    if (n >= sizeof name)
        return NONE;
    memcpy(name, kernel->name, n);
    name[n] = '\0';
    const struct qdqi_node *node = qdqi_map_get(m->makers, name);
    return node ? (size_t)(node - m->graph->nodes) : NONE;
}

/* Marks the nodes with a kernel of their own in the run with integers. */
static bool *
mark_own_kernels(const struct making *m)
{
    const struct qdqi_trace *t = &m->profiled->integers;
    bool *own = qdqi_arena_array(m->arena, m->graph->n_nodes + 1, sizeof *own);
    for (size_t i = 0; own && i < t->n_nodes; i++) {
        const size_t node = node_of(m, &t->nodes[i]);
        if (node != NONE)
            own[node] = true;
    }
    return own;
}

/* Returns the owner of the first computed input, or NONE. */
static size_t
owner_before(const struct making *m, size_t i)
{
    const struct qdqi_node *node = &m->graph->nodes[i];
    for (size_t k = 0; k < node->proto->n_input; k++)
        if (node->inputs[k] && node->inputs[k]->producer >= 0)
            return m->owner[node->inputs[k]->producer];
    return NONE;
}

static bool
find_owners(struct making *m, const char *const *layers, size_t n)
{
    const struct qdq_plan_view *plan = &m->attempt->plan->view;
    const size_t n_nodes = m->graph->n_nodes;
    const bool *own = mark_own_kernels(m);
    bool *passes = qdqi_arena_array(m->arena, n_nodes + 1, sizeof *passes);
    m->owner = qdqi_arena_array(m->arena, n_nodes + 1, sizeof *m->owner);
    if (!own || !passes || !m->owner)
        return false;
    for (size_t i = 0; i < n_nodes; i++) {
        m->owner[i] = NONE;
        passes[i] = !own[i];
    }
    for (size_t i = 0, k = 0; i < plan->n_layers; i++) {
        const struct qdq_layer *layer = &plan->layers[i];
        passes[layer->node] |= layer->n_inputs > 0 || layer->n_outputs > 0;
        if (k < n && strcmp(layer->name, layers[k]) == 0)
            m->owner[layer->node] = k++;
    }
    for (size_t i = 0; i < n_nodes; i++)
        if (m->owner[i] == NONE && passes[i])
            m->owner[i] = owner_before(m, i);
    return true;
}

/* --- the times of kernels ------------------------------------------------------ */

static void
add_float_kernel(struct making *m, const struct qdqi_traced_node *kernel)
{
    const size_t node = node_of(m, kernel);
    const size_t layer = node == NONE ? NONE : m->owner[node];
    m->to->all_float_ms += kernel->least_ms;
    if (strncmp(kernel->op, "Reorder", 7) == 0) {
        m->reordered_ms += kernel->least_ms;
        m->reordered += kernel->made_bytes / sizeof(float);
    }
    if (layer == NONE) {
        m->to->rest_ms += kernel->least_ms;
        return;
    }
    m->to->placement.float_ms[layer] += kernel->least_ms;
    m->elements[layer] = kernel->made_bytes / sizeof(float);
    m->is_blocked[layer] = strstr(kernel->name, "_nchwc") != NULL;
}

/* Returns the layer that a conversion of the run with integers is there for, where all its
   neighbours that can be are in integers: the one that makes the tensor, or that reads it. A kernel
   for a whole pair has the name of one of its nodes. */
static size_t
owner_of_conversion(const struct making *m, const struct qdqi_traced_node *kernel)
{
    const struct qdqi_graph *paired = &m->profiled->model->graph;
    const struct qdqi_node *node = qdqi_map_get(paired->by_name, kernel->name);
    if (!node || !node->inputs[0])
        return NONE;
    if (strcmp(kernel->op, "DequantizeLinear") == 0) {
        if (node->inputs[0]->producer < 0)
            return NONE;
        node = &paired->nodes[node->inputs[0]->producer];
    }
    const struct qdqi_tensor *t =
        node->inputs[0] ? qdqi_map_get(m->graph->tensors, node->inputs[0]->name) : NULL;
    if (!t)
        return NONE;
    if (strcmp(kernel->op, "DequantizeLinear") == 0 && t->producer >= 0)
        return m->owner[t->producer];
    for (const struct qdqi_use *use = t->uses; use; use = use->next)
        if (m->owner[use->node] != NONE)
            return m->owner[use->node];
    return NONE;
}

static void
add_conversion(struct making *m, const struct qdqi_traced_node *kernel)
{
    const size_t layer = owner_of_conversion(m, kernel);
    m->converted_ms += kernel->least_ms;
    m->converted += strcmp(kernel->op, "DequantizeLinear") == 0
                        ? kernel->made_bytes / sizeof(float)
                        : kernel->made_bytes;
    m->n_converted++;
    if (layer != NONE)
        m->to->placement.integer_ms[layer] += kernel->least_ms;
}

static void
add_integer_kernel(struct making *m, const struct qdqi_traced_node *kernel)
{
    const size_t node = node_of(m, kernel);
    const size_t layer = node == NONE ? NONE : m->owner[node];
    if (qdqi_node_is_of(m->profiled->names, kernel, QDQ_NODE_CONVERSION)) {
        add_conversion(m, kernel);
        return;
    }
    if (layer == NONE)
        return;
    m->to->placement.integer_ms[layer] += kernel->least_ms;
    if (qdqi_node_is_of(m->profiled->names, kernel, QDQ_NODE_INTEGER) &&
        strncmp(kernel->op, "QLinear", 7) == 0)
        m->elements[layer] = kernel->made_bytes;
}

/* --- tensors between layers ---------------------------------------------------- */

static bool
has_reader(const struct qdqi_passed_tensor *t, size_t layer)
{
    for (size_t i = 0; i < t->n_to; i++)
        if (t->to[i] == layer)
            return true;
    return false;
}

/* Adds the readers of a layer's tensors, in which those of the layer's own nodes are none. */
static bool
add_readers(const struct making *m, const struct qdqi_tensor *tensor,
            struct qdqi_passed_tensor *t)
{
    size_t n = t->n_to;
    for (const struct qdqi_use *use = tensor->uses; use; use = use->next)
        n++;
    size_t *to = qdqi_arena_array(m->arena, n + 1, sizeof *to);
    if (!to)
        return false;
    if (t->n_to > 0)
        memcpy(to, t->to, t->n_to * sizeof *to);
    t->to = to;
    for (const struct qdqi_use *use = tensor->uses; use; use = use->next) {
        const size_t reader = m->owner[use->node];
        if (reader != NONE && reader != t->from && !has_reader(t, reader))
            to[t->n_to++] = reader;
    }
    return true;
}

static void
set_conversion(const struct making *m, struct qdqi_passed_tensor *t)
{
    /* Where pairs stand on inputs alone, a layer in integers has one whatever makes its input, and its
       time counts for that layer. The rest is a guess, which what is seen corrects. */
    if (!m->attempt->spec->target->hooks->decide_outputs) {
        t->quantize_ms = t->dequantize_ms =
            m->converted_ms / (double)m->to->placement.n;
        return;
    }
    const double elements = m->elements[t->from];
    const double left = m->converted_ms - (double)m->n_converted * node_ms;
    const double each =
        m->converted > 0 ? fmax(left / m->converted, element_ms / 4) : element_ms;
    const double reorder =
        m->is_blocked[t->from] && m->reordered > 0 ? m->reordered_ms / m->reordered : 0;
    t->quantize_ms = t->dequantize_ms = node_ms + elements * (each + reorder);
}

static bool
add_tensors(struct making *m)
{
    struct qdqi_placement_costs *c = &m->to->placement;
    struct qdqi_passed_tensor *all = qdqi_arena_array(m->arena, c->n + 1, sizeof *all);
    bool ok = all;
    for (size_t i = 0; ok && i < c->n; i++)
        all[i].from = i;
    for (size_t i = 0; ok && i < m->graph->n_nodes; i++) {
        const struct qdqi_node *node = &m->graph->nodes[i];
        for (size_t k = 0; ok && m->owner[i] != NONE && k < node->proto->n_output; k++)
            if (node->outputs[k])
                ok = add_readers(m, node->outputs[k], &all[m->owner[i]]);
    }
    c->tensors = all;
    for (size_t i = 0; ok && i < c->n; i++)
        if (all[i].n_to > 0) {
            set_conversion(m, &all[i]);
            all[c->n_tensors++] = all[i];
        }
    return ok;
}

/* --- all costs ----------------------------------------------------------------- */

static bool
allocate_layers(struct qdqi_placement_costs *c, size_t n, struct qdqi_arena *arena)
{
    c->n = n;
    c->float_ms = qdqi_arena_array(arena, n + 1, sizeof *c->float_ms);
    c->integer_ms = qdqi_arena_array(arena, n + 1, sizeof *c->integer_ms);
    c->noise = qdqi_arena_array(arena, n + 1, sizeof *c->noise);
    return c->float_ms && c->integer_ms && c->noise;
}

static bool
allocate(struct making *m, size_t n)
{
    m->elements = qdqi_arena_array(m->arena, n + 1, sizeof *m->elements);
    m->is_blocked = qdqi_arena_array(m->arena, n + 1, sizeof *m->is_blocked);
    return allocate_layers(&m->to->placement, n, m->arena) && m->elements &&
           m->is_blocked;
}

/* Sets the noise to parts of one. A layer of which nothing is known has some, too. */
static void
set_noise(struct qdqi_placement_costs *c, const double *noise)
{
    double sum = 0;
    for (size_t i = 0; i < c->n; i++)
        sum += isfinite(noise[i]) ? noise[i] : 0;
    const double least = sum > 0 ? sum / (100 * (double)c->n) : 1;
    for (size_t i = 0; i < c->n; i++)
        c->noise[i] = isfinite(noise[i]) ? fmax(noise[i], least) : least;
    sum = 0;
    for (size_t i = 0; i < c->n; i++)
        sum += c->noise[i];
    for (size_t i = 0; i < c->n; i++)
        c->noise[i] /= sum;
}

enum qdq_code
qdqi_costs_make(const struct qdqi_attempt *a, const char *const *layers, size_t n,
                const double *noise, const struct qdqi_profiled *profiled,
                struct qdqi_arena *arena, struct qdqi_costs *ret, struct qdq_error *err)
{
    *ret = (struct qdqi_costs){0};
    struct making m = {.attempt = a,
                       .graph = &a->model->graph,
                       .profiled = profiled,
                       .arena = arena,
                       .to = ret};
    if (!allocate(&m, n) || !index_nodes(&m) || !find_owners(&m, layers, n))
        return qdqi_no_memory(err);
    for (size_t i = 0; i < profiled->floats.n_nodes; i++)
        add_float_kernel(&m, &profiled->floats.nodes[i]);
    for (size_t i = 0; i < profiled->integers.n_nodes; i++)
        add_integer_kernel(&m, &profiled->integers.nodes[i]);
    set_noise(&ret->placement, noise);
    return add_tensors(&m) ? QDQ_OK : qdqi_no_memory(err);
}

/* --- by patterns ----------------------------------------------------------------- */

/* Sets the times of a pattern's layers, and passes a tensor from its first layer to the others that is too dear to
   convert. */
static void
add_pattern(struct qdqi_costs *to, const struct qdqi_layer_patterns *patterns,
            size_t pattern, double longer, size_t *others)
{
    struct qdqi_placement_costs *c = &to->placement;
    const double each = 1 / (double)patterns->sizes[pattern];
    const double integer =
        fmax(to->rest_ms * patterns->shares[pattern], -longer) * each;
    struct qdqi_passed_tensor *t = &c->tensors[c->n_tensors];
    *t = (struct qdqi_passed_tensor){.from = patterns->first[pattern],
                                     .to = others,
                                     .quantize_ms = never_ms,
                                     .dequantize_ms = never_ms};
    for (size_t i = 0; i < c->n; i++) {
        if (patterns->of[i] != pattern)
            continue;
        c->integer_ms[i] = integer;
        c->float_ms[i] = fmax(integer + longer * each, 0);
        if (i != t->from)
            others[t->n_to++] = i;
    }
    c->n_tensors += t->n_to > 0;
}

static void
add_pattern_pair(struct qdqi_costs *to, const struct qdqi_layer_patterns *patterns,
                 size_t pair, double apart)
{
    struct qdqi_placement_costs *c = &to->placement;
    if (apart > 0)
        c->tensors[c->n_tensors++] = (struct qdqi_passed_tensor){
            .from = patterns->first[patterns->pairs[pair].a],
            .to = &patterns->first[patterns->pairs[pair].b],
            .n_to = 1,
            .quantize_ms = apart,
            .dequantize_ms = apart};
}

enum qdq_code
qdqi_costs_of_patterns(const struct qdqi_layer_patterns *patterns,
                       const double *estimates, size_t n, const double *noise,
                       struct qdqi_arena *arena, struct qdqi_costs *ret,
                       struct qdq_error *err)
{
    struct qdqi_placement_costs *c = &ret->placement;
    *ret = (struct qdqi_costs){.all_float_ms = 1, .rest_ms = fmax(estimates[0], 0)};
    size_t *others = qdqi_arena_array(arena, n + 1, sizeof *others);
    c->tensors = qdqi_arena_array(arena, patterns->n + patterns->n_pairs + 1,
                                  sizeof *c->tensors);
    if (!others || !c->tensors || !allocate_layers(c, n, arena))
        return qdqi_no_memory(err);
    for (size_t i = 0; i < patterns->n; i++) {
        add_pattern(ret, patterns, i, estimates[1 + i], others);
        others += patterns->sizes[i];
    }
    for (size_t i = 0; i < patterns->n_pairs; i++)
        add_pattern_pair(ret, patterns, i, estimates[1 + patterns->n + i]);
    for (size_t i = 0; i < n; i++)
        ret->rest_ms -= c->integer_ms[i];
    set_noise(c, noise);
    return QDQ_OK;
}

/* --- what was seen ------------------------------------------------------------- */

double
qdqi_costs_ratio(const struct qdqi_costs *c, const struct qdqi_placement *p)
{
    return c->all_float_ms > 0 ? (c->rest_ms + p->ms) / c->all_float_ms : NAN;
}

/* Returns the time of the layers that two placements have in another form, as a part of the float model's; without
   a second one: of those that the first has in integers. */
static double
distance(const struct qdqi_costs *c, const bool *a, const bool *b)
{
    double ms = 0;
    for (size_t i = 0; i < c->placement.n; i++)
        if (a[i] != (b ? b[i] : true))
            ms += fmax(c->placement.float_ms[i], c->placement.integer_ms[i]);
    return ms / c->all_float_ms;
}

double
qdqi_costs_predict(const struct qdqi_costs *c, const struct qdqi_placement *placement,
                   const struct qdqi_seen_placement *seen, size_t n)
{
    static const double least = 1e-3; /* distances below are the same */
    struct qdqi_placement now = *placement;
    qdqi_placement_weigh(&c->placement, &now);
    const double ratio = qdqi_costs_ratio(c, &now);
    double weights = pow(fmax(distance(c, now.is_float, NULL), least), -2), errors = 0;
    for (size_t i = 0; i < n; i++) {
        struct qdqi_placement p = {.is_float = seen[i].is_float};
        if (isnan(seen[i].latency_ratio))
            continue;
        qdqi_placement_weigh(&c->placement, &p);
        const double weight =
            pow(fmax(distance(c, now.is_float, p.is_float), least), -2);
        weights += weight;
        errors += weight * (seen[i].latency_ratio - qdqi_costs_ratio(c, &p));
    }
    return ratio + errors / weights;
}

/* Scales the noise of the layers in integers towards the sum that was seen. */
static void
correct_noise(struct qdqi_placement_costs *c, const struct qdqi_seen_placement *seen,
              double part)
{
    struct qdqi_placement p = {.is_float = seen->is_float};
    qdqi_placement_weigh(c, &p);
    if (!(p.noise > 0) || !(seen->noise > 0))
        return;
    const double factor = pow(seen->noise / p.noise, part);
    for (size_t i = 0; i < c->n; i++)
        if (!seen->is_float[i])
            c->noise[i] *= factor;
}

/* Scales the times in integers, so that the placement with all layers in integers takes the time
   that was seen. */
static void
correct_integers(struct qdqi_costs *c, const struct qdqi_seen_placement *seen)
{
    double sum = 0;
    const double wanted = seen->latency_ratio * c->all_float_ms - c->rest_ms;
    for (size_t i = 0; i < c->placement.n; i++)
        sum += c->placement.integer_ms[i];
    for (size_t i = 0; i < c->placement.n && wanted > 0 && sum > 0; i++)
        c->placement.integer_ms[i] *= wanted / sum;
}

/* Scales the times of conversions by what placements with some of them took. */
static void
correct_conversions(struct qdqi_costs *c, const struct qdqi_seen_placement *seen)
{
    struct qdqi_placement p = {.is_float = seen->is_float};
    struct qdqi_placement_costs *costs = &c->placement;
    const size_t n = costs->n_tensors;
    qdqi_placement_weigh(costs, &p);
    const double all = c->rest_ms + p.ms;
    costs->n_tensors = 0;
    qdqi_placement_weigh(costs, &p);
    costs->n_tensors = n;
    const double conversions = all - c->rest_ms - p.ms;
    const double excess = seen->latency_ratio * c->all_float_ms - all;
    if (!(conversions > 0) || isnan(excess))
        return;
    const double factor =
        fmin(fmax(1 + excess / conversions, 1 / most_change), most_change);
    for (size_t i = 0; i < n; i++) {
        costs->tensors[i].quantize_ms *= factor;
        costs->tensors[i].dequantize_ms *= factor;
    }
}

void
qdqi_costs_correct(struct qdqi_costs *c, const struct qdqi_seen_placement *seen,
                   size_t n)
{
    if (n > 0 && !isnan(seen[0].latency_ratio))
        correct_integers(c, &seen[0]);
    if (n > 1)
        correct_conversions(c, &seen[n - 1]);
    for (int round = 0; round < ROUNDS; round++)
        for (size_t i = 0; i < n; i++)
            correct_noise(&c->placement, &seen[i], n > 1 ? 0.5 : 1);
}
