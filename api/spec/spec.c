/* SPDX-License-Identifier: Apache-2.0 */
/* Decodes the text of a whole spec into the struct, and encodes it again. */
#include "config.h"
#include "api/spec.h"

#include <stdlib.h>
#include <string.h>

#include "spec/members.h"

static bool
is_blank(const char *text, size_t len)
{
    for (size_t i = 0; i < len; i++)
        if (!memchr(" \t\r\n", text[i], 4))
            return false;
    return true;
}

static bool
check_mode(struct decoder *d)
{
    const struct qdq_spec *spec = &d->to->spec;
    return spec->mode != QDQ_MODE_PARTIAL || spec->n_layers > 0 || spec->n_cases > 0 ||
           api_refuse(d, API_INVALID_SPEC, "/mode",
                      "partial mode, and neither layers nor cases name anything");
}

bool
api_spec_decode(const char *text, size_t len, struct api_spec **ret,
                struct api_problem *problem)
{
    bool ok = false;
    struct api_spec *spec = calloc(1, sizeof *spec);
    if (!spec) {
        api_problem_no_memory(problem);
        goto out;
    }
    qdq_spec_init(&spec->spec);
    if (!text) {
        text = "{}";
        len = 2;
    } else if (is_blank(text, len)) {
        api_fail(problem, API_INVALID_JSON,
                 "the spec is empty; leave it out, or send {}, for the default one");
        goto out;
    }
    spec->root = api_json_load(text, len, API_INVALID_SPEC, problem);
    if (!spec->root)
        goto out;
    if (!json_is_object(spec->root)) {
        api_fail_at(problem, API_INVALID_SPEC, "", "a spec is to be an object, not %s",
                    api_json_type_name(spec->root));
        goto out;
    }
    struct decoder decoder = {spec, problem, &api_members, &spec->spec, ""};
    if (!api_decode_members(&decoder, "", spec->root) || !check_mode(&decoder) ||
        !api_check_accept(&decoder) || !api_check_task(&decoder) ||
        !api_check_percentile(&decoder) || !api_check_formats(&decoder) ||
        !api_check_random(&decoder) || !api_settle_rules(&decoder) ||
        !api_check_recipe(&decoder) || !api_check_version(&decoder) ||
        !api_check_host(&decoder))
        goto out;
    api_settle_choices(&decoder);
    api_settle_host(&decoder);
    qdq_spec_complete(&spec->spec);
    *ret = spec;
    spec = NULL;
    ok = true;
out:
    api_spec_free(&spec);
    return ok;
}

bool
api_spec_set_metric(struct api_spec *spec, const char *id, struct api_problem *problem)
{
    json_t *task = json_object_get(spec->root, "task"), *text = json_string(id);
    if (!text || json_object_set_new(task, "model", text))
        return api_problem_no_memory(problem);
    spec->spec.task.model = json_string_value(text);
    return true;
}

char *
api_spec_text(const struct api_spec *spec)
{
    return api_json_dump(json_incref(spec->root), 0);
}

void
api_spec_free(struct api_spec **spec)
{
    if (!spec || !*spec)
        return;
    json_decref((*spec)->root);
    api_spec_free_arrays(*spec);
    free(*spec);
    *spec = NULL;
}

const struct qdq_spec *
api_spec_get(const struct api_spec *spec)
{
    return &spec->spec;
}

char *
api_spec_encode(const struct qdq_spec *spec)
{
    json_t *root = api_leave_open(spec, api_encode_members(&api_members, spec));
    return api_json_dump(root, JSON_SORT_KEYS);
}
