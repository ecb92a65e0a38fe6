/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Inside of struct qdq_model: the mapped files, the parsed skeleton, the graph's index.
 *
 * Everything here is read-only after qdq_model_open() and may be shared by threads.
 * Whoever edits a model copies messages (edit/edit.c), never these.
 */
#ifndef QDQI_MODEL_MODEL_H
#define QDQI_MODEL_MODEL_H

#include "base/dtype.h"
#include "base/map.h"
#include "base/warnings.h"
#include "model/mapped.h"
#include "model/skeleton.h"
#include "onnx.pb-c.h"
#include "qdq/model.h"

/* A use of a tensor: input `input` of node `node`, perhaps of a nested graph. */
struct qdqi_use {
    size_t node;
    int input;
    const struct qdqi_use *next; /* in the order of the nodes */
};

/*
 * What a fixed tensor holds, read where it lies: the elements of a stored tensor under
 * another shape, or with its axes in another order, or one element for all. So strides
 * are those of C order in some order of the axes, or all 0 (a fill).
 */
struct qdqi_view {
    const Onnx__TensorProto
        *stored; /* NULL: the elements cannot be read; of the tensor's
                                        type, or float16 where that is float32 */
    size_t rank;
    const int64_t *dims;    /* none is negative; their product fits int64 */
    const int64_t *strides; /* in elements, by axis; NULL: C order */
};

/* A value of the main graph or of a nested one. */
struct qdqi_tensor {
    const char *name;                  /* no other value of the model has it */
    size_t scope;                      /* the graph that it belongs to */
    const Onnx__TensorProto *constant; /* initializer or Constant's value, or NULL */
    struct qdqi_view view;             /* of a fixed tensor */
    int64_t producer;                  /* node index, -1 when none */
    const struct qdqi_use *uses;       /* nested graphs' too */
    struct qdqi_use *last_use;
    bool is_input, is_output; /* of its graph */
    bool is_overridable;      /* a constant that a caller may send another for */
    bool is_captured;         /* as it is, an output of a graph nested in its own */
    bool is_fixed;            /* constant, or made of constants alone */
    bool is_shape;            /* made of shapes and constants alone, and not fixed */
    enum qdqi_dtype dtype;    /* QDQI_UNKNOWN when nothing says it */
};

struct qdqi_node {
    const Onnx__NodeProto *proto;
    const char *name;             /* reported name: unique, never NULL */
    struct qdqi_tensor **inputs;  /* proto->n_input; NULL for an omitted input */
    struct qdqi_tensor **outputs; /* proto->n_output; NULL for an omitted output */
    size_t scope, place;          /* the graph that it belongs to; where, there */
    size_t body;                  /* the first graph that it owns; 0: none */
};

/*
 * The main graph, or one nested in another: the body of an If, Loop or Scan, or an
 * opaque one, of an operator that nothing is known about.
 */
struct qdqi_scope {
    Onnx__GraphProto *proto;
    size_t outer;            /* the graph that its owner belongs to; the main one: 0 */
    int64_t owner;           /* node index; -1: the main graph */
    size_t next;             /* the owner's next graph; 0: none */
    size_t attribute, place; /* of the owner: which, and which of its graphs */
    bool is_opaque;          /* what is inside is left alone */
    size_t begin;            /* the first of its nodes and of those nested in it */
    size_t *nodes;           /* indices of proto->n_node nodes, by place */
};

/*
 * Nodes stand in the order of the file, which is one of computation, those of a nested
 * graph before the node that owns it. So whatever a node reads is made before it.
 */
struct qdqi_graph {
    size_t n_nodes; /* of all graphs */
    struct qdqi_node *nodes;
    size_t n_scopes;
    struct qdqi_scope *scopes; /* 0: the main graph; each behind its outer one */
    size_t n_listed;           /* of their lists of nodes, while these are made */
    struct qdqi_map *tensors;  /* name -> struct qdqi_tensor, of all graphs */
    struct qdqi_map *names;    /* every tensor and node name */
    struct qdqi_map *by_name;  /* reported node name -> struct qdqi_node */
};

struct qdq_model {
    struct qdqi_arena *arena;
    struct qdqi_mapped *files; /* [0]: the model's own; then, in their order, those sent
                                  with it, of which some are not mapped */
    size_t n_files;
    const char *
        *locations; /* by file that was sent: the location that it is, or NULL */
    struct qdqi_bulks bulks; /* qdqi_bulk.file counts `files` */
    Onnx__ModelProto *proto; /* the skeleton; lives in the arena */
    struct qdqi_graph graph;
    struct qdq_model_info info;
    bool is_derived;               /* its files are the source's; derive.h */
    struct qdq_model *base;        /* what it was made of, if that is its own */
    struct qdqi_warnings warnings; /* of the preparation; in the arena */
};

/* Bytes of all files that the model lies in. */
uint64_t qdqi_model_bytes(const struct qdq_model *model);

/* Version of ONNX's own operator set that the model imports, 0 when none. */
int64_t qdqi_model_opset(const Onnx__ModelProto *proto);

/* True for the two spellings of ONNX's own domain. */
bool qdqi_is_onnx_domain(const char *domain);

/* A node's attribute, or NULL; an integer attribute, or `otherwise`. */
const Onnx__AttributeProto *qdqi_node_attribute(const Onnx__NodeProto *node,
                                                const char *name);
int64_t qdqi_node_int(const Onnx__NodeProto *node, const char *name, int64_t otherwise);
/* Whether the node is this operator of ONNX's own domain. */
bool qdqi_node_is(const Onnx__NodeProto *node, const char *op);

/*
 * scopes.c: lists the graphs and their nodes. What two graphs call alike gets another
 * name in the later one, and nodes that stand before those that make what they read are
 * put behind them: both in the messages. INVALID_MODEL where nodes wait for each other.
 */
enum qdq_code qdqi_scopes_index(struct qdq_model *model,
                                struct qdq_error *err) QDQ_MUST_CHECK;

/* order.c: puts the nodes of one graph in the order of computation, if they are not. */
enum qdq_code qdqi_graph_order(struct qdq_model *model, Onnx__GraphProto *graph,
                               bool *ret_changed, struct qdq_error *err) QDQ_MUST_CHECK;

/* Whether nodes of graph `inner` see the tensors of graph `scope`. */
bool qdqi_scope_sees(const struct qdqi_graph *graph, size_t inner, size_t scope);

/* The node of graph `scope` in which `node` is, or which it is itself. */
size_t qdqi_scope_lift(const struct qdqi_graph *graph, size_t node, size_t scope);

/* graph.c: fills graph->… of an opened model. INVALID_MODEL names node and tensor. */
enum qdq_code qdqi_graph_index(struct qdq_model *model,
                               struct qdq_error *err) QDQ_MUST_CHECK;

/* fixed.c: marks what is made of constants and shapes alone, and how it is read. */
enum qdq_code qdqi_graph_mark_fixed(struct qdq_model *model,
                                    struct qdq_error *err) QDQ_MUST_CHECK;

/* Shape of a fixed tensor whose elements can be read; false for any other. */
bool qdqi_tensor_dims(const struct qdqi_tensor *tensor, const int64_t **ret,
                      size_t *ret_rank);

/* types.c: element types of all tensors, from the file and the operators' schemas. */
enum qdq_code qdqi_graph_infer_types(struct qdq_model *model,
                                     struct qdq_error *err) QDQ_MUST_CHECK;

/* The same for an output of one node, by the types of its inputs and its attributes. */
enum qdqi_dtype qdqi_output_dtype(const struct qdqi_node *node, size_t output);

/* info.c: fills model->info. */
enum qdq_code qdqi_model_fill_info(struct qdq_model *model,
                                   struct qdq_error *err) QDQ_MUST_CHECK;

#endif
