/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "api.h"

#include "api/route.h"

static const struct {
    const char *method, *path;
    enum api_route route;
    const char *id;
    enum api_body body;
} found[] = {
    {"PUT", "/v1/blobs/sha256:ab", API_ROUTE_blob_put, "sha256:ab", API_BODY_BLOB},
    {"HEAD", "/v1/blobs/sha256:ab", API_ROUTE_blob_get, "sha256:ab", API_BODY_NONE},
    {"DELETE", "/v1/blobs/x", API_ROUTE_blob_delete, "x", API_BODY_NONE},
    {"POST", "/v1/models", API_ROUTE_models_post, "", API_BODY_MODEL},
    {"POST", "/v1/datasets", API_ROUTE_datasets_post, "", API_BODY_FILE},
    {"GET", "/v1/models/sha256:ab", API_ROUTE_model_get, "sha256:ab", API_BODY_NONE},
    {"HEAD", "/v1/models/sha256:ab", API_ROUTE_model_get, "sha256:ab", API_BODY_NONE},
    {"GET", "/v1/models/x/info", API_ROUTE_model_info, "x", API_BODY_NONE},
    {"DELETE", "/v1/models/x", API_ROUTE_model_delete, "x", API_BODY_NONE},
    {"POST", "/v1/jobs", API_ROUTE_jobs_post, "", API_BODY_JOB},
    {"GET", "/v1/jobs", API_ROUTE_jobs_get, "", API_BODY_NONE},
    {"GET", "/v1/jobs/7/events", API_ROUTE_job_events, "7", API_BODY_NONE},
    {"POST", "/v1/jobs/7/cancel", API_ROUTE_job_cancel, "7", API_BODY_NONE},
    {"GET", "/v1/jobs/7/report", API_ROUTE_job_report, "7", API_BODY_NONE},
    {"GET", "/v1/jobs/7/compare", API_ROUTE_job_compare, "7", API_BODY_NONE},
    {"GET", "/v1/jobs/7/spec", API_ROUTE_job_spec, "7", API_BODY_NONE},
    {"POST", "/v1/quantize", API_ROUTE_quantize_post, "", API_BODY_JOB},
    {"POST", "/v1/hooks/glyph", API_ROUTE_hook_post, "glyph", API_BODY_MESSAGE},
    {"GET", "/v1/tenants", API_ROUTE_tenants_get, "", API_BODY_NONE},
    {"GET", "/v1/nodes", API_ROUTE_nodes_get, "", API_BODY_NONE},
    {"GET", "/v1/layers", API_ROUTE_layers_get, "", API_BODY_NONE},
    {"GET", "/v1/cases", API_ROUTE_cases_get, "", API_BODY_NONE},
    {"GET", "/v1/targets", API_ROUTE_targets_get, "", API_BODY_NONE},
    {"GET", "/ui", API_ROUTE_ui, "", API_BODY_NONE},
    {"HEAD", "/healthz", API_ROUTE_healthz, "", API_BODY_NONE},
};

UNIT_ROWS(test_found, found)
{
    struct api_match match = {0};
    struct api_problem problem = {0};
    char allow[64];
    ck_assert(api_route_match(found[_i].method, found[_i].path, &match, allow,
                              sizeof allow, &problem));
    ck_assert_int_eq(match.route, found[_i].route);
    ck_assert_int_eq(match.body, found[_i].body);
    ck_assert_str_eq(match.id, found[_i].id);
    ck_assert(!problem.set);
}

#define LONG_SEGMENT(x) x x x x x x x x

static const struct {
    const char *method, *path;
    enum api_code code;
    const char *allow;
} refused[] = {
    {"POST", "/", API_METHOD_NOT_ALLOWED, "GET, HEAD"},
    {"GET", "", API_NOT_FOUND, ""},
    {"GET", "/v1", API_NOT_FOUND, ""},
    {"GET", "/v1/models/", API_NOT_FOUND, ""},
    {"GET", "/v1/models/a/b", API_NOT_FOUND, ""},
    {"GET", "/v1/models//info", API_NOT_FOUND, ""},
    {"GET", "/v1/jobs/7/", API_NOT_FOUND, ""},
    {"GET", "/healthz/", API_NOT_FOUND, ""},
    {"GET", "/healthzz", API_NOT_FOUND, ""},
    {"GET", "/v1/jobs/" LONG_SEGMENT("0123456789abcdef"), API_NOT_FOUND, ""},
    {"DELETE", "/v1/jobs", API_METHOD_NOT_ALLOWED, "POST, GET, HEAD"},
    {"PATCH", "/v1/models/x", API_METHOD_NOT_ALLOWED, "GET, HEAD, DELETE"},
    {"POST", "/v1/cases", API_METHOD_NOT_ALLOWED, "GET, HEAD"},
    {"GET", "/v1/quantize", API_METHOD_NOT_ALLOWED, "POST"},
    {"HEAD", "/v1/quantize", API_METHOD_NOT_ALLOWED, "POST"},
    {"get", "/healthz", API_METHOD_NOT_ALLOWED, "GET, HEAD"},
};

UNIT_ROWS(test_refused, refused)
{
    struct api_match match = {.id = "untouched"};
    struct api_problem problem = {0};
    char allow[64];
    ck_assert(!api_route_match(refused[_i].method, refused[_i].path, &match, allow,
                               sizeof allow, &problem));
    ck_assert_int_eq(problem.code, refused[_i].code);
    ck_assert_str_eq(allow, refused[_i].allow);
    ck_assert(strstr(problem.detail, problem.code == API_NOT_FOUND
                                         ? "/openapi.yaml"
                                         : refused[_i].allow));
    ck_assert_str_eq(match.id, "untouched");
}

/* Each row is found by its own pattern, so no row hides another. */
UNIT_LOOP(test_every_row, API_N_ROUTES)
{
    struct api_match match = {0};
    char allow[64];
    ck_assert(api_route_match(api_routes[_i].method, api_routes[_i].pattern, &match,
                              allow, sizeof allow, NULL));
    ck_assert_int_eq(match.route, _i);
}

UNIT_SUITE("api/route")
