/* SPDX-License-Identifier: Apache-2.0 */
/* Several reports in one table and one picture, with their frontiers. */
#include "config.h"
#include "api.h"

#include "api/overview.h"

#include <math.h>

/* The allocations of the page fail by the same rule as jansson's. */
void *__real_realloc(void *old, size_t size);
void *__wrap_realloc(void *old, size_t size);

void *
__wrap_realloc(void *old, size_t size)
{
    if (unit_allocations_fail && unit_allocations_left-- <= 0)
        return NULL;
    return __real_realloc(old, size);
}

#define SUMMARY                                                              \
    "\"summary\":{\"verdict\":\"good\",\"quantized_layers\":1,\"layers\":2," \
    "\"size_before\":8,\"size_after\":4}"
#define JUDGED(name)                                                 \
    "\"evaluation\":{\"samples\":3,\"deployed\":{\"processor\":\"a " \
    "cpu\",\"runtime\":{"                                            \
    "\"name\":\"" name "\",\"version\":\"1-2\"},\"outputs\":[{\"sqnr_db\":30}]}}"
#define PROFILE(name)                                                                  \
    "\"profile\":{\"ratio\":0.5,\"processor\":\"a cpu\",\"runtime\":{\"name\":\"" name \
    "\",\"version\":\"1-2\"}}"
#define FRONTIER                                                                       \
    "\"frontier\":[{\"sqnr_db\":28,\"latency_ratio\":0.4,\"size_ratio\":0.3,\"spec\":" \
    "{"                                                                                \
    "}},{\"sqnr_db\":null,\"latency_ratio\":1,\"size_ratio\":1,\"spec\":{}}]"

static const char timed[] = "{\"spec\":{\"target\":\"onnxruntime\"}," SUMMARY
                            "," JUDGED("one") "," PROFILE("one") "," FRONTIER "}";
static const char by_frontier[] =
    "{\"spec\":{\"target\":\"openvino\"}," SUMMARY "," JUDGED("two") "," FRONTIER "}";
static const char by_another[] = "{\"spec\":{\"target\":\"onnxruntime\"}," SUMMARY
                                 "," JUDGED("one") "," PROFILE("two") "}";
static const char skipped[] =
    "{\"spec\":{\"target\":\"tensorrt\"}," SUMMARY
    ",\"evaluation\":{\"samples\":3,\"outputs\":[{\"sqnr_db\":20}]},\"warnings\":[{"
    "\"code\":\"profile_skipped\",\"detail\":\"it does <not> run\"}]}";
static const char unjudged[] =
    "{\"spec\":{\"target\":\"openvino\"}," SUMMARY "," FRONTIER "}";

static const struct api_overviewed reports[] = {
    {"a", timed, sizeof timed - 1, NULL, NULL, NULL, NULL},
    {"b", by_frontier, sizeof by_frontier - 1, NULL, NULL, NULL, NULL},
    {"c", by_another, sizeof by_another - 1, NULL, NULL, NULL, NULL},
    {"d", skipped, sizeof skipped - 1, NULL, NULL, NULL, NULL},
    {"e", unjudged, sizeof unjudged - 1, "accuracy", "too low", "j5", NULL},
};

/* The latency of each. */
static const struct {
    double ratio;
    const char *runtime, *processor, *omitted;
} latencies[] = {
    {0.5, "one 1-2", "a cpu", ""},
    {(double)NAN, "two 1-2", "a cpu", "no profile was asked for"},
    {(double)NAN, "", "", "two 1-2 took it, and the result was judged by one 1-2"},
    {(double)NAN, "", "", "it does <not> run"},
    {(double)NAN, "openvino", "", "no profile was asked for"},
};

UNIT_ROWS(test_latency, latencies)
{
    struct api_overview_row row;
    ck_assert(api_overview_read(&reports[_i], &row));
    if (isnan(latencies[_i].ratio))
        ck_assert(isnan(row.latency_ratio));
    else
        ck_assert_double_eq(row.latency_ratio, latencies[_i].ratio);
    ck_assert_str_eq(row.latency_runtime, latencies[_i].runtime);
    ck_assert_str_eq(row.processor, latencies[_i].processor);
    ck_assert_str_eq(row.latency_omitted, latencies[_i].omitted);
}

UNIT_TEST(test_different_runtimes)
{
    struct api_overview_row a, b, c;
    ck_assert(api_overview_read(&reports[0], &a));
    ck_assert(api_overview_read(&reports[1], &b));
    ck_assert(api_overview_read(&reports[2], &c));
    ck_assert(!api_overview_differs(&a, &a));
    ck_assert(api_overview_differs(&a, &b));
    ck_assert(!api_overview_differs(&a, &c));
}

UNIT_TEST(test_json)
{
    char *text = api_overview_encode(&reports[1], 1);
    ck_assert_str_eq(
        text,
        "{\"results\":[{\"name\":\"b\",\"target\":\"openvino\",\"verdict\":\"good\","
        "\"quantized_layers\":1,\"layers\":2,\"size_ratio\":0.5,\"sqnr_db\":30.0,\"p5_"
        "db\":"
        "null,\"latency_ratio\":null,\"runtime\":\"two 1-2\",\"samples\":3,"
        "\"latency_runtime\":\"two 1-2\",\"latency_omitted\":\"no profile was asked "
        "for\","
        "\"processor\":\"a cpu\",\"frontier\":[{\"sqnr_db\":28.0,\"latency_ratio\":0.4,"
        "\"size_ratio\":0.3},{\"sqnr_db\":null,\"latency_ratio\":1.0,\"size_ratio\":1."
        "0}],\"job\":null}],\"failed\":[]}");
    free(text);
}

static size_t
count(const char *text, const char *piece)
{
    size_t n = 0;
    while ((text = strstr(text, piece))) {
        text += strlen(piece);
        n++;
    }
    return n;
}

UNIT_TEST(test_page)
{
    char *text = api_overview_html(reports, N_ROWS(reports));
    /* A point of each frontier and the result that was timed; and all results by their size, with a
       point of each frontier. */
    ck_assert_uint_eq(count(text, "<circle"), 3 + 1 + 4 + 3);
    /* Each of them leads to its row; rows without a point have a number, too. */
    ck_assert_uint_eq(count(text, "<a href=\"#row-"), 3 + 1 + 4 + 3);
    ck_assert_uint_eq(count(text, "<tr id=\"row-"), 4 + 7);
    ck_assert_ptr_nonnull(strstr(text, api_overview_differ));
    ck_assert_ptr_nonnull(strstr(text, ">b, two 1</text>"));
    ck_assert_ptr_nonnull(strstr(text, "has no latency: it does &lt;not&gt; run.</p>"));
    ck_assert_ptr_nonnull(strstr(text, "<h2>Frontiers</h2>"));
    free(text);
}

UNIT_TEST(test_one_runtime)
{
    char *text = api_overview_html(reports, 1);
    ck_assert_ptr_null(strstr(text, api_overview_differ));
    free(text);
}

UNIT_TEST(test_failed)
{
    const struct api_overviewed failed = {"qnn",       NULL, 0,   "unsupported",
                                          "no <data>", "j6", NULL};
    char *text = api_overview_encode(&failed, 1), *page = api_overview_html(&failed, 1);
    ck_assert_str_eq(text,
                     "{\"results\":[],\"failed\":[{\"name\":\"qnn\",\"code\":"
                     "\"unsupported\",\"detail\":\"no <data>\",\"job\":\"j6\"}]}");
    ck_assert_ptr_nonnull(strstr(page, "no &lt;data&gt;"));
    ck_assert_ptr_null(strstr(page, "Accuracy against"));
    free(text);
    free(page);
    page = api_overview_html(reports, N_ROWS(reports));
    ck_assert_ptr_nonnull(strstr(page, "too low"));
    ck_assert_ptr_nonnull(strstr(page, "Accuracy against"));
    free(page);
}

static char *
make_json(void)
{
    return api_overview_encode(reports, N_ROWS(reports));
}

static char *
make_page(void)
{
    return api_overview_html(reports, N_ROWS(reports));
}

UNIT_LOOP(test_no_memory, 2)
{
    expect_survives_no_memory(_i ? make_page : make_json);
}

static const char *const others[] = {
    "{\"summary\":{},\"frontier\":7,\"profile\":7,\"warnings\":{}}",
    "{\"summary\":{},\"frontier\":[7,null,{}],\"warnings\":[7,{\"code\":1}]}",
    "{\"summary\":{},\"frontier\":[{\"latency_ratio\":-1e308,\"sqnr_db\":1},{"
    "\"latency_ratio\":1e308,\"sqnr_db\":2}]}",
};

UNIT_ROWS(test_other, others)
{
    const struct api_overviewed other = {
        .name = "o", .json = others[_i], .len = strlen(others[_i])};
    char *page = api_overview_html(&other, 1);
    ck_assert_ptr_nonnull(page);
    ck_assert_ptr_null(strstr(page, "nan"));
    free(page);
}

UNIT_SUITE("api/overview")
