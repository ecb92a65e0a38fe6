/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The interface between a target and the planner: the target's row (qdq/targets.h) and
 * its hooks. A target NAME is a folder of plan/targets/, whose file NAME.c defines
 * qdqi_target_NAME, and the path of that file in engine/local.mk, from which the list of
 * targets is made. No other folder knows a target by its name.
 *
 * The comment of each hook says its default, which holds where the hook is NULL.
 */
#ifndef QDQI_PLAN_PLACEMENT_TARGET_H
#define QDQI_PLAN_PLACEMENT_TARGET_H

#include "plan/placement/rules.h"
#include "graph/edit/edit.h"
#include "qdq/targets.h"

/*
 * A target lists its rules once, as a macro of rows: RULE(ID, STATE, "what it says").
 *
 *   STATE  FIXED  holds always, where no entry of a spec or case asks for something else
 *          ON     holds until a spec's `rules` switches it off
 *          OFF    holds where a spec's `rules` switches it on
 *          AUTO   holds where decide_rule() says so, unless a spec's `rules` decides
 *
 * QDQI_RULE_ENUM(LIST) makes the numbers of the rules: a constant with the id of each, and
 * N_RULES. QDQI_RULE_ROW makes their table. An id is unique over all targets.
 */
#define QDQI_RULE_ENUM(LIST)                                                      \
    enum { LIST(QDQI_RULE_INDEX) N_RULES };                                       \
    _Static_assert((int)N_RULES <= (int)QDQ_MAX_RULES, "the target has too many " \
                                                       "rules")
#define QDQI_RULE_INDEX(id, state, text) id,
#define QDQI_RULE_ROW(id, state, text) {#id, QDQI_RULE_##state, text},
#define QDQI_RULE_FIXED true, true, false
#define QDQI_RULE_ON false, true, false
#define QDQI_RULE_OFF false, false, false
#define QDQI_RULE_AUTO false, false, true

/* A rule that keeps a layer in floating point that would be quantized by default. */
struct qdqi_veto {
    int rule; /* number among the target's rules */
    const char *reason;
    bool (*means)(const struct planner *p, const struct qdq_layer *layer);
    /* `means` asks which layers behind the layer are quantized: it is called when all of
       them have been decided on */
    bool asks_behind;
};

/* The first two members of a veto. */
#define QDQI_VETO(id) id, "rule:" #id

/*
 * A warning of a plan. One warning speaks of all layers for which `means` returns true:
 * their names stand before the text. The text says what happens there, and what to ask
 * for instead.
 */
enum { QDQI_NO_RULE = -1 };

/* Whether a warning depends on the `version` of the spec: the plans of a release may show otherwise
   than what is published. */
enum qdqi_lint_scope {
    QDQI_LINT_ALWAYS,
    QDQI_LINT_AS_PUBLISHED, /* only where the spec states no version */
    QDQI_LINT_AS_PLANNED    /* only where it states one */
};

struct qdqi_lint {
    const char *code;
    /* NULL: the layers that are quantized although the rule's veto means them */
    bool (*means)(const struct planner *p, const struct qdq_layer *layer);
    /* the rule of the target that the plan does not follow there; QDQI_NO_RULE for a
       warning of all targets */
    int rule;
    const char *text;
    enum qdqi_lint_scope scope;
};

/* The first two members of a lint; its function is lint_CODE, or there is none. */
#define QDQI_LINT(code) #code, lint_##code
#define QDQI_VETO_LINT(code) #code, NULL

/* Matrices that several layers multiply by: those whose rows Gathers select, those that layers alone
   read; no layer of them stays a Gemm. */
enum { QDQI_TIES_TABLES = 1, QDQI_TIES_WEIGHTS = 2, QDQI_TIES_AS_MATMUL = 4 };

struct qdqi_hooks {
    /* --- which rules hold --- */

    /*
     * Returns whether an automatic rule holds for a spec whose other members are
     * complete, and sets *ret_reason to the reason. `rule` is its number among the
     * rules of the target. NULL: the target has no automatic rule.
     */
    bool (*decide_rule)(const struct qdq_spec *spec, int rule, const char **ret_reason);

    /* --- before the plan --- */

    /* Returns whether BatchNormalizations and biases are folded into the layers before
       them, for a complete spec. NULL: the model stays as it is. */
    bool (*folds)(const struct qdq_spec *spec);
    /* Writes nodes, by the edit, in forms that compute the same and that the runtime computes
       right, or in one kernel, for a complete spec; *ret_any becomes true where something
       was changed. NULL:
       there are no such forms. */
    enum qdq_code (*reform)(const struct qdq_spec *spec, const struct qdq_model *model,
                            struct qdqi_edit *edit, struct qdqi_arena *arena,
                            bool *ret_any, struct qdq_error *err);
    /* Returns whether an Einsum of data and a constant weight becomes a MatMul, for a complete spec. NULL:
       it stays. */
    bool (*einsums)(const struct qdq_spec *spec);
    /* Returns whether constants that a Loop carries and never changes are taken out of it, for a complete spec.
       NULL: they stay. */
    bool (*uncarries)(const struct qdq_spec *spec);
    /* Returns which matrices' layers get one form, as QDQI_TIES_…, for a complete spec. NULL: those of
       none. */
    unsigned (*ties)(const struct qdq_spec *spec);
    /* Returns the first opset in which the runtime computes right what the model has, or 0, for a
       complete spec whose opset is auto. NULL: any. */
    int64_t (*least_opset)(const struct qdq_spec *spec, const struct qdq_model *model);
    /* Switches the rules of the spec's version, but those that the spec switches itself. NULL: the
       target has no versions. */
    void (*apply_version)(struct qdq_spec *spec);
    /* A MatMul and the Add of a constant behind it are one kernel, so that bias correction
       may add one. */
    bool fuses_biases;

    /* --- which layers are quantized, and with how many scales --- */

    /* The target's own rows of layer support, which are tried before those of
       ground/tbl/layers.h. NULL: there are none. */
    const struct qdqi_class *classes;
    size_t n_classes;
    /* Finds out about the model, whose layers have their classes, what the other hooks ask,
       and keeps it in p->marks. NULL: the hooks ask nothing. */
    enum qdq_code (*begin)(struct planner *p, struct qdq_error *err);
    /* Returns whether layers of a class of the library are quantized where no entry
       selects them. NULL: as ground/tbl/layers.h says. */
    bool (*is_on)(const struct planner *p, const struct qdqi_class *cls);
    /* Runs the insertion cases that a rule stands for, before those of the spec.
       NULL: no rule stands for a case. */
    enum qdq_code (*run_cases)(struct planner *p, struct qdq_error *err);
    /* The rules that keep layers in floating point, with a row of zeros behind the
       last. NULL: there are none. */
    const struct qdqi_veto *vetoes;
    /* Notes what vetoes that ask behind a layer want to know of a node. It is called for
       every node, from the last to the first, before those vetoes are applied to it.
       NULL: there is no such veto. */
    void (*settle_node)(struct planner *p, size_t node);
    /* Returns whether the layer must not read its inputs from the pairs that others read
       them from. NULL: there is no such layer. */
    bool (*must_read_raw)(const struct planner *p, const struct qdq_layer *layer);
    /*
     * Returns the reason why a layer stays in floating point, or NULL, and may add the
     * rule for that to the layer. The layer's weight has been chosen (weight_input,
     * weight_axis), and `wants_inputs` says whether the inputs are to have pairs. NULL:
     * there is no such reason.
     */
    const char *(*hindrance)(const struct planner *p, struct qdq_layer *layer,
                             bool wants_inputs);
    /*
     * Returns whether a layer whose weight cannot be quantized gets no pair on its
     * inputs either, and adds the rule for that to the layer. NULL: such a layer gets
     * no pair.
     */
    bool (*needs_weight)(const struct planner *p, struct qdq_layer *layer);
    /* Returns whether the weight of a layer of the library's classes has a scale for
       each channel, if its format asks for that. NULL: it has. */
    bool (*is_per_channel)(const struct planner *p, const struct qdq_layer *layer,
                           int weight_input, size_t rank);
    /* Returns whether a weight has a scale for each channel instead of blocks that do not
       divide its axis. NULL: it has the blocks. */
    bool (*wants_whole_blocks)(const struct planner *p);
    /* Returns whether the layer's weight has the format of the activations. NULL: no
       weight has. */
    bool (*is_operand)(const struct planner *p, const struct qdq_layer *layer);

    /* --- outputs, when all layers have been decided on --- */

    /* Leaves layers in floating point whose decision depends on those on others. NULL: there are none. */
    void (*settle)(struct planner *p);
    /* Gives layers pairs on their outputs, and layers that move data pairs on their
       inputs. NULL: only inputs have pairs. */
    enum qdq_code (*decide_outputs)(struct planner *p, struct qdq_error *err);
    /*
     * Completes the planned tensors: which of them share a scale, and which biases
     * become int32. NULL: all tensors have scales of their own, and biases stay
     * floating point.
     */
    enum qdq_code (*complete)(struct planner *p, struct qdq_error *err);
    /* Returns whether rules of a complete spec leave layers in floating point because that takes
       less time there. NULL: none does. */
    bool (*weighs)(const struct qdq_spec *spec);
    /* Gives those rules of a complete spec the states that they have in another one; NULL: all are
       off. A recipe that measures the times of layers takes them as a first guess. NULL: nothing is
       measured. */
    void (*set_weighing)(struct qdq_spec *spec, const struct qdq_spec *like);
    /* Returns whether a layer is quantized because its neighbours are, so that it
       may change when another layer is left in floating point. NULL: no layer is. */
    bool (*follows)(const struct qdq_layer *layer);

    /* --- how its runtime computes the plan --- */

    /* Returns whether the runtime has an integer kernel for an operator, and whether it
       clips by the QuantizeLinear behind one. NULL: no operator. */
    bool (*has_kernel)(const char *op);
    bool (*is_clipping)(const char *op);

    /* --- what is said of the plan --- */

    /* Adds to a layer the rules that its decision follows. NULL: none. */
    void (*cite)(const struct planner *p, struct qdq_layer *layer);
    /* Warns of connections whose branches are better read without a pair. NULL: no
       warning. */
    enum qdq_code (*warn_connections)(struct planner *p, struct qdq_error *err);
    /* Returns why the runtime does not load a quantized layer in its formats, or NULL. It is asked
       of every layer before check_formats(), which finds the answers in qdq_layer.refused, and so does
       a recipe that chooses formats. NULL: it loads all of them. */
    const char *(*refusal)(const struct planner *p, const struct qdq_layer *layer);
    /* Refuses combinations of formats that the rules exclude, and warns of formats
       that the target would refuse. NULL: all formats fit. */
    enum qdq_code (*check_formats)(struct planner *p, struct qdq_error *err);
    /* The target's warnings about layers, with a row of zeros behind the last. NULL:
       there are none. */
    const struct qdqi_lint *lints;
};

#endif
