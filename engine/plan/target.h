/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a target tells the planner: its row (qdq/targets.h) and its hooks. A target NAME is
 * a file of plan/targets/ that defines qdqi_target_NAME, and its path in engine/local.mk,
 * from which the list of targets is made. No other file knows a target by its name.
 *
 * A hook that is NULL stands for its default, which is said with it here.
 */
#ifndef QDQI_PLAN_TARGET_H
#define QDQI_PLAN_TARGET_H

#include "plan/rules.h"
#include "qdq/targets.h"

/*
 * A target lists its rules once, as a macro of rows: RULE(ID, STATE, "what it says").
 *
 *   STATE  FIXED  holds always, where no entry of a spec or case asks for something else
 *          ON     holds until a spec's `rules` switches it off
 *          OFF    holds where a spec's `rules` switches it on
 *
 * These make an enum and a table of the list. A rule's id is its constant of that enum,
 * and is unique over all targets. All targets together have at most 64 rules.
 */
#define QDQI_RULE_INDEX(id, state, text) id,
#define QDQI_RULE_ROW(id, state, text) {#id, QDQI_RULE_##state, text},
#define QDQI_RULE_FIXED true, true
#define QDQI_RULE_ON false, true
#define QDQI_RULE_OFF false, false

/* A rule that leaves a layer in floating point that would be quantized by default. */
struct qdqi_veto {
    int rule; /* of the target's */
    const char *reason;
    bool (*means)(const struct planner *p, const struct qdq_layer *layer);
    bool is_late; /* `means` asks what is quantized behind the layer */
};

/* The first two members of a veto. */
#define QDQI_VETO(id) id, "rule:" #id

/*
 * One warning of a plan, however many layers it is about: the text stands behind their
 * names. It says what happens there, and what to ask for instead.
 */
struct qdqi_lint {
    const char *code;
    bool (*means)(const struct planner *p, const struct qdq_layer *layer);
    int rule; /* the rule of the target that the plan does not follow there */
    const char *text;
};

/* The first two members of a lint; its function is lint_CODE. */
#define QDQI_LINT(code) #code, lint_##code

struct qdqi_hooks {
    /* --- which layers are quantized, and with how many scales --- */

    /* Whether layers of a class of the library are quantized where nothing selects them.
       NULL: as tbl/layers.h says. */
    bool (*is_on)(const struct planner *p, const struct qdqi_class *cls);
    /* Runs the insertion cases that a rule stands for, before those of the spec. */
    enum qdq_code (*run_cases)(struct planner *p, struct qdq_error *err);
    /* The rules that keep a layer in floating point, a row of zeros behind the last; NULL:
       none does. */
    const struct qdqi_veto *vetoes;
    /* Why a layer stays in floating point, or NULL. Its weight has been chosen
       (weight_input, weight_axis), and `wants_inputs` says whether its inputs are to have
       pairs. */
    const char *(*hindrance)(const struct planner *p, const struct qdq_layer *layer,
                             bool wants_inputs);
    /* Whether a layer whose weight cannot be quantized has no pair on its inputs either;
       adds the rule by which it has none. NULL: it has none. */
    bool (*needs_weight)(const struct planner *p, struct qdq_layer *layer);
    /* Whether a weight of a class of the library has a scale for each channel, where the
       spec wants that. NULL: it has. */
    bool (*is_per_channel)(const struct planner *p, const struct qdqi_class *cls,
                           int weight_input, size_t rank);
    /* Whether a weight has the format of the activations. NULL: none has. */
    bool (*is_operand)(const struct planner *p, const struct qdq_layer *layer);

    /* --- outputs, when all layers have been decided on --- */

    /* Gives layers pairs on what they make, and those that move data on what they read.
       NULL: there are pairs on inputs alone. */
    enum qdq_code (*decide_outputs)(struct planner *p, struct qdq_error *err);
    /* Completes the planned tensors: which of them share numbers, and the biases. */
    enum qdq_code (*complete)(struct planner *p, struct qdq_error *err);
    /* Whether a layer is quantized as those beside it are, so that it may change when
       another layer is left in floating point. NULL: none is. */
    bool (*follows)(const struct qdq_layer *layer);

    /* --- what is said of the plan --- */

    /* Adds to a layer's rules those that its decision follows. */
    void (*cite)(const struct planner *p, struct qdq_layer *layer);
    /* Warns of connections that are better left raw. */
    enum qdq_code (*warn_connections)(struct planner *p, struct qdq_error *err);
    /* Refuses formats that cannot be, and warns of those that the target would refuse. */
    enum qdq_code (*check_formats)(struct planner *p, struct qdq_error *err);
    /* The rows of warnings, a row of zeros behind the last; NULL: there are none. */
    const struct qdqi_lint *lints;
};

#define TARGET(name) extern const struct qdq_target qdqi_target_##name;
#include "targets.inc"
#undef TARGET

#endif
