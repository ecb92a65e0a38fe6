/* SPDX-License-Identifier: Apache-2.0 */
/* The state of an edit, which the files of this folder share. */
#ifndef QDQI_EDIT_STATE_H
#define QDQI_EDIT_STATE_H

#include "edit/edit.h"

/* A list of pointers that grows in the arena. */
struct qdqi_rows {
    void **rows;
    size_t n, cap;
};

struct qdqi_insertion {
    Onnx__NodeProto *node;
    struct qdqi_insertion *next;
};

/* An initializer of the edit; see place_initializers() in merge.c. */
struct qdqi_added {
    Onnx__TensorProto *tensor;
    size_t scope; /* the graph that it goes to */
    bool is_read;
};

struct qdqi_edit {
    const struct qdq_model *source;
    struct qdqi_arena *arena;
    struct qdqi_map *names;    /* those added here; the source's are in its index */
    struct qdqi_map *read;     /* tensors of the source that added nodes read */
    struct qdqi_map *usages;   /* tensor -> struct usage of unused.c */
    struct qdqi_map *replaced; /* initializer -> what stands in its place */
    bool *dropped;             /* by source node */
    size_t n_dropped;          /* initializers and nodes */
    struct qdqi_bulks all_bulks;
    size_t *origins;                       /* of the nodes of the finished main graph */
    Onnx__NodeProto **changed;             /* by source node: its copy, or NULL */
    struct qdqi_insertion **first, **last; /* by place: n_nodes + n_scopes of them */
    size_t n_added;
    struct qdqi_rows initializers, imports, metadata, bulks;
    struct qdqi_rows *placed; /* by graph: the initializers that it gets */
    bool out_of_memory;
};

/* An array in the edit's arena. NULL, and the edit fails, when out of memory. */
void *qdqi_edit_array(struct qdqi_edit *edit, size_t n, size_t size);

/* A copy of a text in the edit's arena; likewise. A text that is NULL makes the edit fail,
   too: it is one that there was no memory for. */
char *qdqi_edit_text(struct qdqi_edit *edit, const char *text);

/* Appends a row to a list; likewise. */
void qdqi_edit_append(struct qdqi_edit *edit, struct qdqi_rows *list, void *row);

/* The copy of node `i` of the source, which may be changed; likewise. */
Onnx__NodeProto *qdqi_edit_change_node(struct qdqi_edit *edit, size_t i);

/* Takes out of a copied graph what qdqi_edit_drop_unused() dropped. */
void qdqi_edit_leave_out_dropped(struct qdqi_edit *edit, Onnx__GraphProto *graph);

#endif
