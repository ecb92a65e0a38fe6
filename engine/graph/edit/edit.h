/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The only way to change a model. An edit makes a copy in an arena of the caller, in
 * which only the changed messages are copied. The source model is never changed and
 * must outlive the copy.
 *
 * Functions that return a pointer return NULL when out of memory. Callers may pass the
 * NULL on to the next function: it is enough to check the result of qdqi_edit_finish().
 */
#ifndef QDQI_GRAPH_EDIT_EDIT_H
#define QDQI_GRAPH_EDIT_EDIT_H

#include "files/model/write.h"

struct qdqi_edit;

struct qdqi_edit *qdqi_edit_new(const struct qdq_model *source,
                                struct qdqi_arena *arena);

/* Returns a name that nothing in the model has: base + suffix, with a number if
   necessary. */
const char *qdqi_edit_name(struct qdqi_edit *edit, const char *base,
                           const char *suffix);

/*
 * Adds a node at place `at`: before node `at` of the source, in that node's graph; or
 * at the end of the main graph (at = n_nodes) or of graph `which` (at = n_nodes +
 * which). New nodes of one place keep the order in which they were added.
 */
Onnx__NodeProto *qdqi_edit_add_node(struct qdqi_edit *edit, size_t at, const char *op,
                                    const char *name, const char *const *inputs,
                                    size_t n_inputs, const char *output);
/*
 * Both functions return a place for qdqi_edit_add_node(): directly behind the node that
 * makes the tensor; and before the first node that reads it, in the innermost graph
 * that contains all its readers.
 */
size_t qdqi_edit_behind(const struct qdq_model *source,
                        const struct qdqi_tensor *tensor);
size_t qdqi_edit_before_uses(const struct qdq_model *source,
                             const struct qdqi_tensor *tensor);

/* Adds a further output to an added node. */
void qdqi_edit_add_output(struct qdqi_edit *edit, Onnx__NodeProto *node,
                          const char *name);
void qdqi_edit_set_domain(Onnx__NodeProto *node, char *domain);
void qdqi_edit_add_int(struct qdqi_edit *edit, Onnx__NodeProto *node, const char *name,
                       int64_t value);
void qdqi_edit_add_float(struct qdqi_edit *edit, Onnx__NodeProto *node,
                         const char *name, float value);

/* Both add an attribute to node `node` of the source, which has none of that name. */
void qdqi_edit_set_int(struct qdqi_edit *edit, size_t node, const char *name,
                       int64_t value);
void qdqi_edit_set_float(struct qdqi_edit *edit, size_t node, const char *name,
                         float value);
/* Adds an attribute of n integers, which are copied. */
void qdqi_edit_add_ints(struct qdqi_edit *edit, Onnx__NodeProto *node, const char *name,
                        size_t n, const int64_t *values);

/* Makes input `i` of node `node` of the source read another tensor. */
void qdqi_edit_set_input(struct qdqi_edit *edit, size_t node, size_t i,
                         const char *tensor);

/* Replaces node `node` of the source by an Identity of that tensor. The node must
   have an input. */
void qdqi_edit_pass_on(struct qdqi_edit *edit, size_t node, const char *tensor);

/* Replaces node `node` of the source, which has two inputs or more, by one of another
   operator with two inputs and no attributes. */
void qdqi_edit_become(struct qdqi_edit *edit, size_t node, const char *op,
                      const char *const inputs[2]);

/* Makes node `node` of the source one of another operator, which has its inputs, outputs
   and attributes, except the attribute `without`. */
void qdqi_edit_retype(struct qdqi_edit *edit, size_t node, const char *op,
                      const char *domain, const char *without);

/* Does the same for an input that may be behind the last one of the source's node, by
   one. */
void qdqi_edit_put_input(struct qdqi_edit *edit, size_t node, size_t i,
                         const char *tensor);

/* Removes the last input of node `node` of the source, which is optional. */
void qdqi_edit_drop_last_input(struct qdqi_edit *edit, size_t node);

/* Removes node `node`, and makes the node `into` make the first output of it. */
void qdqi_edit_absorb(struct qdqi_edit *edit, size_t node, size_t into);

/* Removes node `node`, whose outputs nothing reads any more. */
void qdqi_edit_drop_node(struct qdqi_edit *edit, size_t node);

/* Removes what a Loop or Scan carries by input `i`, which nothing in its body and behind it reads any more: the input and the
   output of node `node` of the source and of its body. Those of one node are removed in ascending order. */
void qdqi_edit_drop_carried(struct qdqi_edit *edit, size_t node, size_t i);

/* Renames output `i` of node `node` of the source. */
void qdqi_edit_set_output(struct qdqi_edit *edit, size_t node, size_t i,
                          const char *tensor);

/* A new initializer is added to the graph whose nodes read it, or to the main graph
   if nodes of several graphs do. */

/* Adds an initializer of n elements, of rank 0 when `scalar`. The bytes are
   borrowed. */
void qdqi_edit_add_initializer(struct qdqi_edit *edit, const char *name,
                               enum qdqi_dtype dtype, size_t n, bool scalar,
                               const void *data);

/* Adds an initializer of any shape. Its `size` bytes are borrowed. */
void qdqi_edit_add_tensor(struct qdqi_edit *edit, const char *name,
                          enum qdqi_dtype dtype, size_t rank, const int64_t *dims,
                          const void *data, size_t size);

/* Adds an initializer whose `size` bytes are generated while the model is written. */
void qdqi_edit_add_made(struct qdqi_edit *edit, const char *name, enum qdqi_dtype dtype,
                        size_t rank, const int64_t *dims, uint64_t size,
                        const struct qdqi_made *made);

/*
 * Replaces the elements of an initializer, or of the `value` of a Constant, by others
 * of the same type and shape. Their `size` bytes are generated while the model is
 * written.
 */
void qdqi_edit_set_made(struct qdqi_edit *edit, const struct qdqi_tensor *tensor,
                        uint64_t size, const struct qdqi_made *made);

/* Removes a constant of the source if nothing reads it any more, with the nodes that
   make it and the tensors that only they read. Call this after all inputs are set. */
void qdqi_edit_drop_unused(struct qdqi_edit *edit, const char *tensor);

void qdqi_edit_import(struct qdqi_edit *edit, const char *domain, int64_t version);
/* Adds or replaces an entry of metadata_props. */
void qdqi_edit_metadata(struct qdqi_edit *edit, const char *key, const char *value);

/* Returns the edited model, which is in the arena. NO_MEMORY if any step failed. */
enum qdq_code qdqi_edit_finish(struct qdqi_edit *edit, const Onnx__ModelProto **ret,
                               struct qdq_error *err) QDQ_MUST_CHECK;

/* Does the same, and returns the bulk data and the origins as well. */
enum qdq_code qdqi_edit_result(struct qdqi_edit *edit, struct qdqi_edited *ret,
                               struct qdq_error *err) QDQ_MUST_CHECK;

/* Derives a model from the source, by qdqi_model_derive(). */
enum qdq_code qdqi_edit_derive(struct qdqi_edit *edit, struct qdqi_arena **arena,
                               struct qdq_model **ret,
                               struct qdq_error *err) QDQ_MUST_CHECK;

#endif
