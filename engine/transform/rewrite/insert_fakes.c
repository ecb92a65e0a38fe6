/* SPDX-License-Identifier: Apache-2.0 */
/* The model with a FakeQuant in the place of each pair, for what-ifs. */
#include "config.h"
#include "transform/rewrite/insert.h"

#include "graph/edit/edit.h"

struct fakes {
    const struct qdq_model *source;
    const struct qdq_plan *plan;
    const struct qdqi_scales *scales;
    struct qdqi_edit *edit;
    struct qdqi_fake_place *places;
    size_t n;
    /* name of an activation that is an output of the graph -> name that its maker gives
       it */
    struct qdqi_map *raw;
    const struct qdq_layer **layers; /* by node; NULL: it is no layer */
};

/* Adds a Cast of the tensor to the type, because FakeQuant supports float32 only.
   Returns the name of the Cast's output. */
static const char *
add_cast(struct fakes *f, size_t at, const char *tensor, enum qdqi_dtype dtype)
{
    const char *name = qdqi_edit_name(f->edit, tensor, "_FakeQuant_Cast");
    const char *output = qdqi_edit_name(f->edit, tensor, "_FakeQuant_Cast_Output");
    Onnx__NodeProto *node =
        qdqi_edit_add_node(f->edit, at, "Cast", name, &tensor, 1, output);
    qdqi_edit_add_int(f->edit, node, "to", (int64_t)dtype);
    return output;
}

static bool
is_half(const struct fakes *f, const struct qdqi_fake_place *place)
{
    if (place->kind == QDQI_FAKE_BIAS || place->kind == QDQI_FAKE_INT_BIAS)
        return false;
    return (place->kind == QDQI_FAKE_WEIGHT
                ? f->plan->weights[place->planned].tensor->dtype
                : f->plan->activations[place->planned].dtype) == QDQI_FLOAT16;
}

/* Adds a FakeQuant of a tensor at an input of a node. Returns the name of its output. */
static const char *
add_fake_of(struct fakes *f, const char *tensor, size_t node, int input,
            struct qdqi_fake_place place)
{
    place.node = node;
    place.input = input;
    bool half = is_half(f, &place);
    if (half)
        tensor = add_cast(f, node, tensor, QDQI_FLOAT32);
    const char *name = qdqi_edit_name(f->edit, tensor, "_FakeQuant");
    const char *output = qdqi_edit_name(f->edit, tensor, "_FakeQuant_Output");
    Onnx__NodeProto *fake =
        qdqi_edit_add_node(f->edit, node, QDQI_FAKE_QUANT, name, &tensor, 1, output);
    qdqi_edit_set_domain(fake, (char *)(uintptr_t)QDQI_DOMAIN);
    qdqi_edit_add_int(f->edit, fake, "slot", (int64_t)f->n);
    if (half)
        output = add_cast(f, node, output, QDQI_FLOAT16);
    qdqi_edit_set_input(f->edit, node, (size_t)input, output);
    f->places[f->n++] = place;
    return output;
}

/* Adds a FakeQuant at an input of a node, or two where its activation is converted. */
static void
add_fake(struct fakes *f, size_t node, int input, struct qdqi_fake_place place)
{
    const char *given = f->source->graph.nodes[node].inputs[input]->name;
    const char *raw = qdqi_map_get(f->raw, given), *tensor = raw ? raw : given;
    const struct qdqi_planned_tensor *row = place.kind == QDQI_FAKE_ACTIVATION
                                                ? &f->plan->activations[place.planned]
                                                : NULL;
    if (row && row->conversion == QDQI_SECOND_FORMAT) {
        struct qdqi_fake_place first = place;
        first.planned = row->other;
        tensor = add_fake_of(f, tensor, node, input, first);
    }
    add_fake_of(f, tensor, node, input, place);
}

/* Adds a FakeQuant of the layer's bias if that is stored as integers. Returns whether it
   is. */
static bool
fake_integer_bias(struct fakes *f, size_t i)
{
    for (size_t k = 0; f->scales->biases && k < f->plan->n_biases; k++) {
        const struct qdqi_planned_bias *b = &f->plan->biases[k];
        if (b->layer != i || !f->scales->biases[k].integers)
            continue;
        add_fake(f, f->plan->view.layers[i].node, b->input,
                 (struct qdqi_fake_place){
                     .layer = i, .kind = QDQI_FAKE_INT_BIAS, .planned = k});
        return true;
    }
    return false;
}

static void
fake_layer(struct fakes *f, size_t i)
{
    const struct qdq_layer *layer = &f->plan->view.layers[i];
    for (size_t k = 0; k < layer->n_inputs; k++)
        add_fake(f, layer->node, layer->quantized_inputs[k],
                 (struct qdqi_fake_place){.layer = i,
                                          .kind = QDQI_FAKE_ACTIVATION,
                                          .planned = layer->input_rows[k]});
    if (layer->weight_input >= 0)
        add_fake(f, layer->node, layer->weight_input,
                 (struct qdqi_fake_place){.layer = i,
                                          .kind = QDQI_FAKE_WEIGHT,
                                          .planned = layer->weight_row});
    bool whole = fake_integer_bias(f, i);
    for (size_t k = 0; k < f->scales->n_shifted; k++)
        if (f->scales->shifted[k].layer == i &&
            !(whole && f->scales->shifted[k].node == layer->node))
            add_fake(f, f->scales->shifted[k].node, f->scales->shifted[k].input,
                     (struct qdqi_fake_place){
                         .layer = i, .kind = QDQI_FAKE_BIAS, .planned = k});
}

/* Gives an activation that is an output of the graph another name where it is made, so
   that a FakeQuant can make the output. */
static bool
rename_output(struct fakes *f, const struct qdqi_planned_tensor *planned)
{
    const struct qdqi_tensor *t = planned->tensor;
    if (!planned->everywhere || !t->is_output || t->producer < 0 ||
        planned->dtype != QDQI_FLOAT32)
        return true;
    const struct qdqi_node *node = &f->source->graph.nodes[t->producer];
    const char *raw = qdqi_edit_name(f->edit, t->name, "_FakeQuant_Input");
    if (!raw || !qdqi_map_put(f->raw, t->name, (void *)(uintptr_t)raw))
        return false;
    for (size_t i = 0; i < node->proto->n_output; i++)
        if (node->outputs[i] == t)
            qdqi_edit_set_output(f->edit, (size_t)t->producer, i, raw);
    return true;
}

static void
fake_output(struct fakes *f, size_t row)
{
    const struct qdqi_tensor *t = f->plan->activations[row].tensor;
    const char *raw = qdqi_map_get(f->raw, t->name);
    if (!raw)
        return;
    Onnx__NodeProto *fake = qdqi_edit_add_node(
        f->edit, qdqi_edit_behind(f->source, t), QDQI_FAKE_QUANT,
        qdqi_edit_name(f->edit, t->name, "_FakeQuant"), &raw, 1, t->name);
    qdqi_edit_set_domain(fake, (char *)(uintptr_t)QDQI_DOMAIN);
    qdqi_edit_add_int(f->edit, fake, "slot", (int64_t)f->n);
    f->places[f->n++] = (struct qdqi_fake_place){.layer = f->plan->view.n_layers,
                                                 .kind = QDQI_FAKE_ACTIVATION,
                                                 .planned = row,
                                                 .node = (size_t)t->producer,
                                                 .input = -1};
}

static bool
is_planned_edge(const struct qdq_layer *layer, int input)
{
    for (size_t i = 0; layer && i < layer->n_inputs; i++)
        if (layer->quantized_inputs[i] == input)
            return true;
    return false;
}

/* Adds a FakeQuant for each other reader of an activation that all read from its pair. */
static void
fake_readers(struct fakes *f, size_t row)
{
    const struct qdqi_planned_tensor *planned = &f->plan->activations[row];
    if (!planned->everywhere)
        return;
    for (const struct qdqi_use *use = planned->tensor->uses; use; use = use->next)
        if (!is_planned_edge(f->layers[use->node], use->input))
            add_fake(f, use->node, use->input,
                     (struct qdqi_fake_place){.layer = f->plan->view.n_layers,
                                              .kind = QDQI_FAKE_ACTIVATION,
                                              .planned = row});
    fake_output(f, row);
}

/* Returns the largest number of places. */
static size_t
count_places(const struct fakes *f)
{
    const struct qdq_plan_view *plan = &f->plan->view;
    size_t n = f->scales->n_shifted + f->plan->n_biases;
    for (size_t i = 0; i < plan->n_layers; i++)
        n += 2 * plan->layers[i].n_inputs + 1;
    for (size_t i = 0; i < plan->n_tensors; i++) {
        const struct qdqi_use *use = f->plan->activations[i].tensor->uses;
        for (n++; use; use = use->next)
            n += 2;
    }
    return n;
}

enum qdq_code
qdqi_insert_fakes(const struct qdq_model *source, const struct qdq_plan *plan,
                  const struct qdqi_scales *scales, struct qdqi_arena *arena,
                  struct qdqi_fake_place **ret_places, size_t *ret_n,
                  const Onnx__ModelProto **ret, struct qdq_error *err)
{
    struct fakes f = {.source = source,
                      .plan = plan,
                      .scales = scales,
                      .edit = qdqi_edit_new(source, arena),
                      .raw = qdqi_map_new(arena)};
    const struct qdq_plan_view *view = &plan->view;
    f.places = qdqi_arena_array(arena, count_places(&f), sizeof *f.places);
    f.layers = qdqi_arena_array(arena, source->graph.n_nodes, sizeof *f.layers);
    bool ok = f.places && f.layers && f.raw;
    for (size_t i = 0; ok && i < view->n_layers; i++)
        f.layers[view->layers[i].node] = &view->layers[i];
    for (size_t i = 0; ok && i < qdqi_plan_tensors(plan); i++)
        ok = rename_output(&f, &plan->activations[i]);
    if (!ok)
        return qdqi_no_memory(err);
    for (size_t i = 0; i < view->n_layers; i++)
        fake_layer(&f, i);
    for (size_t i = 0; i < qdqi_plan_tensors(plan); i++)
        fake_readers(&f, i);
    qdqi_edit_import(f.edit, QDQI_DOMAIN, 1);
    *ret_places = f.places;
    *ret_n = f.n;
    return qdqi_edit_finish(f.edit, ret, err);
}
