/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The placement rules of the targets. They are cited by id: in a layer's `rules`, in a
 * warning's `rule`, in a spec's `rules`.
 *
 * A set of rules is a 64-bit word: bit i is rule i. Everything returned here is
 * constant and may be shared by threads.
 */
#ifndef QDQ_RULES_H
#define QDQ_RULES_H

#include "qdq/spec.h"

struct qdq_rule {
    /* "T22". Targets that share a rule have a row with the same id and text each; else an
       id is unique over all targets. */
    const char *id;
    bool is_fixed; /* the rule always holds: a spec cannot switch it */
    bool is_on;    /* default state */
    /* by default the target decides, by the spec and the class of processors */
    bool is_auto;
    const char *text; /* one line */
};

/* Returns rule i of all targets' rules; NULL past the last. The rules of one target
   are adjacent, by number; targets are in the order of their rows (qdq/targets.h). */
QDQ_API const struct qdq_rule *qdq_rule(size_t i);

#endif
