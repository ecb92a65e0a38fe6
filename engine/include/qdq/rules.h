/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The placement rules of the targets. They are cited by id: in a layer's `rules`, in a
 * warning's `rule`, in a spec's `rules`.
 *
 * Each target numbers its own rules from 0 on, and a set of rules is one of a single
 * target: number i is row i of the target's `rules` (qdq/targets.h). Everything returned
 * here is constant and may be shared by threads.
 */
#ifndef QDQ_RULES_H
#define QDQ_RULES_H

#include "qdq/error.h"

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

enum { QDQ_MAX_RULES = 256 }; /* of one target */

/* A set of rules of one target, by number. A zeroed set is empty. */
struct qdq_rule_set {
    uint64_t words[QDQ_MAX_RULES / 64];
};

/* The number of a rule is below QDQ_MAX_RULES. */
QDQ_API bool qdq_rule_set_has(const struct qdq_rule_set *set, size_t rule);
QDQ_API void qdq_rule_set_add(struct qdq_rule_set *set, size_t rule);
QDQ_API void qdq_rule_set_remove(struct qdq_rule_set *set, size_t rule);

/* Returns rule i of all targets' rules; NULL past the last. The rules of one target
   are adjacent, by number; targets are in the order of their rows (qdq/targets.h). */
QDQ_API const struct qdq_rule *qdq_rule(size_t i);

#endif
