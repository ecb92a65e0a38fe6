/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Gives the layers that multiply by one matrix of constants one form, so that its integers are
 * stored once (the hook `ties` of plan/placement/target.h):
 *
 *   x W           MatMul, or Gemm: a MatMul that reads W, and the Add of a bias
 *   x transposed  MatMul or Gemm behind a Transpose, or Gemm with transB: a MatMul that reads one
 *                 Transpose of W, and the Add of a bias
 *
 * A matrix is meant whose rows Gathers select, as a table of embeddings that several heads read, or
 * that layers alone read.
 */
#include "config.h"
#include "transform/prepare/prepare.h"

#include "files/model/constant.h"
#include "graph/edit/edit.h"
#include "graph/layers/operators.h"
#include "plan/placement/target.h"

#include <string.h>

enum { WEIGHT = 1, BIAS = 2, OPSET_MIN = 13 };

/* The ways in which layers multiply by a matrix. */
enum { DIRECT, TURNED, N_WAYS };

struct tying {
    const struct qdq_model *model;
    const struct qdq_spec *spec;
    struct qdqi_edit *edit;
    unsigned means; /* QDQI_TIES_… */
    bool any;
};

/* How a matrix is read. */
struct readers {
    const struct qdqi_tensor *matrix;
    size_t n[N_WAYS];       /* layers */
    size_t n_gemms[N_WAYS]; /* of these */
    size_t n_transposes;
    bool selects[N_WAYS]; /* rows of the matrix, of its transpose */
    bool others;
};

/* --- who reads a matrix ----------------------------------------------------------- */

/* Returns whether an entry of the spec selects Gemm by its operator. */
static bool
selects_gemms(const struct qdq_spec *spec)
{
    for (size_t i = 0; i < spec->n_layers; i++)
        for (size_t k = 0; k < spec->layers[i].n_names; k++)
            if (strcmp(spec->layers[i].names[k], "Gemm") == 0)
                return true;
    return false;
}

static bool
is_plain_gemm(const struct qdqi_node *node)
{
    return qdqi_node_is(node->proto, "Gemm") && qdqi_gemm_is_unscaled(node->proto) &&
           !qdqi_node_int(node->proto, "transA", 0);
}

static bool
selects_rows(const struct qdqi_node *node)
{
    const int64_t axis = qdqi_node_int(node->proto, "axis", 0);
    return qdqi_node_is(node->proto, "Gather") && (axis == 0 || axis == -2);
}

static void
count_use(struct readers *r, const struct qdqi_node *node, int input, int way)
{
    const bool gemm = is_plain_gemm(node);
    if (node->scope != 0)
        r->others = true;
    else if (input == WEIGHT && (gemm || qdqi_node_is(node->proto, "MatMul"))) {
        way ^= gemm && qdqi_node_int(node->proto, "transB", 0);
        r->n[way]++;
        r->n_gemms[way] += gemm;
    } else if (input == 0 && selects_rows(node))
        r->selects[way] = true;
    else
        r->others = true;
}

/* Returns whether the node is a Transpose of the matrix that nodes of the main graph alone read. */
static bool
is_transpose(const struct qdqi_node *node)
{
    return qdqi_swaps_axes(node) && node->scope == 0 && node->outputs[0] &&
           !node->outputs[0]->is_output && !node->outputs[0]->is_captured;
}

static struct readers
find_readers(const struct tying *t, const struct qdqi_tensor *matrix)
{
    const struct qdqi_node *nodes = t->model->graph.nodes;
    struct readers r = {.matrix = matrix,
                        .others = matrix->is_output || matrix->is_captured};
    for (const struct qdqi_use *use = matrix->uses; use; use = use->next) {
        const struct qdqi_node *node = &nodes[use->node];
        if (!is_transpose(node)) {
            count_use(&r, node, use->input, DIRECT);
            continue;
        }
        r.n_transposes++;
        for (const struct qdqi_use *next = node->outputs[0]->uses; next;
             next = next->next)
            count_use(&r, &nodes[next->node], next->input, TURNED);
    }
    return r;
}

/* --- the one form ------------------------------------------------------------------ */

/* Makes a MatMul of a Gemm, and an Add of its bias. */
static void
write_product(struct tying *t, size_t i)
{
    static const char *const gone[] = {"transA", "transB", "alpha", "beta"};
    const struct qdqi_node *node = &t->model->graph.nodes[i];
    const struct qdqi_tensor *out = node->outputs[0];
    const bool biased = node->proto->n_input > BIAS && node->inputs[BIAS];
    for (size_t k = 0; k < sizeof gone / sizeof *gone; k++)
        qdqi_edit_retype(t->edit, i, "MatMul", "", gone[k]);
    if (node->proto->n_input > BIAS)
        qdqi_edit_drop_last_input(t->edit, i);
    if (!biased)
        return;
    const char *inputs[] = {qdqi_edit_name(t->edit, out->name, "_product"),
                            node->inputs[BIAS]->name};
    qdqi_edit_set_output(t->edit, i, 0, inputs[0]);
    qdqi_edit_add_node(t->edit, qdqi_edit_behind(t->model, out), "Add",
                       qdqi_edit_name(t->edit, node->name, "_bias"), inputs, 2,
                       out->name);
}

/* Returns the name of a new transpose of the matrix, which is made in front of all readers. */
static const char *
make_transpose(struct tying *t, const struct qdqi_tensor *matrix)
{
    static const int64_t swapped[] = {1, 0};
    const char *made = qdqi_edit_name(t->edit, matrix->name, "_turned");
    Onnx__NodeProto *node = qdqi_edit_add_node(
        t->edit, qdqi_edit_before_uses(t->model, matrix), "Transpose",
        qdqi_edit_name(t->edit, matrix->name, "_turned"), &matrix->name, 1, made);
    qdqi_edit_add_ints(t->edit, node, "perm", 2, swapped);
    return made;
}

static void
write_use(struct tying *t, const struct qdqi_use *use, int by, int way,
          const char *name)
{
    const struct qdqi_node *node = &t->model->graph.nodes[use->node];
    const bool gemm = is_plain_gemm(node);
    if (use->input != WEIGHT || (!gemm && !qdqi_node_is(node->proto, "MatMul")) ||
        (by ^ (gemm && qdqi_node_int(node->proto, "transB", 0))) != way)
        return;
    qdqi_edit_set_input(t->edit, use->node, WEIGHT, name);
    if (gemm)
        write_product(t, use->node);
}

/* Makes MatMuls that read the same tensor of all layers that multiply by a matrix in one way. */
static void
write_way(struct tying *t, const struct readers *r, int way)
{
    const struct qdqi_node *nodes = t->model->graph.nodes;
    const char *name = way == DIRECT ? r->matrix->name : make_transpose(t, r->matrix);
    for (const struct qdqi_use *use = r->matrix->uses; use; use = use->next) {
        const struct qdqi_node *node = &nodes[use->node];
        if (!is_transpose(node)) {
            write_use(t, use, DIRECT, way, name);
            continue;
        }
        for (const struct qdqi_use *next = node->outputs[0]->uses; next;
             next = next->next)
            write_use(t, next, TURNED, way, name);
        qdqi_edit_drop_unused(t->edit, node->outputs[0]->name);
    }
    t->any = true;
}

/* Returns whether the layers of one way have one form already. */
static bool
is_one_form(const struct tying *t, const struct readers *r, int way)
{
    if (r->n_gemms[way] > 0 && t->means & QDQI_TIES_AS_MATMUL)
        return false;
    if (way == DIRECT)
        return r->n_gemms[way] == 0;
    return r->n_transposes == 0 || (r->n_transposes == 1 && r->n_gemms[way] == 0);
}

static void
tie(struct tying *t, const struct qdqi_tensor *matrix)
{
    const struct readers r = find_readers(t, matrix);
    if (r.others || (r.selects[DIRECT] && r.selects[TURNED]))
        return;
    for (int way = DIRECT; way < N_WAYS; way++) {
        const bool table = r.selects[!way] && r.n[!way] == 0;
        const bool alone = !r.selects[DIRECT] && !r.selects[TURNED];
        if (r.n[way] >= 2 && !is_one_form(t, &r, way) &&
            ((table && t->means & QDQI_TIES_TABLES) ||
             (alone && t->means & QDQI_TIES_WEIGHTS)))
            write_way(t, &r, way);
    }
}

static bool
is_matrix(const struct qdq_model *model, const struct qdqi_tensor *t)
{
    return t && t->constant && t->scope == 0 && t->view.stored && t->view.rank == 2 &&
           t->uses && t->uses->next &&
           (t->dtype == QDQI_FLOAT32 || t->dtype == QDQI_FLOAT16) &&
           !qdqi_constant_is_overridable(model, t);
}

/* Ties each matrix once, at the first use of it. */
static void
tie_all(struct tying *t)
{
    const struct qdqi_graph *graph = &t->model->graph;
    for (size_t i = 0; i < graph->n_nodes; i++)
        for (size_t k = 0; k < graph->nodes[i].proto->n_input; k++) {
            const struct qdqi_tensor *tensor = graph->nodes[i].inputs[k];
            if (is_matrix(t->model, tensor) && tensor->uses->node == i &&
                tensor->uses->input == (int)k)
                tie(t, tensor);
        }
}

enum qdq_code
qdqi_step_tie(struct qdqi_preparing *p, struct qdq_model **ret, struct qdq_error *err)
{
    struct qdq_spec spec = *p->spec;
    qdq_spec_complete(&spec);
    const struct qdqi_hooks *hooks = spec.target->hooks;
    struct tying t = {.model = p->model,
                      .spec = &spec,
                      .means = hooks->ties ? hooks->ties(&spec) : 0};
    if (!t.means || p->model->proto->n_training_info || selects_gemms(&spec) ||
        qdqi_model_opset(p->model->proto) < OPSET_MIN)
        return QDQ_OK;
    struct qdqi_arena *arena = qdqi_arena_new();
    t.edit = arena ? qdqi_edit_new(p->model, arena) : NULL;
    enum qdq_code code = t.edit ? QDQ_OK : qdqi_no_memory(err);
    if (!code)
        tie_all(&t);
    if (!code && t.any)
        code = qdqi_edit_derive(t.edit, &arena, ret, err);
    qdqi_arena_free(&arena);
    return code;
}
