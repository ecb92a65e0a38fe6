/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The choice of the entry that decides a node. Entries come from the spec and from
 * insertion cases. A name has priority over a match, a match over a case, and a case
 * over a class; among equals the later entry wins. The winner decides alone: flags of
 * several entries are not merged.
 */
#ifndef QDQI_PLAN_PLACEMENT_SELECT_H
#define QDQI_PLAN_PLACEMENT_SELECT_H

#include "ground/base/warnings.h"
#include "graph/layers/layers.h"

enum qdqi_rank {
    QDQI_BY_DEFAULT,
    QDQI_BY_CLASS,
    QDQI_BY_CASE,
    QDQI_BY_MATCH,
    QDQI_BY_NAME
};

/* maximum number in one plan, including those of its cases */
enum { QDQI_MAX_GLOBS = 4096 };

/* The entry that decides a node. */
struct qdqi_choice {
    const struct qdq_layer_entry *entry; /* NULL: the default decides */
    enum qdqi_rank rank;
    const char *reason; /* "layers[2]", "case:residual" */
    /* the place of the entry in the spec, or of the case that returned it */
    const char *pointer;
};

struct qdqi_selection {
    struct qdqi_layers *layers;
    struct qdqi_choice *choices; /* by node */
    struct qdqi_arena *arena;
    struct qdqi_warnings *warnings;
    bool unmatched_is_error;
    size_t n_globs;
};

/* Starts with the default for all nodes. NO_MEMORY. */
enum qdq_code qdqi_selection_new(struct qdqi_layers *layers,
                                 const struct qdq_spec *spec, struct qdqi_arena *arena,
                                 struct qdqi_warnings *warnings,
                                 struct qdqi_selection *ret,
                                 struct qdq_error *err) QDQ_MUST_CHECK;

/* Applies the spec's own entries, and marks layers->named. INVALID_SPEC (unknown
   class), UNMATCHED, UNSUPPORTED, LIMIT_EXCEEDED, NO_MEMORY. */
enum qdq_code qdqi_select_spec(struct qdqi_selection *selection,
                               const struct qdq_spec *spec,
                               struct qdq_error *err) QDQ_MUST_CHECK;

/* Applies the entries that a case returned. Fails like qdqi_select_spec(), and with
   CASE_FAILED for an unknown class. */
enum qdq_code qdqi_select_case(struct qdqi_selection *selection, const char *name,
                               const char *pointer,
                               const struct qdq_layer_entry *entries, size_t n,
                               struct qdq_error *err) QDQ_MUST_CHECK;

/* Reports a name or glob that matches nothing: as the error UNMATCHED, or as the
   warning `unmatched`, as the spec asks. */
enum qdq_code qdqi_unmatched(struct qdqi_selection *selection, struct qdq_error *err,
                             const char *pointer, const char *node, const char *fmt,
                             ...) QDQ_PRINTF(5, 6) QDQ_MUST_CHECK;

#endif
