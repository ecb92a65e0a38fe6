/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "files/model/model.h"

/* The parser accepts at most 100 levels (skeleton.c), so these functions recurse no
   deeper. */
struct visit {
    qdqi_tensor_visit_fn visit;
    void *arg;
    struct qdq_error *err;
};

static enum qdq_code
visit_tensor(const struct visit *v, Onnx__TensorProto *t, const char *otherwise)
{
    return t ? v->visit(v->arg, t, t->name && *t->name ? t->name : otherwise, v->err)
             : QDQ_OK;
}

static enum qdq_code
visit_sparse(const struct visit *v, const Onnx__SparseTensorProto *s, const char *name)
{
    enum qdq_code code = s ? visit_tensor(v, s->values, name) : QDQ_OK;
    return s && !code ? visit_tensor(v, s->indices, name) : code;
}

static enum qdq_code visit_graph(const struct visit *v, const Onnx__GraphProto *g);

static enum qdq_code
visit_attribute(const struct visit *v, const Onnx__AttributeProto *a, const char *name)
{
    enum qdq_code code = visit_tensor(v, a->t, name);
    if (!code)
        code = visit_graph(v, a->g);
    if (!code)
        code = visit_sparse(v, a->sparse_tensor, name);
    for (size_t i = 0; !code && i < a->n_tensors; i++)
        code = visit_tensor(v, a->tensors[i], name);
    for (size_t i = 0; !code && i < a->n_graphs; i++)
        code = visit_graph(v, a->graphs[i]);
    for (size_t i = 0; !code && i < a->n_sparse_tensors; i++)
        code = visit_sparse(v, a->sparse_tensors[i], name);
    return code;
}

static enum qdq_code
visit_nodes(const struct visit *v, Onnx__NodeProto *const *nodes, size_t n)
{
    enum qdq_code code = QDQ_OK;
    for (size_t i = 0; !code && i < n; i++) {
        const char *name = nodes[i]->n_output ? nodes[i]->output[0] : "";
        for (size_t k = 0; !code && k < nodes[i]->n_attribute; k++)
            code = visit_attribute(v, nodes[i]->attribute[k], name);
    }
    return code;
}

static enum qdq_code
visit_graph(const struct visit *v, const Onnx__GraphProto *g)
{
    enum qdq_code code = QDQ_OK;
    if (!g)
        return code;
    for (size_t i = 0; !code && i < g->n_initializer; i++)
        code = visit_tensor(v, g->initializer[i], "");
    for (size_t i = 0; !code && i < g->n_sparse_initializer; i++)
        code = visit_sparse(v, g->sparse_initializer[i], "");
    return code ? code : visit_nodes(v, g->node, g->n_node);
}

enum qdq_code
qdqi_each_tensor(const Onnx__ModelProto *model, qdqi_tensor_visit_fn visit, void *arg,
                 struct qdq_error *err)
{
    const struct visit v = {visit, arg, err};
    enum qdq_code code = visit_graph(&v, model->graph);
    for (size_t i = 0; !code && i < model->n_training_info; i++) {
        code = visit_graph(&v, model->training_info[i]->initialization);
        if (!code)
            code = visit_graph(&v, model->training_info[i]->algorithm);
    }
    for (size_t i = 0; !code && i < model->n_functions; i++)
        code = visit_nodes(&v, model->functions[i]->node, model->functions[i]->n_node);
    return code;
}
