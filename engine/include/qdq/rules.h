/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The placement rules of the targets. They are cited by their ids: in a layer's `rules`,
 * in a warning's `rule`, in a spec's `rules`.
 *
 * A set of rules is a word of 64 bits: bit i is rule i. What is returned here is
 * constant and may be shared by threads.
 */
#ifndef QDQ_RULES_H
#define QDQ_RULES_H

#include "qdq/spec.h"

struct qdq_rule {
    const char *id;   /* "T22"; unique over all targets */
    bool is_fixed;    /* it holds always: a spec cannot switch it */
    bool is_on;       /* by default */
    const char *text; /* one line */
};

/* Rule i of all targets' rules, NULL past the last. Those of one target stand together, by
   number; the targets stand in the order of their rows (qdq/targets.h). */
QDQ_API const struct qdq_rule *qdq_rule(size_t i);

#endif
