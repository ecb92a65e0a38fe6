/* SPDX-License-Identifier: Apache-2.0 */
/* The report as Markdown. A third-party Markdown parser reads one in tests/e2e/. */
#include "config.h"
#include "api.h"

#include "api/report.h"

/* The allocations of markdown.c fail by the same rule as jansson's. */
void *__real_realloc(void *old, size_t size);
void *__wrap_realloc(void *old, size_t size);
void *__real_calloc(size_t n, size_t size);
void *__wrap_calloc(size_t n, size_t size);

void *
__wrap_realloc(void *old, size_t size)
{
    if (unit_allocations_fail && unit_allocations_left-- <= 0)
        return NULL;
    return __real_realloc(old, size);
}

void *
__wrap_calloc(size_t n, size_t size)
{
    if (unit_allocations_fail && unit_allocations_left-- <= 0)
        return NULL;
    return __real_calloc(n, size);
}

static const char report[] =
    "{\"engine\":\"0.1.0\",\"model\":{\"id\":\"sha256:aa\",\"name\":\"a|b\",\"opset\":"
    "13,"
    "\"nodes\":3},\"calibration\":{\"id\":\"sha256:bb\",\"samples\":256},\"device\":"
    "\"cpu\",\"summary\":{\"layers\":3,\"quantized_layers\":2,\"qdq_pairs\":3,"
    "\"size_before\":1000,\"size_after\":400,\"verdict\":\"fair\",\"judged_by\":"
    "\"literal\"},\"evaluation\":{"
    "\"samples\":8,"
    "\"outputs\":["
    "{\"name\":\"y\",\"sqnr_db\":30.25,\"cosine\":0.9991234567,\"max_abs_error\":1e-7,"
    "\"top1_agreement\":null}],\"layers\":[{\"name\":\"l1\",\"sqnr_db\":20.5},{"
    "\"name\":"
    "\"l2\",\"sqnr_db\":null},{\"name\":\"l3\",\"sqnr_db\":-3}],\"missed\":[{"
    "\"output\":"
    "\"y\",\"gate\":\"min_sqnr_db\",\"bound\":40,\"value\":30.25}]},\"gates\":[{"
    "\"output\":\"y\",\"name\":\"min_sqnr_db\",\"wanted\":40,\"measured\":30.25,"
    "\"met\":false},{\"output\":null,\"name\":\"max_size_ratio\",\"wanted\":0.5,"
    "\"measured\":0.4,\"met\":true}],\"sensitivity\":["
    "{\"name\":\"l3\",\"sqnr_db_alone\":7.5,\"gain_db\":2}],\"search\":{\"met\":true,"
    "\"float_layers\":[\"l3\"]},\"tensors\":[{\"name\":\"x\",\"min\":-1.5,\"max\":2,"
    "\"dtype\":\"int8\",\"scale\":0.015748031,\"zero_point\":0,\"method\":\"minmax\","
    "\"samples\":256}],"
    "\"weights\":[{\"name\":\"w\",\"layer\":\"l1\",\"axis\":null,\"dtype\":\"int8\","
    "\"granularity\":\"tensor\",\"block\":null}],\"warnings\":[{\"code\":\"dead\","
    "\"node\":null,"
    "\"detail\":\"two\\nlines\"}],\"timings\":{\"load\":0.25,\"total\":1.5}}";

static const char wanted[] =
    "# Quantization report\n"
    "\n"
    "- model: a\\|b\n"
    "- model id: sha256:aa\n"
    "- opset: 13\n"
    "- nodes: 3\n"
    "- calibration data: sha256:bb\n"
    "- calibration samples: 256\n"
    "- device: cpu\n"
    "- engine: 0.1.0\n"
    "\n"
    "## Summary\n"
    "\n"
    "| layers | quantized layers | Q/DQ pairs | bytes before | "
    "bytes after | verdict | judged by |\n"
    "| ---: | ---: | ---: | ---: | ---: | --- | --- |\n"
    "| 3 | 2 | 3 | 1000 | 400 | fair | literal |\n"
    "\n"
    "The file has 40.0 % of its size.\n"
    "\n"
    "## Bounds\n"
    "\n"
    "| output | bound | asked | found | met |\n"
    "| --- | --- | ---: | ---: | --- |\n"
    "| y | min_sqnr_db | 40 | 30.25 | no |\n"
    "| - | max_size_ratio | 0.5 | 0.4 | yes |\n"
    "\n"
    "## Outputs\n"
    "\n"
    "| output | SQNR (dB) | cosine | largest error | same top 1 "
    "|\n"
    "| --- | ---: | ---: | ---: | ---: |\n"
    "| y | 30.25 | 0.999123 | 1e-07 | - |\n"
    "\n"
    "Float against quantized, on this many samples: 8. No SQNR: "
    "both are equal.\n"
    "\n"
    "## Worst layers\n"
    "\n"
    "| layer | SQNR (dB) |\n"
    "| --- | ---: |\n"
    "| l3 | -3 |\n"
    "| l1 | 20.5 |\n"
    "| l2 | - |\n"
    "\n"
    "## Sensitivity\n"
    "\n"
    "| layer | SQNR (dB) with it alone | gain (dB) without it |\n"
    "| --- | ---: | ---: |\n"
    "| l3 | 7.5 | 2 |\n"
    "\n"
    "## Search\n"
    "\n"
    "- goal reached: yes\n"
    "- left in float: l3\n"
    "\n"
    "## Warnings\n"
    "\n"
    "| code | node | detail |\n"
    "| --- | --- | --- |\n"
    "| dead | - | two lines |\n"
    "\n"
    "## Tensors\n"
    "\n"
    "| tensor | min | max | type | scale | zero | method | samples |\n"
    "| --- | ---: | ---: | --- | ---: | ---: | --- | ---: |\n"
    "| x | -1.5 | 2 | int8 | 0.015748 | 0 | minmax | 256 |\n"
    "\n"
    "## Weights\n"
    "\n"
    "| weight | layer | axis | type | granularity | block |\n"
    "| --- | --- | ---: | --- | --- | ---: |\n"
    "| w | l1 | - | int8 | tensor | - |\n"
    "\n"
    "## Timings\n"
    "\n"
    "| stage | seconds |\n"
    "| --- | ---: |\n"
    "| load | 0.25 |\n"
    "| total | 1.5 |\n";

static char *
make(void)
{
    return api_report_markdown(report, sizeof report - 1);
}

UNIT_TEST(test_report)
{
    char *text = make();
    ck_assert_str_eq(text, wanted);
    free(text);
}

/* Where the runtime would run the float model in another precision, that has a row. */
UNIT_TEST(test_own_precision)
{
    static const char own[] =
        "{\"profile\":{\"ratio\":0.5,\"float\":{\"p50_ms\":4,\"p90_ms\":5},"
        "\"default_float\":{\"precision\":\"bf16\",\"p50_ms\":1,\"p90_ms\":3},"
        "\"quantized\":{\"p50_ms\":2,\"p90_ms\":2}}}";
    char *text = api_report_markdown(own, strlen(own));
    ck_assert_ptr_nonnull(text);
    ck_assert_msg(strstr(text, "- precision that the runtime would choose: bf16\n"),
                  "%s", text);
    ck_assert_msg(strstr(text, "| 4 | 5 | - |\n| 1 | 3 | - |\n| 2 | 2 | - |\n"), "%s",
                  text);
    free(text);
}

UNIT_TEST(test_no_memory)
{
    expect_survives_no_memory(make);
}

/* Names that users chose are escaped. */
static const struct {
    const char *json, *text;
} names[] = {
    {"conv_1/weight_quantized", "conv_1/weight_quantized"},
    {"__init__", "\\_\\_init__"},
    {"a__b", "a__b"},
    {"/_x_", "/\\_x_"},
    {"a|b", "a\\|b"},
    {"`rm`", "\\`rm\\`"},
    {"a\\\\b", "a\\\\b"},
    {"one\\r\\n\\n| two |", "one   \\| two \\|"},
    {"*bold* [a](b) <b>&lt;~~", "\\*bold\\* \\[a\\](b) \\<b\\>\\&lt;\\~\\~"},
    {"\\u0001\\u001b\\u007f", "   "},
    {"\xc3\xa4\xe2\x82\xac", "\xc3\xa4\xe2\x82\xac"},
    {"", ""},
};

UNIT_ROWS(test_name, names)
{
    char json[256], line[256];
    int n =
        snprintf(json, sizeof json, "{\"model\":{\"name\":\"%s\"}}", names[_i].json);
    snprintf(line, sizeof line, "\n- model: %s\n", names[_i].text);
    char *text = api_report_markdown(json, (size_t)n);
    ck_assert_ptr_nonnull(text);
    ck_assert_msg(strstr(text, line) != NULL, "got %s\nwanted %s", text, line);
    free(text);
}

/* Reports of other versions: members that are absent or of another type are left
   out. */
static const char *const others[] = {
    "{}",
    "{\"model\":7,\"summary\":[],\"evaluation\":null,\"tensors\":{},\"timings\":[]}",
    "{\"evaluation\":{\"outputs\":[7,null,{}],\"layers\":[null,{\"sqnr_db\":\"x\"}]}}",
    "{\"search\":{\"float_layers\":7},\"warnings\":[[]],\"timings\":{\"a\":{}}}",
};

UNIT_ROWS(test_other, others)
{
    char *text = api_report_markdown(others[_i], strlen(others[_i]));
    ck_assert_ptr_nonnull(text);
    ck_assert_ptr_nonnull(strstr(text, "## Summary"));
    free(text);
}

UNIT_TEST(test_no_json)
{
    ck_assert_ptr_null(api_report_markdown("{", 1));
    ck_assert_ptr_null(api_report_markdown("", 0));
    ck_assert_ptr_null(api_report_markdown("7", 1));
}

UNIT_SUITE("api/markdown")
