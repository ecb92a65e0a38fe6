/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The inside of struct qdq_model: the mapped files, the parsed skeleton and the index
 * of the graph.
 *
 * Everything here is read-only after qdq_model_open() and may be shared by threads. An
 * edit copies messages (engine/graph/edit/) and never changes these.
 */
#ifndef QDQI_FILES_MODEL_MODEL_H
#define QDQI_FILES_MODEL_MODEL_H

#include "ground/base/dtype.h"
#include "ground/base/map.h"
#include "ground/base/warnings.h"
#include "files/model/mapped.h"
#include "files/model/skeleton.h"
#include "onnx.pb-c.h"
#include "qdq/model.h"

/* One use of a tensor: input `input` of node `node`, which may be in a nested graph. */
struct qdqi_use {
    size_t node;
    int input;
    const struct qdqi_use *next; /* in the order of the nodes */
};

/*
 * How the elements of a fixed tensor are read in place: the elements of a stored tensor
 * under another shape, with its axes in another order, or one element repeated. So the
 * strides are those of C order in some order of the axes, or all 0 (a fill).
 */
struct qdqi_view {
    /* NULL: the elements cannot be read. Its type is the tensor's, or float16 where the
       tensor is float32. */
    const Onnx__TensorProto *stored;
    size_t rank;
    const int64_t *dims;    /* none is negative; their product fits in int64 */
    const int64_t *strides; /* in elements, one for each axis; NULL: C order */
};

/* A tensor of the main graph or of a nested one. */
struct qdqi_tensor {
    const char *name;                  /* unique among the tensors of the model */
    size_t scope;                      /* index of the graph that it belongs to */
    const Onnx__TensorProto *constant; /* initializer or Constant's value, or NULL */
    struct qdqi_view view;             /* set for a fixed tensor */
    int64_t producer;                  /* node index, -1 when none */
    const struct qdqi_use *uses;       /* those in nested graphs included */
    struct qdqi_use *last_use;
    bool is_input, is_output; /* of its own graph */
    /* a constant that is also a graph input: a caller may replace it */
    bool is_overridable;
    /* an output of a nested graph names this tensor of an outer graph directly */
    bool is_captured;
    bool is_fixed;         /* a constant, or computed from constants alone */
    bool is_shape;         /* computed from shapes and constants alone, and not fixed */
    enum qdqi_dtype dtype; /* QDQI_UNKNOWN when neither file nor schema says */
};

struct qdqi_node {
    const Onnx__NodeProto *proto;
    const char *name;             /* reported name: unique, never NULL */
    struct qdqi_tensor **inputs;  /* proto->n_input; NULL for an omitted input */
    struct qdqi_tensor **outputs; /* proto->n_output; NULL for an omitted output */
    size_t scope, place;          /* index of its graph; position in that graph */
    size_t body;                  /* first graph that the node owns (a body); 0: none */
};

/* A graph: the main one, or one nested in a node (the body of an If, Loop or Scan).
   A graph is opaque when its operator is not known. */
struct qdqi_scope {
    Onnx__GraphProto *proto;
    /* index of the graph that the owner belongs to; 0 for the main graph */
    size_t outer;
    int64_t owner; /* index of the node that owns it; -1: the main graph */
    size_t next;   /* next graph of the same owner; 0: none */
    /* the owner's attribute that holds it; its position in that attribute */
    size_t attribute, place;
    bool is_opaque; /* its nodes are not analysed */
    size_t begin;   /* index of the first node of it and of the graphs nested in it */
    size_t *nodes;  /* indices of its proto->n_node nodes, by position */
};

/*
 * The index of all graphs. Nodes are in an order of computation, those of a nested
 * graph before the node that owns it, so a node stands behind the producers of
 * everything it reads.
 */
struct qdqi_graph {
    size_t n_nodes; /* of all graphs together */
    struct qdqi_node *nodes;
    size_t n_scopes;
    /* [0]: the main graph; each graph comes after its outer one */
    struct qdqi_scope *scopes;
    /* entries of the `nodes` lists that are filled while the index is built */
    size_t n_listed;
    /* from the name to struct qdqi_tensor, all graphs together */
    struct qdqi_map *tensors;
    struct qdqi_map *names;   /* all tensor and node names */
    struct qdqi_map *by_name; /* from the reported name to struct qdqi_node */
};

struct qdq_model {
    struct qdqi_arena *arena;
    /* [0]: the model's own file; [1 + i]: file i of those sent with it, possibly not
       mapped */
    struct qdqi_mapped *files;
    size_t n_files;
    /* for each file sent: the location that it serves, or NULL */
    const char **locations;
    struct qdqi_bulks bulks; /* qdqi_bulk.file is an index into `files` */
    Onnx__ModelProto *proto; /* the skeleton, in the arena */
    struct qdqi_graph graph;
    struct qdq_model_info info;
    bool is_derived; /* its files belong to the model it was derived from */
    /* the model it was derived from, when this model owns that */
    struct qdq_model *base;
    struct qdqi_warnings warnings; /* warnings of the preparation, in the arena */
    /* the biases of zeros that the preparation gave to layers: keys are their tensors; NULL:
       none */
    const struct qdqi_map *made_biases;
    /* the Muls by which smoothing divides activations: keys are the names of the nodes; NULL:
       none */
    const struct qdqi_map *smoothing;
};

/* Returns whether the node is one of these Muls. */
static inline bool
qdqi_node_smooths(const struct qdq_model *model, const struct qdqi_node *node)
{
    return model->smoothing && qdqi_map_get(model->smoothing, node->name);
}

struct qdqi_edited;

/*
 * open.c: makes a model of an edited copy of `source` (write.h). Its bulks lie in the
 * source's files, so no weight is copied and the source must outlive the model. Data that
 * the edit adds is raw_data within the messages; none of its bulks may be generated (struct
 * qdqi_made).
 *
 * *arena holds the messages of the edit. On success the model owns it and *arena is set to
 * NULL. INVALID_MODEL, NO_MEMORY.
 */
enum qdq_code qdqi_model_derive(const struct qdq_model *source,
                                const struct qdqi_edited *edited,
                                struct qdqi_arena **arena, struct qdq_model **ret,
                                struct qdq_error *err) QDQ_MUST_CHECK;

/* Returns the size in bytes of all files of the model. */
uint64_t qdqi_model_bytes(const struct qdq_model *model);

/* Gives back the memory that holds pages of the model's files, or of a piece of one: a large model
   need not be there as a whole. They are read again where they are used again. */
void qdqi_model_forget(const struct qdq_model *model);
void qdqi_model_forget_piece(const struct qdq_model *model, const uint8_t *piece,
                             size_t size);

/* Returns the version of ONNX's own operator set that the model imports; 0 when it
   imports none. */
int64_t qdqi_model_opset(const Onnx__ModelProto *proto);

/* ONNX Runtime's own domain, and its LSTM with weights of integers. */
#define QDQI_MS_DOMAIN "com.microsoft"
#define QDQI_DYNAMIC_LSTM "DynamicQuantizeLSTM"

/* Returns whether a domain is ONNX's own, which has two spellings: "" and "ai.onnx". */
bool qdqi_is_onnx_domain(const char *domain);

/* Returns the first import of that domain, or NULL. */
const Onnx__OperatorSetIdProto *qdqi_import_of(Onnx__OperatorSetIdProto *const *imports,
                                               size_t n, const char *domain);

/* Leaves the inputs that are constants out of a copy of the model's main graph. Returns
   false when out of memory. */
bool qdqi_drop_constant_inputs(const struct qdq_model *model, struct qdqi_arena *arena,
                               Onnx__GraphProto *graph);

/* Return a node's attribute, or NULL; an integer attribute, or `otherwise`. */
const Onnx__AttributeProto *qdqi_node_attribute(const Onnx__NodeProto *node,
                                                const char *name);
int64_t qdqi_node_int(const Onnx__NodeProto *node, const char *name, int64_t otherwise);
/* Returns whether the node's operator is one of ONNX Runtime's own domain. */
bool qdqi_node_is_microsoft(const Onnx__NodeProto *node);
/* Returns whether the node is this operator of ONNX's own domain. */
bool qdqi_node_is(const Onnx__NodeProto *node, const char *op);
/* Returns whether the node is one of these operators; the list ends with NULL. */
bool qdqi_node_is_one_of(const Onnx__NodeProto *node, const char *const *ops);
/* Returns the input of a node with two inputs of which the other one is fixed; -1 when there is
   none, and where the node has an axis. */
int qdqi_node_variable_input(const struct qdqi_node *node);
/* Returns whether the model has a BatchNormalization in training mode whose running mean or
   variance is used. ONNX Runtime writes it over the initializer that it is computed from,
   where it is no output of the model: the next run begins with it. */
bool qdqi_model_keeps_state(const struct qdq_model *model);
/* Returns whether a Gemm adds its bias to its product as they are: alpha and beta are
   1. */
bool qdqi_gemm_is_unscaled(const Onnx__NodeProto *gemm);

/* Makes the attribute, which has a name, an integer one. */
void qdqi_attribute_set_int(Onnx__AttributeProto *attribute, int64_t value);

/* Makes a node in the arena, which borrows all texts; without a name, or an output, where
   these are NULL. Returns NULL when out of memory, also where an input is NULL because of
   that. */
Onnx__NodeProto *qdqi_node_new(struct qdqi_arena *arena, const char *op,
                               const char *name, const char *const *inputs, size_t n,
                               const char *output);

/* Adds an integer attribute; the name is borrowed. Returns false when out of memory. */
bool qdqi_node_add_float(struct qdqi_arena *arena, Onnx__NodeProto *node,
                         const char *name, float value);
bool qdqi_node_add_int(struct qdqi_arena *arena, Onnx__NodeProto *node,
                       const char *name, int64_t value);

/* Returns an allocator of the parser's that takes memory from the arena. */
ProtobufCAllocator qdqi_arena_allocator(struct qdqi_arena *arena);

/*
 * scopes.c: lists the graphs and their nodes. Changes the messages in two ways: a name
 * that two graphs use for different things is replaced in the later graph, and a node
 * that stands before the producer of its input is moved behind it. INVALID_MODEL for a
 * cycle.
 */
enum qdq_code qdqi_scopes_index(struct qdq_model *model,
                                struct qdq_error *err) QDQ_MUST_CHECK;

/* scopes.c: marks a name as used. Returns false when out of memory. */
bool qdqi_name_take(struct qdq_model *model, const char *name);

/* order.c: sorts the nodes of one graph into an order of computation, unless they
   are in one. */
enum qdq_code qdqi_graph_order(struct qdq_model *model, Onnx__GraphProto *graph,
                               bool *ret_changed, struct qdq_error *err) QDQ_MUST_CHECK;

/* Returns whether the nodes of graph `inner` can read the tensors of graph `scope`. */
bool qdqi_scope_sees(const struct qdqi_graph *graph, size_t inner, size_t scope);

/* Returns the node of graph `scope` that is `node` or contains it. */
size_t qdqi_scope_ancestor(const struct qdqi_graph *graph, size_t node, size_t scope);

/* graph.c: builds the index of an opened model. INVALID_MODEL names node and tensor. */
enum qdq_code qdqi_graph_index(struct qdq_model *model,
                               struct qdq_error *err) QDQ_MUST_CHECK;

/* fixed.c: returns whether the node has outputs, all of which follow from constants alone. */
bool qdqi_node_is_fixed(const struct qdqi_node *node);

/* fixed.c: marks tensors that follow from constants and shapes alone, and sets their
   views. */
enum qdq_code qdqi_graph_mark_fixed(struct qdq_model *model,
                                    struct qdq_error *err) QDQ_MUST_CHECK;

/*
 * view.c: sets view and element type of a node's first output. All inputs of the node must be
 * fixed. Leaves the output without a view where the operator is unknown or breaks its
 * schema. Neither time nor memory depends on the size of a tensor. NO_MEMORY.
 */
enum qdq_code qdqi_view_infer(struct qdq_model *model, const struct qdqi_node *node,
                              struct qdq_error *err) QDQ_MUST_CHECK;

/* Returns the shape of a fixed tensor whose elements can be read; false for any
   other tensor. */
bool qdqi_tensor_dims(const struct qdqi_tensor *tensor, const int64_t **ret,
                      size_t *ret_rank);

/* types.c: infers the element types of all tensors, from the file and the operators'
   schemas. */
enum qdq_code qdqi_graph_infer_types(struct qdq_model *model,
                                     struct qdq_error *err) QDQ_MUST_CHECK;

/* Infers the type of one output of a node from its inputs' types and its attributes. */
enum qdqi_dtype qdqi_output_dtype(const struct qdqi_node *node, size_t output);

/* tensors.c: visits every TensorProto of a parsed model, wherever it stands. */

/* Called for a tensor. `name`, never NULL, is for errors: the tensor's name, or the
   first output of the node that has the tensor as an attribute. */
typedef enum qdq_code (*qdqi_tensor_visit_fn)(void *arg, Onnx__TensorProto *tensor,
                                              const char *name, struct qdq_error *err);

/* Visits the tensors in the order of the file's messages, the initializers of a
   graph before its nodes. Stops at the first call that fails. */
enum qdq_code qdqi_each_tensor(const Onnx__ModelProto *model,
                               qdqi_tensor_visit_fn visit, void *arg,
                               struct qdq_error *err) QDQ_MUST_CHECK;

/* info.c: fills model->info. */
enum qdq_code qdqi_model_fill_info(struct qdq_model *model,
                                   struct qdq_error *err) QDQ_MUST_CHECK;

#endif
