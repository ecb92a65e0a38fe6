/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The only way to change a model: a copy of its messages, made where they change, in an
 * arena of the caller's. The source model is never touched and must outlive the copy.
 *
 * Every function that returns a pointer returns NULL when out of memory; callers may
 * pass such a NULL on to the next one, so that qdqi_edit_finish() alone need be
 * checked.
 */
#ifndef QDQI_EDIT_EDIT_H
#define QDQI_EDIT_EDIT_H

#include "model/write.h"

struct qdqi_edit;

struct qdqi_edit *qdqi_edit_new(const struct qdq_model *source,
                                struct qdqi_arena *arena);

/* A tensor name that nothing in the model bears: base + suffix, or with a number. */
const char *qdqi_edit_name(struct qdqi_edit *edit, const char *base,
                           const char *suffix);

/*
 * Where a new node goes: before node `at` of the source, in its graph; at the end of the
 * main graph (at = n_nodes) or of another one (n_nodes + which). New nodes of one place
 * keep the order in which they were added.
 */
Onnx__NodeProto *qdqi_edit_add_node(struct qdqi_edit *edit, size_t at, const char *op,
                                    const char *name, const char *const *inputs,
                                    size_t n_inputs, const char *output);
/* The place of a node that reads the tensor as soon as it is there; and before the first
   that reads it, in the innermost graph that has all of these. */
size_t qdqi_edit_behind(const struct qdq_model *source,
                        const struct qdqi_tensor *tensor);
size_t qdqi_edit_before_uses(const struct qdq_model *source,
                             const struct qdqi_tensor *tensor);

void qdqi_edit_set_domain(Onnx__NodeProto *node, char *domain);
void qdqi_edit_add_int(struct qdqi_edit *edit, Onnx__NodeProto *node, const char *name,
                       int64_t value);

/* Makes input `i` of node `node` of the source read another tensor. */
void qdqi_edit_set_input(struct qdqi_edit *edit, size_t node, size_t i,
                         const char *tensor);

/* Makes node `node` of the source, which has an input, an Identity of that tensor. */
void qdqi_edit_pass_on(struct qdqi_edit *edit, size_t node, const char *tensor);

/* Gives what node `node` of the source makes as output `i` another name. */
void qdqi_edit_set_output(struct qdqi_edit *edit, size_t node, size_t i,
                          const char *tensor);

/*
 * New initializers go to the graph whose nodes read them, to the main graph where those
 * of several do.
 */

/* An initializer of raw bytes, which are borrowed: n elements, rank 0 when `scalar`. */
void qdqi_edit_add_initializer(struct qdqi_edit *edit, const char *name,
                               enum qdqi_dtype dtype, size_t n, bool scalar,
                               const void *data);

/* The same of any shape, `size` bytes. */
void qdqi_edit_add_tensor(struct qdqi_edit *edit, const char *name,
                          enum qdqi_dtype dtype, size_t rank, const int64_t *dims,
                          const void *data, size_t size);

/* An initializer of that shape whose `size` bytes are made when the model is written. */
void qdqi_edit_add_made(struct qdqi_edit *edit, const char *name, enum qdqi_dtype dtype,
                        size_t rank, const int64_t *dims, uint64_t size,
                        const struct qdqi_made *made);

/* Gives an initializer, or the `value` of a Constant, other elements of its type and
   shape, which are made when the model is written: `size` bytes. */
void qdqi_edit_set_made(struct qdqi_edit *edit, const struct qdqi_tensor *tensor,
                        uint64_t size, const struct qdqi_made *made);

/*
 * Takes out a constant of the source that nothing reads any more, with the nodes that
 * make it and what only they read. To be asked when all inputs are set.
 */
void qdqi_edit_drop_unused(struct qdqi_edit *edit, const char *tensor);

void qdqi_edit_import(struct qdqi_edit *edit, const char *domain, int64_t version);
/* Adds or replaces an entry of metadata_props. */
void qdqi_edit_metadata(struct qdqi_edit *edit, const char *key, const char *value);

/* The edited model, in the arena. NO_MEMORY when any step ran out. */
enum qdq_code qdqi_edit_finish(struct qdqi_edit *edit, const Onnx__ModelProto **ret,
                               struct qdq_error *err) QDQ_MUST_CHECK;

/* Of the finished model: struct qdqi_edited's. */
const size_t *qdqi_edit_origins(const struct qdqi_edit *edit);

/* The bulks that the finished model's tensors name. */
struct qdqi_bulks qdqi_edit_bulks(const struct qdqi_edit *edit);

#endif
