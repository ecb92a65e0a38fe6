/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "api.h"

#include "api/job.h"
#include "api/version.h"
#include "api/spec.h"
#include "qdq/quantize.h"

UNIT_LOOP(test_state, API_N_JOB_STATES)
{
    enum api_job_state state = (enum api_job_state)_i;
    ck_assert_int_eq(api_job_state_parse(api_job_state_name(state)), state);
    ck_assert_int_eq(api_job_state_ended(state),
                     state != API_JOB_QUEUED && state != API_JOB_RUNNING);
}

UNIT_TEST(test_no_state)
{
    ck_assert_int_eq(api_job_state_parse("done"), API_N_JOB_STATES);
    ck_assert_int_eq(api_job_state_parse(""), API_N_JOB_STATES);
    ck_assert_str_eq(api_job_state_name(API_N_JOB_STATES), "");
}

/* --- encoding ------------------------------------------------------------- */

#define SOURCE "\"source\":{\"model\":null,\"calibration\":null}"
#define QUEUED_JSON                                                                    \
    "{\"id\":\"j1\",\"state\":\"queued\",\"progress\":null,\"queue\":{\"position\":2," \
    "\"waiting_for\":null},\"attempts\":0,"                                            \
    "\"created_at\":\"2023-11-14T22:13:20.123Z\","                                     \
    "\"started_at\":null,\"ended_at\":null,\"expires_at\":null,\"model\":"             \
    "\"sha256:aa\",\"calibration\":null,\"evaluation\":null," SOURCE                   \
    ",\"spec\":{\"calibration\":{\"percentile\":"                                      \
    "99.99}},\"labels\":{\"team\":\"a\"},\"cached_from\":null,\"result\":null,"        \
    "\"deliveries\":[],\"error\":null}"

static const struct api_job queued = {
    .id = "j1",
    .state = API_JOB_QUEUED,
    .position = 2,
    .created_at = 1700000000123,
    .model = "sha256:aa",
    .spec = "{\"calibration\":{\"percentile\":99.99}}",
    .labels = "{\"team\":\"a\"}",
};

static char *
encode_queued(void)
{
    return api_job_encode(&queued);
}

/* A job that joined another has no position of its own in the queue. */
UNIT_TEST(test_joined)
{
    struct api_job job = queued;
    job.position = 0;
    job.waiting_for = "j0";
    char *text = api_job_encode(&job);
    ck_assert_ptr_nonnull(
        strstr(text, "\"queue\":{\"position\":null,\"waiting_for\":\"j0\"}"));
    free(text);
    job.waiting_for = NULL;
    job.cached_from = "j0";
    text = api_job_encode(&job);
    ck_assert_ptr_nonnull(strstr(text, "\"queue\":null"));
    ck_assert_ptr_nonnull(strstr(text, "\"cached_from\":\"j0\""));
    free(text);
}

static char *
encode_ended(void)
{
    struct api_problem problem = {0};
    api_problem_set(&problem, API_NONFINITE, QDQ_AT_SAMPLE, "7", "a NaN in \"x\"");
    struct api_job job = {
        .id = "j2",
        .state = API_JOB_FAILED,
        .stage = "calibrate",
        .done = 7,
        .total = 256,
        .eta_s = 61,
        .attempts = 2,
        .created_at = 1,
        .started_at = 999,
        .ended_at = 253402300799999,
        .model = "sha256:aa",
        .calibration = "sha256:bb",
        .spec = "not JSON",
        .result_model = "sha256:cc",
        .result_size = 5000000000,
        .summary = "{\"layers\":3}",
        .error = &problem,
    };
    return api_job_encode(&job);
}

UNIT_TEST(test_job)
{
    expect_json(encode_queued(), QUEUED_JSON);
    expect_json(
        encode_ended(),
        "{\"id\":\"j2\",\"state\":\"failed\",\"progress\":{\"stage\":\"calibrate\","
        "\"done\":7,\"total\":256,\"eta_s\":61},\"queue\":null,\"attempts\":2,"
        "\"created_at\":"
        "\"1970-01-01T00:00:00.001Z\",\"started_at\":\"1970-01-01T00:00:00.999Z\","
        "\"ended_at\":\"9999-12-31T23:59:59.999Z\",\"expires_at\":null,\"model\":"
        "\"sha256:aa\",\"calibration\":\"sha256:bb\",\"evaluation\":null," SOURCE
        ",\"spec\":null,\"labels\":null,"
        "\"cached_from\":null,\"result\":null,\"deliveries\":[],\"error\":{\"type\":\"/"
        "v1/"
        "errors#nonfinite\","
        "\"title\":\"a NaN or an infinity was met\",\"status\":422,\"detail\":"
        "\"a NaN in \\\"x\\\"\",\"code\":\"nonfinite\",\"retryable\":false,"
        "\"errors\":[{\"sample\":7,\"detail\":\"a NaN in \\\"x\\\"\"}]}}");
}

/* Requests that mean the same, however they are written, and requests that differ. */
static const char *const sames[] = {
    "{\"model\":\"m\",\"spec\":{},\"labels\":{\"a\":\"1\",\"b\":\"2\"}}",
    "{\"labels\":{\"b\":\"2\",\"a\":\"1\"},\"spec\":null,\"priority\":0,"
    "\"model\":\"m\",\"calibration\":null,\"fresh\":false}",
    "{\"model\":\"m\",\"spec\":{\"mode\":\"full\"},\"labels\":{ \"a\":\"1\","
    "\"b\":\"2\" }}",
};
static const struct {
    const char *json;
    bool same_result;
} differents[] = {
    {"{\"model\":\"m\"}", true},
    {"{\"model\":\"m\",\"labels\":{\"a\":\"1\"}}", true},
    {"{\"model\":\"m\",\"priority\":1,\"labels\":{\"a\":\"1\",\"b\":\"2\"}}", true},
    {"{\"model\":\"m\",\"fresh\":true,\"labels\":{\"a\":\"1\",\"b\":\"2\"}}", true},
    {"{\"model\":\"n\",\"labels\":{\"a\":\"1\",\"b\":\"2\"}}", false},
    {"{\"model\":\"m\",\"calibration\":\"c\",\"labels\":{\"a\":\"1\",\"b\":\"2\"}}",
     false},
    {"{\"model\":\"m\",\"spec\":{\"evaluate\":false},\"labels\":{\"a\":\"1\","
     "\"b\":\"2\"}}",
     false},
};

/* Returns the two texts from which a request's digests are made; the caller frees
   them. */
static void
ask(const char *json, char **ret_identity, char **ret_asked)
{
    struct api_job_request request;
    struct api_spec *spec;
    struct api_problem problem = {0};
    ck_assert(api_job_request_decode(json, strlen(json), &request, &problem));
    ck_assert(api_spec_decode(request.spec, request.spec ? strlen(request.spec) : 0,
                              &spec, &problem));
    char *effective = api_spec_encode(api_spec_get(spec));
    *ret_identity = api_job_identity(&request, effective, "", "");
    *ret_asked = api_job_asked(&request, effective);
    ck_assert(*ret_identity && *ret_asked);
    free(effective);
    api_spec_free(&spec);
    api_job_request_fini(&request);
}

UNIT_ROWS(test_asked, sames)
{
    char *identity, *asked, *same_identity, *same_asked;
    ask(sames[0], &identity, &asked);
    ask(sames[_i], &same_identity, &same_asked);
    ck_assert_str_eq(identity, same_identity);
    ck_assert_str_eq(asked, same_asked);
    ck_assert_ptr_nonnull(strstr(identity, qdq_version()));
    ck_assert_ptr_null(strstr(asked, "engine"));
    free(identity);
    free(asked);
    free(same_identity);
    free(same_asked);
}

UNIT_ROWS(test_asked_other, differents)
{
    char *identity, *asked, *other_identity, *other_asked;
    ask(sames[0], &identity, &asked);
    ask(differents[_i].json, &other_identity, &other_asked);
    ck_assert_int_eq(!strcmp(identity, other_identity), differents[_i].same_result);
    ck_assert_str_ne(asked, other_asked);
    free(identity);
    free(asked);
    free(other_identity);
    free(other_asked);
}

/* Other scripts of the operator, or another ONNX Runtime, may give other results, so
   the identity differs. */
UNIT_TEST(test_scripts)
{
    struct api_job_request request = {0};
    char *without = api_job_identity(&request, "{}", "", "1 2.3");
    char *with = api_job_identity(&request, "{}", "sha256:s", "1 2.3");
    char *other = api_job_identity(&request, "{}", "", "1 2.4");
    ck_assert_str_ne(without, with);
    ck_assert_str_ne(without, other);
    free(other);
    free(without);
    free(with);
}

UNIT_TEST(test_no_eta)
{
    const struct api_job job = {
        .id = "j4", .state = API_JOB_RUNNING, .stage = "load", .eta_s = -1};
    char *text = api_job_encode(&job);
    ck_assert_ptr_nonnull(strstr(text, "\"total\":0,\"eta_s\":null}"));
    free(text);
    expect_json(api_progress_encode(&job),
                "{\"stage\":\"load\",\"done\":0,\"total\":0,\"eta_s\":null}");
}

/* Only a job that succeeded has a result; a job whose model was rejected names the
   model in its error. */
UNIT_TEST(test_result)
{
    struct api_problem refused = {0};
    struct api_job job = {.id = "j3",
                          .state = API_JOB_SUCCEEDED,
                          .model = "sha256:aa",
                          .result_model = "sha256:cc",
                          .result_size = 5000000000,
                          .summary = "{\"layers\":3}"};
    char *text = api_job_encode(&job);
    ck_assert_ptr_nonnull(strstr(text, "\"result\":{\"model\":\"sha256:cc\",\"size\":"
                                       "5000000000,\"files\":null,"
                                       "\"summary\":{\"layers\":3}}"));
    free(text);
    api_problem_set(&refused, API_ACCURACY, QDQ_AT_POINTER, "/accept/min_cosine",
                    "off");
    snprintf(refused.model, sizeof refused.model, "sha256:cc");
    job.state = API_JOB_FAILED;
    job.error = &refused;
    text = api_job_encode(&job);
    ck_assert_ptr_nonnull(strstr(text, "\"result\":null"));
    ck_assert_ptr_nonnull(strstr(text, "\"code\":\"accuracy\""));
    ck_assert_ptr_nonnull(strstr(text, "\"model\":\"sha256:cc\"}}"));
    free(text);
}

static char *
encode_dataset(void)
{
    return api_dataset_encode("sha256:bb", 9, 1700000000000, 1700000001000,
                              "{\"samples\":2,\"inputs\":[]}");
}

static char *
encode_model(void)
{
    return api_model_encode("sha256:aa", 77, 1700000000000, 0, NULL);
}

static char *
encode_version(void)
{
    return api_version_encode("{\"backends\":[],\"devices\":[{\"device\":\"cpu\"}]}");
}

UNIT_TEST(test_stored)
{
    expect_json(encode_model(),
                "{\"id\":\"sha256:aa\",\"size\":77,\"created_at\":"
                "\"2023-11-14T22:13:20.000Z\",\"expires_at\":null,\"files\":"
                "[{\"digest\":\"sha256:aa\",\"size\":77}]}");
    expect_json(
        encode_dataset(),
        "{\"id\":\"sha256:bb\",\"size\":9,\"created_at\":"
        "\"2023-11-14T22:13:20.000Z\",\"expires_at\":\"2023-11-14T22:13:21.000Z\","
        "\"samples\":2,"
        "\"inputs\":[]}");
    expect_json(api_status_encode("ok"), "{\"status\":\"ok\"}");
}

static char *
encode_tenants(void)
{
    static const struct api_tenant tenants[] = {
        {.name = "", .queue = 5},
        {.name = "a",
         .jobs = {1, 2, 3, 4, 5},
         .bytes = 6,
         .max_bytes = 7,
         .job_timeout = 8},
    };
    return api_tenants_encode(tenants, 2);
}

UNIT_TEST(test_tenants)
{
    expect_json(
        encode_tenants(),
        "{\"tenants\":[{\"tenant\":null,\"jobs\":{\"queued\":0,\"running\":0,"
        "\"succeeded\":0,\"failed\":0,\"cancelled\":0},\"bytes\":0,\"limits\":"
        "{\"queue\":5,\"max_bytes\":null,\"job_timeout\":null}},"
        "{\"tenant\":\"a\",\"jobs\":{\"queued\":1,\"running\":2,\"succeeded\":3,"
        "\"failed\":4,\"cancelled\":5},\"bytes\":6,\"limits\":{\"queue\":null,"
        "\"max_bytes\":7,\"job_timeout\":8}}]}");
}

UNIT_TEST(test_version)
{
    char wanted[256];
    snprintf(wanted, sizeof wanted,
             "{\"version\":\"%s\",\"engine\":\"%s\",\"backends\":[],\"devices\":"
             "[{\"device\":\"cpu\"}]}",
             PACKAGE_VERSION, qdq_version());
    expect_json(encode_version(), wanted);
    snprintf(wanted, sizeof wanted,
             "{\"version\":\"%s\",\"engine\":\"%s\",\"backends\":null,\"devices\":"
             "null}",
             PACKAGE_VERSION, qdq_version());
    expect_json(api_version_encode(NULL), wanted);
}

static char *
encode_backends(void)
{
    return api_backends_encode(&(struct api_backends){
        .runtime = "{\"name\":\"onnxruntime\",\"problem\":null}",
        .judges = (const char *const[]){"{\"name\":\"openvino\"}"},
        .n_judges = 1,
        .gpus = (const char *const[]){"{\"backend\":1,\"device\":2}", "{\"device\":3}"},
        .n_gpus = 2,
        .module = "/m"});
}

static char *
encode_gpu(void)
{
    return api_gpu_encode(&(struct api_gpu){3, "H9", "/m.so", true, "it is lost"});
}

UNIT_TEST(test_backends)
{
    expect_json(
        encode_backends(),
        "{\"backends\":[{\"name\":\"onnxruntime\",\"problem\":null},{\"name\":"
        "\"openvino\"},1],"
        "\"devices\":[{\"device\":\"cpu\",\"name\":null,\"problem\":null},2,3]}");
    char *runtime = api_runtime_encode("/ort.so", NULL, "not there");
    char *openvino = api_judge_encode("openvino", NULL, "2", NULL);
    expect_json(
        api_backends_encode(
            &(struct api_backends){.runtime = runtime,
                                   .judges = (const char *const[]){openvino},
                                   .n_judges = 1,
                                   .module = "/m"}),
        "{\"backends\":[{\"name\":\"onnxruntime\",\"version\":null,\"path\":"
        "\"/ort.so\",\"problem\":\"not "
        "there\"},{\"name\":\"openvino\",\"version\":\"2\","
        "\"path\":null,\"problem\":null},{\"name\":\"cuda\",\"version\":"
        "null,\"path\":\"/m\",\"problem\":\"no GPU is configured (gpu.devices)\"}],"
        "\"devices\":[{\"device\":\"cpu\",\"name\":null,\"problem\":\"not there\"}]}");
    free(openvino);
    free(runtime);
    expect_json(encode_gpu(),
                "{\"backend\":{\"name\":\"cuda\",\"version\":null,\"path\":\"/m.so\","
                "\"problem\":null},\"device\":{\"device\":\"cuda:3\",\"name\":\"H9\","
                "\"problem\":\"it is lost\"}}");
}

static const unit_encode_fn encoders[] = {
    encode_queued,  encode_ended,   encode_dataset, encode_model,
    encode_version, encode_tenants, encode_gpu,     encode_backends,
};

UNIT_ROWS(test_no_memory, encoders)
{
    expect_survives_no_memory(encoders[_i]);
}

/* --- a job's body --------------------------------------------------------- */

UNIT_TEST(test_request)
{
    static const char text[] =
        "{\"model\":\"sha256:aa\",\"calibration\":\"sha256:bb\",\"spec\":{\"evaluate\":"
        "{\"samples\":3}},\"labels\":{\"team\":\"a\"},\"priority\":-2.0,\"fresh\":"
        "true}";
    struct api_job_request request;
    struct api_problem problem = {0};
    ck_assert(api_job_request_decode(text, sizeof text - 1, &request, &problem));
    ck_assert_str_eq(request.model, "sha256:aa");
    ck_assert_str_eq(request.calibration, "sha256:bb");
    ck_assert_str_eq(request.spec, "{\"evaluate\":{\"samples\":3}}");
    ck_assert_str_eq(request.labels, "{\"team\":\"a\"}");
    ck_assert_int_eq(request.priority, -2);
    ck_assert(request.fresh);
    api_job_request_fini(&request);
    ck_assert_ptr_null(request.model);
}

UNIT_LOOP(test_empty_request, 2)
{
    static const char *const texts[] = {"{}", "{\"model\":null,\"spec\":null}"};
    struct api_job_request request;
    struct api_problem problem = {0};
    ck_assert(api_job_request_decode(texts[_i], strlen(texts[_i]), &request, &problem));
    ck_assert_ptr_null(request.model);
    ck_assert_ptr_null(request.calibration);
    ck_assert_ptr_null(request.spec);
    ck_assert_ptr_null(request.labels);
    ck_assert_int_eq(request.priority, 0);
    ck_assert(!request.fresh);
    api_job_request_fini(&request);
}

static const struct {
    const char *text;
    enum api_code code;
    const char *where;
} refused[] = {
    {"{\"model\"", API_INVALID_JSON, "8"},
    {"[]", API_BAD_REQUEST, ""},
    {"{\"modl\":\"x\"}", API_BAD_REQUEST, "/modl"},
    {"{\"model\":3}", API_BAD_REQUEST, "/model"},
    {"{\"model\":\"a\",\"model\":\"b\"}", API_BAD_REQUEST, "/model"},
    {"{\"spec\":{},\"spec\":{}}", API_BAD_REQUEST, "/spec"},
    {"{\"spec\":{\"mode\":1,\"mode\":1}}", API_INVALID_SPEC, "/mode"},
    {"{\"spec\":{\"a\":{\"b\":1,\"b\":1}}}", API_INVALID_SPEC, "/a/b"},
    {"{\"calibration\":[]}", API_BAD_REQUEST, "/calibration"},
    {"{\"labels\":[]}", API_BAD_REQUEST, "/labels"},
    {"{\"labels\":{\"a/b\":1}}", API_BAD_REQUEST, "/labels/a~1b"},
    {"{\"priority\":\"high\"}", API_BAD_REQUEST, "/priority"},
    {"{\"priority\":1.5}", API_BAD_REQUEST, "/priority"},
    {"{\"fresh\":1}", API_BAD_REQUEST, "/fresh"},
    {"{\"evaluation\":{\"remote\":\"r\"}}", API_BAD_REQUEST, "/evaluation"},
};

UNIT_ROWS(test_refused_request, refused)
{
    struct api_job_request request;
    memset(&request, 0x55, sizeof request);
    struct api_job_request untouched = request;
    struct api_problem problem = {0};
    const char *text = refused[_i].text;
    ck_assert(!api_job_request_decode(text, strlen(text), &request, &problem));
    ck_assert_msg(problem.code == refused[_i].code, "%s is %s", text,
                  api_problem_slug(problem.code));
    ck_assert_str_eq(problem.where, refused[_i].where);
    ck_assert_mem_eq(&request, &untouched, sizeof request);
}

UNIT_TEST(test_labels)
{
    struct api_problem problem = {0};
    ck_assert(api_labels_check("{}", &problem));
    ck_assert(api_labels_check("{\"a\":\"b\"}", &problem));
    ck_assert(!problem.set);
    ck_assert(!api_labels_check("{\"a\":1}", &problem));
    ck_assert_str_eq(problem.where, "/a");
    ck_assert_int_eq(problem.code, API_BAD_REQUEST);
    problem = (struct api_problem){0};
    ck_assert(!api_labels_check("", &problem));
    ck_assert_int_eq(problem.code, API_INVALID_JSON);
}

UNIT_SUITE("api/job")
