/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Targets: the inference engines that models are quantized for. Each is a row; the rows
 * are constant and may be shared by threads. How one is added: docs/extend/adding-a-target.md.
 */
#ifndef QDQ_TARGETS_H
#define QDQ_TARGETS_H

#include "qdq/rules.h"
#include "qdq/spec.h"

struct qdqi_hooks; /* what the planner asks the target; inside the engine */

struct qdq_target {
    const char *name;  /* as a spec has it */
    const char *title; /* as people call it */
    const char *text;  /* one sentence: where pairs stand */
    /* The formats and the storage of a spec that names none. A format with a sign is
       used symmetrically then, one without is not. */
    enum qdq_format weights, activations;
    enum qdq_storage storage;
    /* the recipe of a spec that names none; NONE: the target has no other */
    enum qdq_recipe recipe;
    /* the rounding of weights of a spec that names none, where there are data to round by */
    enum qdq_rounding rounding;
    /* how the range of a weight is chosen for a spec that says nothing; MAX, which is 0, for most */
    enum qdq_weight_method weight_method;
    /* the class of hosts of a spec that names none, an accelerator's; NULL: that of this
       processor */
    const char *host;
    /* the recipe `auto` gives activations 16 bits where 8 are too few, and leaves no layer in
       floating point */
    bool widens;
    /* most samples that its runtime, which is slow, is asked to run where no spec says how many, and half
       of that for each candidate; 0: no bound of its own */
    int64_t judged_samples;
    bool has_kernels; /* its integer kernels run here: reports count them */
    /* the runtime that runs a result as deployed, which a program of the operator's alone may have;
       NULL, or not there: the literal arithmetic is all that can be said of the target */
    const char *runtime;
    /* what loads a result where it is deployed: "InferenceSession", "compile_model" or
       "trtexec", for the programs that reports end with; NULL: there are none */
    const char *loaded_by;
    bool
        is_proprietary; /* whoever offers its runtime to others needs a licence for it */
    bool has_versions;  /* a spec may state one of enum qdq_target_version */
    bool has_decoder_form; /* the spec's output.decoder may ask for one */
    bool
        has_context; /* its runtime compiles a model into another one: output.context */
    bool measures_if_asked; /* auto measures times for a frontier or a bound alone */
    bool short_names; /* names of new tensors do not repeat long names of tensors */
    bool has_dynamic; /* the runtime has kernels that quantize activations themselves */
    bool signed_scales;       /* its runtimes take weights with negative scales */
    bool quantizes_constants; /* Add and Mul have a pair on a constant operand, too */
    const struct qdq_rule *rules; /* by number, at most QDQ_MAX_RULES */
    size_t n_rules;
    const struct qdqi_hooks *hooks;
    bool
        searches_patterns; /* a runner's times of whole models place layers, by patterns */
};

/* Row i, NULL past the last. The first one is the target of a spec that names none. */
QDQ_API const struct qdq_target *qdq_target_row(size_t i);

/* The row of that name, or NULL. */
QDQ_API const struct qdq_target *qdq_target_find(const char *name);

/* The number of the target's rule of that id, or -1. */
QDQ_API int qdq_target_find_rule(const struct qdq_target *target, const char *id);

#endif
