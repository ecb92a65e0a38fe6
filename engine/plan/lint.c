/* SPDX-License-Identifier: Apache-2.0 */
/* Adds the target's warnings to a plan. The plan itself does not change: it does
   what the spec asks for. */
#include "config.h"
#include "plan/lint.h"

#include "plan/target.h"

#include <stdio.h>
#include <string.h>

enum { NAMED = 3, LONGEST = 64 };

/* A list of layers for a message: "1 layer (conv1)", "2 layers (a, b)" or "17 layers
   (a, b, c, ...)". */
struct layers {
    size_t n;
    const char *first;
    char names[NAMED * (LONGEST + 8) + 8];
};

static void
add_layer(struct layers *to, const char *name)
{
    size_t len = strlen(to->names), room = sizeof to->names - len;
    if (to->n == 0)
        to->first = name;
    if (to->n < NAMED)
        snprintf(to->names + len, room, "%s%.*s%s", to->n ? ", " : "", LONGEST, name,
                 strlen(name) > LONGEST ? "..." : "");
    else if (to->n == NAMED)
        snprintf(to->names + len, room, ", ...");
    to->n++;
}

static enum qdq_code
warn(struct planner *p, const struct qdqi_lint *lint, const struct layers *layers,
     struct qdq_error *err)
{
    enum qdq_code code =
        qdqi_warn(&p->warnings, p->plan->arena, err, lint->code, layers->first,
                  "%zu layer%s (%s): %s", layers->n, layers->n == 1 ? "" : "s",
                  layers->names, lint->text);
    if (!code)
        p->warnings.rows[p->warnings.n - 1].rule = qdqi_rule_id(p, lint->rule);
    return code;
}

enum qdq_code
qdqi_lint(struct planner *p, struct qdq_error *err)
{
    const struct qdqi_lint *lint = p->spec->target->hooks->lints;
    enum qdq_code code = QDQ_OK;
    /* With weights alone no layer computes in int8, unless the model has pairs of
       its own. */
    if (p->plan->view.n_tensors == 0 && p->spec->existing_qdq == QDQ_EXISTING_ERROR)
        return QDQ_OK;
    for (; lint && lint->code && !code; lint++) {
        struct layers layers = {0};
        for (size_t i = 0; i < p->n_layers; i++)
            if (lint->means(p, &p->layers[i]))
                add_layer(&layers, p->layers[i].name);
        if (layers.n > 0)
            code = warn(p, lint, &layers, err);
    }
    return code;
}
