/* SPDX-License-Identifier: Apache-2.0 */
/* The state of an edit, for the files of this folder. */
#ifndef QDQI_GRAPH_EDIT_STATE_H
#define QDQI_GRAPH_EDIT_STATE_H

#include "graph/edit/edit.h"

/* A list of pointers that grows in the arena. */
struct qdqi_rows {
    void **rows;
    size_t n, cap;
};

struct qdqi_insertion {
    Onnx__NodeProto *node;
    struct qdqi_insertion *next;
};

/* An input by which a Loop or Scan carries a value no longer. */
struct qdqi_carried {
    size_t node, input;
};

/* An initializer that the edit adds; see place_initializers() in merge.c. */
struct qdqi_added {
    Onnx__TensorProto *tensor;
    size_t scope; /* the graph that it is added to */
    bool is_read;
};

struct qdqi_edit {
    const struct qdq_model *source;
    struct qdqi_arena *arena;
    struct qdqi_map *names; /* names added by the edit; the source's are in its index */
    struct qdqi_map *read;  /* tensors of the source that added nodes read */
    struct qdqi_map *usages;   /* tensor -> struct usage of unused.c */
    struct qdqi_map *replaced; /* initializer -> its replacement */
    bool *dropped;             /* by node of the source */
    size_t n_dropped;          /* number of dropped initializers and nodes */
    struct qdqi_bulks all_bulks;
    size_t *origins;           /* by node of the finished main graph */
    Onnx__NodeProto **changed; /* by node of the source: its changed copy, or NULL */
    struct qdqi_insertion **first, **last; /* by place: n_nodes + n_scopes lists */
    size_t n_added;
    struct qdqi_rows initializers, imports, metadata, bulks, carried;
    struct qdqi_rows *placed; /* by graph: its new initializers */
    bool out_of_memory;
};

/* Allocates an array in the edit's arena. Returns NULL when out of memory, and the
   edit then fails. The functions below do the same. */
void *qdqi_edit_array(struct qdqi_edit *edit, size_t n, size_t size);

/* Copies a text to the edit's arena. A text that is NULL makes the edit fail, too:
   it comes from a failed allocation. */
char *qdqi_edit_text(struct qdqi_edit *edit, const char *text);

/* Appends a row to a list. */
void qdqi_edit_append(struct qdqi_edit *edit, struct qdqi_rows *list, void *row);

/* Returns the copy of node `i` of the source, which may be changed. */
Onnx__NodeProto *qdqi_edit_change_node(struct qdqi_edit *edit, size_t i);

/* Removes from the copies of nodes, whose bodies are copied, what qdqi_edit_drop_carried() names. */
void qdqi_edit_leave_out_carried(struct qdqi_edit *edit);

/* Removes from a copied graph the tensors that qdqi_edit_drop_unused() dropped. */
void qdqi_edit_leave_out_dropped(struct qdqi_edit *edit, Onnx__GraphProto *graph);

#endif
