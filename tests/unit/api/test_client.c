/* SPDX-License-Identifier: Apache-2.0 */
/* The documents of a service as a client reads them, and the client's own requests. */
#include "config.h"
#include "api/client.h"
#include "api.h"

static struct api_document *
parse(const char *text)
{
    struct api_document *document = NULL;
    struct api_problem problem = {0};
    ck_assert(api_document_parse(text, strlen(text), &document, &problem));
    return document;
}

/* --- problems ------------------------------------------------------------- */

UNIT_LOOP(test_problems_come_back, API_N_CODES)
{
    struct api_problem sent = {0}, got = {0};
    enum qdq_where kind = (enum qdq_where)(_i % QDQ_N_WHERES);
    const char *where = kind == QDQ_AT_SAMPLE || kind == QDQ_AT_OFFSET ? "17" : "/a~1b";
    api_problem_set(&sent, (enum api_code)_i, kind, kind ? where : NULL, "why \"%d\"",
                    _i);
    char *text = api_problem_encode(&sent);
    api_problem_decode(text, strlen(text), api_problem_status(sent.code), &got);
    free(text);
    ck_assert(got.set);
    ck_assert_int_eq(got.code, sent.code);
    ck_assert_int_eq(got.kind, sent.kind);
    ck_assert_str_eq(got.where, sent.where);
    ck_assert_str_eq(got.detail, sent.detail);
}

/* An answer that is no problem document of this version. */
static const struct {
    const char *text;
    long status;
    enum api_code code;
    const char *part;
} strange[] = {
    {"", 502, API_UNAVAILABLE, "502"},
    {"<html>Bad Gateway</html>", 503, API_UNAVAILABLE, "503"},
    {"{\"detail\":\"x\"}", 401, API_UNAUTHORIZED, "401"},
    {"{\"code\":7}", 403, API_FORBIDDEN, "403"},
    {"[\"code\"]", 404, API_NOT_FOUND, "404"},
    {"{\"code\":\"later\",\"detail\":\"x\"}", 418, API_BAD_REQUEST, "later: x"},
    {"{\"code\":\"later\"}", 507, API_DISK_FULL, "later: "},
    {"{\"code\":\"not_found\",\"errors\":[7,{\"node\":\"a\"}],\"detail\":3}", 404,
     API_NOT_FOUND, "no such"},
};

UNIT_ROWS(test_strange_answers, strange)
{
    struct api_problem got = {0};
    api_problem_decode(strange[_i].text, strlen(strange[_i].text), strange[_i].status,
                       &got);
    ck_assert_int_eq(got.code, strange[_i].code);
    ck_assert_msg(strstr(got.detail, strange[_i].part), "%s", got.detail);
    ck_assert_int_eq(got.kind, QDQ_AT_NOTHING);
}

/* --- requests ------------------------------------------------------------- */

UNIT_TEST(test_requests)
{
    char model[] = "sha256:a", data[] = "sha256:b", spec[] = " {\"mode\": \"full\"}\n";
    struct api_job_request request = {.model = model, .calibration = data};
    expect_json(api_job_request_encode(&request),
                "{\"model\":\"sha256:a\",\"calibration\":\"sha256:b\"}");
    request.calibration = NULL;
    request.labels = api_name_label_encode("a\"b\xff.onnx");
    request.spec = spec;
    expect_json(
        api_job_request_encode(&request),
        "{\"model\":\"sha256:a\",\"labels\":{\"name\":\"a\\\"b\xef\xbf\xbd.onnx\"},"
        "\"spec\":{\"mode\":\"full\"}}");
    free(request.labels);
    const struct api_file files[] = {{"m.onnx", "sha256:a", 1}, {"a/w", "sha256:b", 2}};
    expect_json(api_files_encode(files, 2),
                "{\"files\":[{\"path\":\"m.onnx\",\"digest\":\"sha256:a\"},"
                "{\"path\":\"a/w\",\"digest\":\"sha256:b\"}]}");
}

UNIT_TEST(test_what_may_be_embedded)
{
    static const struct {
        const char *text;
        enum api_code code;
        bool ok;
    } rows[] = {{"{}", 0, true},
                {" {\"a\":1,\"a\":2} ", 0, true}, /* the service finds the second one */
                {"", API_INVALID_JSON, false},
                {"{}}", API_INVALID_JSON, false},
                {"{},\"model\":\"x\"", API_INVALID_JSON, false},
                {"[]", API_INVALID_SPEC, false},
                {"7", API_INVALID_SPEC, false}};
    for (int i = 0; i < N_ROWS(rows); i++) {
        struct api_problem problem = {0};
        ck_assert_int_eq(api_object_check(rows[i].text, strlen(rows[i].text), &problem),
                         rows[i].ok);
        ck_assert(rows[i].ok || problem.code == rows[i].code);
    }
}

/* --- documents ------------------------------------------------------------ */

static const char whole_job[] =
    "{\"id\":\"j1\",\"state\":\"running\",\"progress\":{\"stage\":\"calibrate\","
    "\"done\":3,"
    "\"total\":9,\"eta_s\":4},\"queue\":{\"position\":2,\"waiting_for\":\"j0\"},"
    "\"created_at\":\"2026-01-02T03:04:05.678Z\",\"labels\":{\"name\":\"net.onnx\"},"
    "\"result\":{\"model\":\"sha256:m\",\"size\":12,\"files\":[{\"path\":\"model."
    "onnx\","
    "\"digest\":\"sha256:x\",\"size\":5},{\"path\":\"d\",\"digest\":\"sha256:y\","
    "\"size\":7}]},"
    "\"error\":{\"code\":\"accuracy\",\"status\":409,\"detail\":\"missed\","
    "\"errors\":[{\"pointer\":\"/accept\",\"detail\":\"missed\"}]}}";

UNIT_TEST(test_a_job)
{
    struct api_document *document = parse(whole_job);
    struct api_job_facts job;
    ck_assert(api_document_job(document, &job));
    ck_assert_str_eq(job.id, "j1");
    ck_assert_int_eq(job.state, API_JOB_RUNNING);
    ck_assert_str_eq(job.name, "net.onnx");
    ck_assert_str_eq(job.stage, "calibrate");
    ck_assert(job.done == 3 && job.total == 9 && job.eta_s == 4 && job.position == 2);
    ck_assert_str_eq(job.waiting_for, "j0");
    ck_assert_str_eq(job.result_model, "sha256:m");
    ck_assert_uint_eq(job.n_files, 2);
    ck_assert_str_eq(job.files[1].digest, "sha256:y");
    ck_assert_uint_eq(job.files[1].size, 7);
    ck_assert(job.error.code == API_ACCURACY && job.error.kind == QDQ_AT_POINTER);
    api_document_free(&document);
}

/* Documents that have nothing, or something of another type, where something is looked for. */
static const char *const odd[] = {
    "{}",
    "[]",
    "null",
    "7",
    "{\"id\":7,\"state\":\"new\",\"progress\":[],\"queue\":1,\"labels\":[],\"result\":{"
    "\"files\":"
    "[1,{}]},\"error\":[]}",
    "{\"jobs\":[7,null,{}],\"next_cursor\":7}",
    "{\"summary\":[],\"layers\":[{\"quantized_inputs\":[\"a\",null]},7],\"warnings\":{}"
    "}",
    "{\"inputs\":[{\"shape\":[null,\"n\",3,{}]},1],\"ops\":[null],\"classes\":{\"a\":7}"
    "}",
    "{\"evaluation\":{\"outputs\":[7],\"layers\":[{}],\"deployed\":{\"runtime\":7}},"
    "\"gates\":[1],"
    "\"profile\":{\"float\":3},\"timings\":[]}",
};

static void
read_all(struct api_document *document)
{
    struct api_job_facts job = {0};
    const struct api_job_facts *jobs;
    const struct qdq_plan_view *plan;
    const char *cursor;
    size_t n, pairs;
    (void)api_document_job(document, &job);
    api_document_progress(document, &job);
    (void)api_document_jobs(document, &jobs, &n, &cursor);
    (void)api_document_plan(document, &pairs);
    (void)api_document_model(document, &plan);
    (void)api_document_report(document);
}

UNIT_ROWS(test_odd_documents, odd)
{
    struct api_document *document = parse(odd[_i]);
    struct api_job_facts job;
    read_all(document);
    ck_assert(api_document_job(document, &job));
    ck_assert(!job.id || _i > 4);
    ck_assert(api_document_report(document) != NULL);
    api_document_free(&document);
}

void *__real_calloc(size_t n, size_t size);
void *__wrap_calloc(size_t n, size_t size);

void *
__wrap_calloc(size_t n, size_t size)
{
    bool fails = unit_allocations_fail && unit_allocations_left-- <= 0;
    return fails ? NULL : __real_calloc(n, size);
}

UNIT_TEST(test_no_memory)
{
    /* Each allocation fails in turn; what is read is whole or absent. */
    for (int n = 0; n < 60; n++)
        for (int i = 0; i < N_ROWS(odd) + 1; i++) {
            struct api_document *document = parse(i < N_ROWS(odd) ? odd[i] : whole_job);
            unit_allocations_left = n;
            unit_allocations_fail = true;
            read_all(document);
            unit_allocations_fail = false;
            api_document_free(&document);
        }
}

UNIT_SUITE("client")
