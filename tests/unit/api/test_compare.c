/* SPDX-License-Identifier: Apache-2.0 */
/* The comparison of two reports. */
#include "config.h"
#include "api.h"

#include "api/compare.h"

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

static char first[] =
    "{\"engine\":\"1\",\"model\":{\"id\":\"m\",\"name\":\"<b>\"},\"summary\":{"
    "\"verdict\":\"good\",\"qdq_pairs\":3,\"size_before\":9,\"size_after\":4,"
    "\"quantized_layers\":1},\"spec\":{\"mode\":\"full\",\"a/b\":1,\"search\":null,"
    "\"weights\":{\"x\":1,\"y\":[1,2]},\"calibration\":{\"method\":\"mse\",\"ranges\":{"
    "\"t\":[0,1]}}},\"evaluation\":{\"outputs\":[{\"name\":\"o\",\"sqnr_db\":30,"
    "\"slices\":[{\"name\":\"scores\",\"axis\":1,\"begin\":4,\"end\":20,\"sqnr_db\":12."
    "5,"
    "\"share\":0.25}]}],"
    "\"layers\":[{\"name\":\"l\",\"sqnr_db\":20}]},\"layers\":[{\"name\":\"l\","
    "\"quantized_inputs\":[0],\"reason\":\"default\"},{\"name\":\"k\","
    "\"quantized_inputs\":[],\"reason\":\"default\"}],\"tensors\":[{\"name\":\"t\","
    "\"min\":0,\"max\":1},{\"name\":\"u\",\"min\":0,\"max\":1}]}";
static char second[] =
    "{\"engine\":\"2\",\"model\":{\"id\":\"m\",\"name\":\"<b>\"},\"summary\":{"
    "\"verdict\":null,\"qdq_pairs\":2},\"spec\":{\"mode\":\"full\",\"weights\":{\"x\":"
    "1,"
    "\"y\":[1,3],\"z\":true},\"calibration\":{\"method\":\"mse\"}},\"layers\":[{"
    "\"name\":\"l\",\"quantized_inputs\":[],\"reason\":\"search\"},{\"name\":\"k\","
    "\"quantized_inputs\":[],\"reason\":\"rule\"},{\"name\":\"n\"}],\"profile\":{"
    "\"ratio\":0.5,\"runtime\":{\"name\":\"onnxruntime\",\"version\":\"1.2\"},"
    "\"processor\":\"A "
    "CPU\"},\"tensors\":[{\"name\":\"t\",\"min\":0,\"max\":2},{\"name\":\"u\","
    "\"min\":0,\"max\":1}]}";

static const char wanted[] =
    "{\"jobs\":[{\"id\":\"j1\",\"model\":{\"id\":\"m\",\"name\":\"<b>\"},"
    "\"calibration\":null,\"engine\":\"1\"},{\"id\":\"j2\",\"model\":{\"id\":\"m\","
    "\"name\":\"<b>\"},\"calibration\":null,\"engine\":\"2\"}],\"summary\":{"
    "\"verdict\":[\"good\",null],\"quantized_layers\":[1,null],\"qdq_pairs\":[3,2],"
    "\"size_before\":[9,null],\"size_after\":[4,null]},\"outputs\":[{\"name\":\"o\","
    "\"sqnr_db\":[30,null],\"cosine\":[null,null],\"max_abs_error\":[null,null],"
    "\"top1_agreement\":[null,null]}],\"deployed\":[],\"slices\":[{\"name\":"
    "\"o: scores (axis 1, from 4)\",\"sqnr_db\":[12.5,null],\"share\":[0.25,null]}],"
    "\"latency\":{\"ratio\":[null,0.5],"
    "\"ratio_low\":[null,null],\"ratio_high\":[null,null],\"runtime\":[null,"
    "\"onnxruntime 1.2\"],\"processor\":[null,\"A CPU\"]},\"spec\":[{\"pointer\":"
    "\"/a~1b\",\"value\":[1,null]},{\"pointer\":\"/weights/"
    "y\",\"value\":[[1,2],[1,3]]},"
    "{\"pointer\":\"/weights/z\",\"value\":[null,true]}],\"layers\":[{\"name\":\"l\","
    "\"quantized_inputs\":[[0],[]],\"quantized_outputs\":[null,null],"
    "\"weight_quantized\":[null,null],\"weight_axis\":[null,null],\"weight_dtype\":["
    "null,null],\"weight_block\":[null,null],"
    "\"input_dtype\":[null,null],\"reason\":["
    "\"default\",\"search\"],\"sqnr_db\":[20,null]},{\"name\":\"n\","
    "\"quantized_inputs\":[null,null],\"quantized_outputs\":[null,null],"
    "\"weight_quantized\":[null,null],\"weight_axis\":[null,null],\"weight_dtype\":["
    "null,null],\"weight_block\":[null,null],"
    "\"input_dtype\":[null,null],\"reason\":[null,"
    "null],\"sqnr_db\":[null,null]}],\"tensors\":[{\"name\":\"t\",\"min\":[0,0],"
    "\"max\":[1,2],\"dtype\":[null,null],\"scale\":[null,null],\"zero_point\":[null,"
    "null],\"method\":[null,null]}]}";

static const struct api_compared a = {"j1", first, sizeof first - 1},
                                 b = {"j2", second, sizeof second - 1};

static char *
make_json(void)
{
    return api_compare_encode(&a, &b);
}

static char *
make_page(void)
{
    return api_compare_html(&a, &b);
}

UNIT_TEST(test_json)
{
    char *text = make_json();
    ck_assert_str_eq(text, wanted);
    free(text);
}

UNIT_TEST(test_page)
{
    static const char *const pieces[] = {
        "<td>&lt;b&gt;</td>",
        "<td>verdict</td><td class=\"n\">good &rarr; \xe2\x80\x93</td>",
        "<td class=\"n\">3 &rarr; 2</td>",
        "<h2>Outputs as deployed</h2>\n<p class=\"note\">No difference.</p>",
        "<td><code>/weights/y</code></td><td class=\"\"><code>[1,2]</code> &rarr; "
        "<code>[1,3]</code></td>",
        "<td class=\"\">default &rarr; search</td>",
        "<td class=\"n\">1 &rarr; 2</td>",
    };
    char *text = make_page();
    ck_assert_ptr_nonnull(text);
    for (size_t i = 0; i < N_ROWS(pieces); i++)
        ck_assert_msg(strstr(text, pieces[i]) != NULL, "%s is not in %s", pieces[i],
                      text);
    free(text);
}

UNIT_LOOP(test_no_memory, 2)
{
    expect_survives_no_memory(_i ? make_page : make_json);
}

/* Reports of other versions. Members that are absent or of another type are null. */
static char others[][80] = {
    "{}",
    "{\"layers\":7,\"tensors\":{},\"summary\":[]}",
    "{\"layers\":[7,null,{}],\"spec\":[],\"model\":7}",
    "{\"evaluation\":[],\"tensors\":[[]],\"profile\":7}",
};

UNIT_ROWS(test_other, others)
{
    const struct api_compared other = {"j3", others[_i], strlen(others[_i])};
    const struct api_compared *pairs[][2] = {
        {&other, &other}, {&a, &other}, {&other, &a}};
    for (size_t i = 0; i < N_ROWS(pairs); i++) {
        char *text = api_compare_encode(pairs[i][0], pairs[i][1]);
        char *page = api_compare_html(pairs[i][0], pairs[i][1]);
        ck_assert_ptr_nonnull(text);
        ck_assert_ptr_nonnull(page);
        free(text);
        free(page);
    }
}

UNIT_TEST(test_no_json)
{
    static char broken[] = "{";
    const struct api_compared other = {"j3", broken, 1};
    ck_assert_ptr_null(api_compare_encode(&a, &other));
    ck_assert_ptr_null(api_compare_html(&other, &a));
}

UNIT_SUITE("api/compare")
