/* SPDX-License-Identifier: Apache-2.0 */
/* The report as a page. A browser reads one in tests/e2e/browser/. */
#include "config.h"
#include "api.h"

#include "api/report.h"

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

static const char report[] =
    "{\"schema\":1,\"model\":{\"name\":\"net\",\"nodes\":3},\"summary\":{\"layers\":3,"
    "\"quantized_layers\":2,\"qdq_pairs\":3,\"size_before\":1000,\"size_after\":400,"
    "\"verdict\":\"fair\"},\"gates\":[{\"output\":\"y\",\"name\":\"min_sqnr_db\","
    "\"wanted\":40,\"measured\":30.25,\"met\":false},{\"output\":null,\"name\":"
    "\"max_size_ratio\",\"wanted\":0.5,\"measured\":0.4,\"met\":true}],\"layers\":[{"
    "\"name\":\"l1\",\"op\":\"Conv\",\"quantized_inputs\":[0],\"quantized_outputs\":[],"
    "\"weight_quantized\":true,\"weight_axis\":0,\"weight_dtype\":\"int8\","
    "\"weight_block\":null,\"reason\":\"default\"},{\"name\":"
    "\"l2\",\"op\":\"Add\",\"quantized_inputs\":[0,1],\"quantized_outputs\":[],"
    "\"weight_quantized\":false,\"weight_axis\":null,\"reason\":\"case:residual\"}],"
    "\"edges\":[[\"l1\",\"l2\",\"t\"],[\"l2\",\"k<\",\"u\"],[\"l1\",\"k<\",\"t\"]],"
    "\"evaluation\":{\"samples\":8,\"deployed\":{\"processor\":\"P\",\"runtime\":{"
    "\"name\":\"R\",\"version\":\"1\"},\"outputs\":[{\"name\":\"y\",\"sqnr_db\":28.5,"
    "\"top1_agreement\":0.875,\"slices\":[{\"name\":\"scores\",\"axis\":1,\"begin\":4,"
    "\"end\":20,\"sqnr_db\":12.5,\"share\":0.25},{\"name\":\"pad\",\"sqnr_db\":null,"
    "\"left_out\":\"constant\"},7],\"samples\":{\"worst_db\":11.5,\"p5_db\":13.5,"
    "\"median_db\":29,\"confidence\":{\"db\":11.5,\"level\":0.75}}}]},\"outputs\":[{"
    "\"name\":\"y\",\"sqnr_db\":30.25}],"
    "\"layers\":[{\"name\":\"l1\",\"sqnr_db\":20},{\"name\":\"l2\",\"sqnr_db\":40}]},"
    "\"sensitivity\":[{\"name\":\"l2\",\"sqnr_db_alone\":7.5,\"gain_db\":2},{\"name\":"
    "\"l1\",\"sqnr_db_alone\":9,\"gain_db\":1}],\"search\":{\"met\":false,"
    "\"float_layers\":[\"l2\"],\"curve\":[{\"float_layers\":0,\"layer\":null,"
    "\"sqnr_db\":20},{\"float_layers\":1,\"layer\":\"l2\",\"sqnr_db\":25}]},\"recipe\":"
    "[{"
    "\"step\":\"start\",\"spec\":{\"a\":1},\"sqnr_db\":20,\"kept\":true}],\"profile\":{"
    "\"runtime\":{\"name\":\"S\",\"version\":\"7\"},\"processor\":\"P\",\"ratio\":0.5,"
    "\"ratio_low\":0.4,\"ratio_high\":0.6,"
    "\"float\":{\"p50_ms\":2,"
    "\"p90_ms\":3,\"peak_bytes\":7},\"quantized\":{\"p50_ms\":1},\"default_float\":{"
    "\"precision\":\"bf16\",\"p50_ms\":0.5},\"operators\":[{"
    "\"op\":"
    "\"Conv\",\"float_ms\":2,\"quantized_ms\":1}]},\"histograms\":[{\"tensor\":\"x\","
    "\"low\":0,\"high\":4,\"counts\":[3,0,0,1],\"magnitudes\":true,\"range\":[-1,3],"
    "\"clipped\":0.25,\"sqnr_db\":21.5}],\"tensors\":[{\"name\":\"x\","
    "\"min\":-1,\"max\":3,\"dtype\":\"int8\",\"scale\":0.5,\"zero_point\":0,\"method\":"
    "\"mse\"}],\"weights\":[{\"name\":\"w\",\"layer\":\"l1\",\"axis\":0}],\"warnings\":"
    "[{"
    "\"code\":\"attention\",\"node\":\"l2\",\"detail\":\"d\"}],\"timings\":{\"load\":"
    "0.25,\"total\":1}}";

/* Pieces that the page of the report has, in this order. */
static const char *const pieces[] = {
    "<title>net</title>",
    "<h2>Verdict</h2>",
    "<div class=\"tile fair\"><dt>verdict</dt><dd>fair</dd>",
    "<div class=\"tile poor\"><dt>bounds</dt><dd>1 of 2 met</dd>",
    "<dt>SQNR as deployed</dt><dd>28.5&nbsp;dB</dd>",
    "<dt>same top 1</dt><dd>87.5&nbsp;%</dd>",
    "<dd>40.0&nbsp;%<small>1.00 KB became 400 bytes</small>",
    "<dd>0.5&nbsp;&times;<small>of float, between 0.4 and 0.6, in S 7 on P</small>",
    "<td class=\"n\">40</td><td class=\"n\">30.25</td><td>no</td>",
    "<td>Switch rule T24 on to leave such nodes alone.</td>",
    "As R 1 runs the result on P.",
    "<code>scores</code></td><td class=\"n\">1</td><td class=\"n\">4</td><td "
    "class=\"n\">20</td>"
    "<td class=\"n\">12.5</td><td class=\"n\">0.25</td>",
    "<td>constant</td>",
    "<td class=\"n\">11.5</td><td class=\"n\">13.5</td><td class=\"n\">29</td>"
    "<td class=\"n\">11.5</td><td class=\"n\">0.75</td>",
    "<td><code>{&quot;a&quot;:1}</code></td>",
    "<path class=\"curve\" d=\"M56.0 ",
    "<td>input 0; weight by axis 0</td>",
    "<td class=\"n b\">20 <svg class=\"bar\" viewBox=\"0 0 100 8\" "
    "aria-hidden=\"true\"><rect width=\"50\" height=\"8\"/></svg></td>",
    "<td>inputs 0, 1</td>",
    "<td>case:residual</td>",
    "<path d=\"M88 28C88 50 88 26 88 48\"><title>t</title></path>",
    "<path d=\"M168 16C200 16 200 104 168 104\"><title>t</title></path>",
    "<g class=\"both\"><rect x=\"8\" y=\"4\" width=\"160\" height=\"24\" rx=\"4\"/>"
    "<text x=\"88\" y=\"20\">l1</text><title>l1 (Conv): default</title></g>",
    "<g class=\"some\"><rect x=\"8\" y=\"48\"",
    "<g class=\"none\"><rect x=\"8\" y=\"92\" width=\"160\" height=\"24\" rx=\"4\"/>"
    "<text x=\"88\" y=\"108\">k&lt;</text><title>k&lt;</title></g>",
    "<h2>Sensitivity</h2>",
    "The goal is not reached with 1 layers in float: <code>l2</code>.",
    "<rect x=\"0.00\" y=\"1\" width=\"100.00\" height=\"6\"/><path d=\"M25.00 0V8\"/>",
    "<td><svg class=\"values\" viewBox=\"0 0 128 32\" preserveAspectRatio=\"none\" "
    "aria-hidden=\"true\"><rect x=\"0.0\" width=\"96.0\" height=\"32\"/><path "
    "d=\"M0 32V0H32V32H64V32H96V16H128V32Z\"/><line x1=\"0.0\" x2=\"0.0\" "
    "y2=\"32\"/><line x1=\"96.0\" x2=\"96.0\" "
    "y2=\"32\"/></svg><small>|x|</small></td><td class=\"n\">25&nbsp;%</td><td "
    "class=\"n\">21.5</td>",
    "<td>float</td><td class=\"n\">2</td><td class=\"n\">3</td><td class=\"n\" "
    "data-key=\"7\">7 bytes</td>",
    "<td>default_float, bf16</td><td class=\"n\">0.5</td>",
    "<td><code>w</code></td>",
    "<td>load</td><td class=\"n b\">0.25 <svg",
    "<dt>nodes</dt><dd>3</dd>",
};

static char *
make(void)
{
    return api_report_html(report, sizeof report - 1);
}

UNIT_TEST(test_report)
{
    char *text = make();
    ck_assert_ptr_nonnull(text);
    const char *at = text;
    for (size_t i = 0; i < N_ROWS(pieces); i++) {
        const char *found = strstr(at, pieces[i]);
        ck_assert_msg(found != NULL, "the page lacks %s", pieces[i]);
        at = found + strlen(pieces[i]);
    }
    free(text);
}

/* A verdict that the target's runtime has no part in says so. */
UNIT_TEST(test_not_run)
{
    static const char unrun[] =
        "{\"summary\":{\"verdict\":\"good\"},\"evaluation\":{\"deployed\":null}}";
    char *text = api_report_html(unrun, sizeof unrun - 1), *ran = make();
    const char *words = "not run in the target's runtime";
    ck_assert_ptr_nonnull(strstr(text, words));
    ck_assert_ptr_null(strstr(ran, words));
    free(text);
    free(ran);
}

UNIT_TEST(test_no_memory)
{
    expect_survives_no_memory(make);
}

/* Names that users chose are escaped. */
static const struct {
    const char *json, *text;
} names[] = {
    {"<script>alert(1)</script>", "&lt;script&gt;alert(1)&lt;/script&gt;"},
    {"a\\\"b'c", "a&quot;b&#39;c"},
    {"&lt;", "&amp;lt;"},
    {"\\u0001\\n\\u007f", "\xe2\x90\x81\xe2\x90\x8a\xe2\x90\xa1"},
    {"a\\u202eb\\u202ac", "a\xef\xbf\xbd"
                          "b\xef\xbf\xbd"
                          "c"},
    {"\\u2066\\u2069", "\xef\xbf\xbd\xef\xbf\xbd"},
    {"\\u2029\\u202f\\u2065\\u206a",
     "\xe2\x80\xa9\xe2\x80\xaf\xe2\x81\xa5\xe2\x81\xaa"},
    {"\xc3\xa4\xe2\x82\xac", "\xc3\xa4\xe2\x82\xac"},
    {"", ""},
};

UNIT_ROWS(test_name, names)
{
    char json[256], title[256], fact[256];
    int n =
        snprintf(json, sizeof json, "{\"model\":{\"name\":\"%s\"}}", names[_i].json);
    snprintf(title, sizeof title, "<title>%s</title>", names[_i].text);
    snprintf(fact, sizeof fact, "<dt>model</dt><dd>%s</dd>", names[_i].text);
    char *text = api_report_html(json, (size_t)n);
    ck_assert_ptr_nonnull(text);
    ck_assert_msg(strstr(text, title) && strstr(text, fact), "%s is not in %s", fact,
                  text);
    free(text);
}

/* Reports of other versions: members that are absent or of another type are left out. */
static const char *const others[] = {
    "{}",
    "{\"model\":7,\"summary\":[],\"evaluation\":null,\"tensors\":{},\"timings\":[]}",
    "{\"evaluation\":{\"outputs\":[7,null,{}],\"layers\":[null,{\"sqnr_db\":\"x\"}]}}",
    "{\"layers\":[7,{}],\"search\":{\"float_layers\":7},\"warnings\":[[]],\"timings\":{"
    "\"a\":{}},\"recipe\":[7,{\"spec\":null}],\"profile\":{\"operators\":7}}",
    "{\"edges\":[7,[],[\"a\"],[\"a\",\"a\",\"t\"],[\"a\",\"b\",null],[\"b\",\"a\","
    "\"t\"]],"
    "\"layers\":[{\"name\":7},{\"name\":\"\xc3\xa4\xc3\xa4\xc3\xa4\xc3\xa4\xc3\xa4"
    "\xc3\xa4\xc3\xa4\xc3\xa4\xc3\xa4\xc3\xa4\xc3\xa4\xc3\xa4\"}]}",
    "{\"tensors\":[{\"name\":\"a\"},{\"name\":\"b\"},{\"name\":7}],\"histograms\":[7,{"
    "\"tensor\":\"a\",\"low\":1,\"high\":1,\"counts\":[1]},{\"tensor\":\"b\",\"low\":"
    "-1e308,\"high\":1e308,\"counts\":[-1,null,1e308,1e308],\"range\":7}]}",
    "{\"tensors\":[{\"min\":1e308,\"max\":-1e308},{\"min\":0,\"max\":0}],"
    "\"sensitivity\":"
    "[{\"gain_db\":1e308},{\"gain_db\":-1e308}]}",
};

UNIT_ROWS(test_other, others)
{
    char *text = api_report_html(others[_i], strlen(others[_i]));
    ck_assert_ptr_nonnull(text);
    ck_assert_ptr_nonnull(strstr(text, "<h2>Verdict</h2>"));
    ck_assert_ptr_null(strstr(text, "nan"));
    ck_assert_ptr_null(strstr(text, "inf"));
    free(text);
}

UNIT_TEST(test_no_json)
{
    ck_assert_ptr_null(api_report_html("{", 1));
    ck_assert_ptr_null(api_report_html("", 0));
    ck_assert_ptr_null(api_report_html("7", 1));
}

static const struct {
    const char *json;
    bool is_report;
} documents[] = {
    {report, true},
    {"{\"schema\":1,\"summary\":{}}", true},
    {"{\"schema\":1}", false},
    {"{\"summary\":{}}", false},
    {"[]", false},
    {"{", false},
};

UNIT_ROWS(test_is_report, documents)
{
    const char *json = documents[_i].json;
    ck_assert_int_eq(api_is_report(json, strlen(json)), documents[_i].is_report);
}

/* The same graph by names and by numbers gives the same drawing. Nothing is drawn of more edges than
   there is room for, and a name that many edges have is cut. */
UNIT_LOOP(test_numbered_graph, 2)
{
    enum { MOST = 3000, SIZE = 64 * MOST };
    const char *by_names = "{\"edges\":[[\"a\",\"b\",\"t\"],[\"b\",\"c\",\"u\"]]}";
    const char *by_numbers =
        "{\"edges\":[],\"edges_omitted\":2,\"graph\":{\"nodes\":[\"x\",\"a\",\"b\","
        "\"c\"],"
        "\"tensors\":[\"t\",\"u\"],\"edges\":[[1,2,0],[2,3,1],[7,8,9],[-1,0,\"t\"],[0,"
        "2,0]],"
        "\"constants\":[0,9,-1,{}]}}";
    char *named = api_report_html(by_names, strlen(by_names));
    char *numbers = api_report_html(by_numbers, strlen(by_numbers));
    ck_assert(strstr(named, "<title>u</title>") && strstr(numbers, "<title>u</title>"));
    ck_assert_ptr_null(strstr(numbers, "too large for a drawing"));
    ck_assert_ptr_null(strstr(numbers, "<title>x</title>"));
    free(named);
    free(numbers);
    char *json = malloc(SIZE);
    size_t len = (size_t)snprintf(json, SIZE,
                                  "{\"graph\":{\"nodes\":[\"a\",\"b\"],\"tensors\":"
                                  "[\"%0300d\"],\"edges\":[",
                                  7);
    for (int i = 0; i < MOST + _i; i++)
        len += (size_t)snprintf(json + len, SIZE - len, "%s[0,1,0]", i ? "," : "");
    len += (size_t)snprintf(json + len, SIZE - len, "]}}");
    char *text = api_report_html(json, len);
    ck_assert_ptr_nonnull(text);
    ck_assert_int_eq(strstr(text, "<title>000") != NULL, _i == 0);
    ck_assert_int_eq(strstr(text, "too large for a drawing") != NULL, _i == 1);
    ck_assert_ptr_null(strstr(text, "00007"));
    free(text);
    free(json);
}

/* A chain of as many nodes as a drawing has, and of one more. */
UNIT_LOOP(test_large_graph, 2)
{
    enum { DRAWN = 300, SIZE = 64 * DRAWN };
    char *json = malloc(SIZE);
    size_t len = (size_t)snprintf(json, SIZE, "{\"edges\":[");
    for (int i = 1; i < DRAWN + _i; i++)
        len += (size_t)snprintf(json + len, SIZE - len, "%s[\"n%d\",\"n%d\",\"t\"]",
                                i > 1 ? "," : "", i - 1, i);
    len += (size_t)snprintf(json + len, SIZE - len, "]}");
    char *text = api_report_html(json, len);
    ck_assert_ptr_nonnull(text);
    ck_assert_int_eq(strstr(text, "<title>n299</title>") != NULL, _i == 0);
    ck_assert_int_eq(strstr(text, "too large for a drawing") != NULL, _i == 1);
    free(text);
    free(json);
}

/* The page's own policy is that of the header, and a buffer that is too small is refused. */
UNIT_TEST(test_policy)
{
    char policy[256];
    char *text = make();
    ck_assert(api_html_policy(policy, sizeof policy));
    ck_assert_ptr_nonnull(strstr(text, policy));
    ck_assert(!api_html_policy(policy, 64));
    free(text);
}

UNIT_SUITE("api/html")
