/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "api_spec.h"

#define HEX "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"

/* --- accepted ------------------------------------------------------------- */

static const char *const accepted[] = {
    "{}",
    "{\"mode\":\"full\",\"target\":\"tensorrt\",\"device\":\"auto\"}",
    "{\"target\":\"onnxruntime\"}",
    "{\"device\":\"cpu\"}",
    "{\"device\":\"cuda\"}",
    "{\"layers\":[],\"cases\":[],\"layer_support\":[]}",
    "{\"weights\":{}}",
    "{\"weights\":{\"dtype\":\"int8\",\"granularity\":\"channel\",\"storage\":\"qdq\","
    "\"method\":\"max\"}}",
    "{\"weights\":{\"granularity\":\"tensor\"}}",
    "{\"weights\":{\"storage\":\"dq\"}}",
    "{\"weights\":{\"method\":\"mse\"}}",
    "{\"activations\":{\"dtype\":\"int8\",\"symmetric\":true}}",
    "{\"activations\":\"none\"}",
    "{\"activations\":\"none\",\"weights\":{\"dtype\":\"int4\",\"granularity\":{"
    "\"block\":32}}}",
    "{\"weights\":{\"dtype\":\"float4e2m1\",\"granularity\":{\"block\":16.0}}}",
    "{\"weights\":{\"dtype\":\"float8e5m2\"},\"activations\":{\"dtype\":\"uint16\"}}",
    "{\"activations\":{\"dtype\":\"float8e4m3fn\",\"symmetric\":true}}",
    "{\"activations\":{\"dtype\":\"uint8\"}}",
    "{\"activations\":{\"dtype\":\"uint8\",\"symmetric\":true}}",
    "{\"activations\":{\"symmetric\":false}}",
    "{\"float\":\"keep\",\"equalize\":false,\"accept\":{},\"rules\":{}}",
    "{\"float\":\"float16\"}",
    "{\"float\":\"bfloat16\",\"opset\":22}",
    "{\"rules\":{\"T22\":true,\"T3\":false,\"T8\":true}}",
    "{\"opset\":\"auto\"}",
    "{\"opset\":\"keep\"}",
    "{\"opset\":7}",
    "{\"opset\":28}",
    "{\"existing_qdq\":\"keep\"}",
    "{\"existing_qdq\":\"strip\"}",
    "{\"existing_qdq\":\"error\",\"on_unmatched\":\"error\"}",
    "{\"on_unmatched\":\"warn\"}",
    "{\"output\":{}}",
    "{\"output\":{\"external_data\":\"auto\"}}",
    "{\"output\":{\"external_data\":\"always\"}}",
    "{\"output\":{\"external_data\":\"never\"}}",
    "{\"evaluate\":true}",
    "{\"evaluate\":false}",
    "{\"evaluate\":{}}",
    "{\"evaluate\":{\"samples\":12}}",
    "{\"evaluate\":{\"samples\":12.0}}",
    "{\"calibration\":{\"method\":\"minmax\",\"max_samples\":512,\"batch\":4,"
    "\"dims\":{},\"random\":{},\"on_nonfinite\":\"error\"}}",
    "{\"accept\":{\"min_sqnr_db\":30,\"min_cosine\":0.99,\"max_abs_error\":0,"
    "\"min_top1_agreement\":1}}",
    "{\"accept\":{\"min_sqnr_db\":-3.5,\"outputs\":{}}}",
    "{\"accept\":{\"max_size_ratio\":0.5},\"evaluate\":false}",
    "{\"accept\":{\"max_latency_ratio\":1},\"evaluate\":false}",
    "{\"profile\":{}}",
    "{\"profile\":{\"runs\":7,\"threads\":2,\"batch\":3}}",
    "{\"sensitivity\":{}}",
    "{\"sensitivity\":{\"samples\":8}}",
    "{\"search\":{\"min_sqnr_db\":30}}",
    "{\"search\":{\"min_top1_agreement\":1,\"max_float_layers\":0,\"samples\":9}}",
    "{\"calibration\":{\"method\":\"output_mse\"}}",
    "{\"accept\":{\"min_cosine\":-1,\"outputs\":{\"a/b\":{\"max_abs_error\":1e-3},"
    "\"\":{},\"y\":{\"min_sqnr_db\":1,\"min_cosine\":1,\"max_abs_error\":2,"
    "\"min_top1_agreement\":0}}}}",
    "{\"accept\":{\"outputs\":{\"y\":{}}},\"evaluate\":false}",
    "{\"calibration\":{\"max_samples\":0}}",
    "{\"calibration\":{\"method\":\"percentile\"}}",
    "{\"calibration\":{\"percentile\":100,\"method\":\"percentile\"}}",
    "{\"calibration\":{\"method\":\"percentile\",\"percentile\":1e-9}}",
    "{\"calibration\":{\"method\":\"entropy\"}}",
    "{\"calibration\":{\"method\":\"moving_average\"}}",
    "{\"calibration\":{\"ranges\":{}}}",
    "{\"calibration\":{\"source\":\"sha256:" HEX "\"}}",
    "{\"calibration\":{\"ranges\":[]}}",
    "{\"calibration\":{\"ranges\":{\"b\":[-0.1,0.1],\"a/x\":[0,6],\"\":[1,1]}}}",
    "{\"calibration\":{\"ranges\":{\"x\":[-1e308,1.7976931348623157e308],"
    "\"y\":[5e-324,0.30000000000000004]}}}",
    "{\"calibration\":{\"ranges\":\"TRT-8601-EntropyCalibration2\\n"
    "in:0: 3c010a14\\r\\nout: 0\\n\\n\"}}",
    "{\"calibration\":{\"ranges\":\"TRT-1\"}}",
    "{\"calibration\":{\"dims\":{\"a/b\":2147483647,\"seq\":1.28e2}}}",
    "{\"calibration\":{\"random_samples\":8,\"random\":{\"\":[0,0],\"ids\":[-5,1e3],"
    "\"x\":[-0.1,0.30000000000000004]}}}",
    "{\"calibration\":{\"on_nonfinite\":\"skip_sample\"}}",
    "{\"calibration\":{\"ranges\":[{\"name\":\"t\",\"min\":-1,\"max\":2.5,\"scale\":"
    "0.1,\"zero_point\":0,\"method\":\"minmax\",\"samples\":256}]}}",
};

UNIT_ROWS(test_round_trip, accepted)
{
    expect_round_trip(accepted[_i]);
}

UNIT_TEST(test_defaults)
{
    struct qdq_spec defaults;
    qdq_spec_init(&defaults);
    qdq_spec_complete(&defaults);
    struct api_spec *spec = decode(NULL);
    expect_equal_specs(api_spec_get(spec), &defaults);
    api_spec_free(&spec);
    defaults.host = QDQ_HOST_VNNI; /* it is that of this processor otherwise */
    char *text = api_spec_encode(&defaults);
    ck_assert_ptr_null(strpbrk(text, " \n"));
    expect_json(
        text,
        "{\"activations\":{\"dtype\":\"int8\",\"symmetric\":true},"
        "\"calibration\":{\"batch\":1,\"max_samples\":0,\"method\":\"mse\","
        "\"on_nonfinite\":\"error\",\"random_samples\":0},\"cases\":[],\"device\":"
        "\"auto\",\"equalize\":"
        "false,\"existing_qdq\":\"error\",\"float\":\"keep\",\"host\":\"vnni\","
        "\"layer_support\":[],\"layers\":[],\"mode\":\"full\","
        "\"on_unmatched\":\"error\",\"opset\":\"auto\",\"output\":{\"external_data\":"
        "\"auto\"},\"recipe\":\"none\","
        "\"rules\":{\"P1\":true,\"P3\":true,\"P7\":true,\"P8\":true,\"T11\":false,"
        "\"T14\":"
        "false,"
        "\"T18\":false,\"T19\":false,\"T20\":false,\"T22\":false,\"T23\":false,"
        "\"T24\":false,\"T26\":true,\"T3\":true,\"T30\":false,\"T31\":true,"
        "\"T33\":true,\"T34\":false,\"T36\":true},\"target\":"
        "\"tensorrt\","
        "\"weights\":{"
        "\"dtype\":"
        "\"int8\",\"granularity\":\"channel\",\"method\":\"max\",\"storage\":\"qdq\"}"
        "}");
}

UNIT_TEST(test_values)
{
    struct api_spec *spec = decode(
        "{\"device\":\"cpu\",\"weights\":{\"granularity\":\"tensor\",\"storage\":"
        "\"dq\",\"method\":\"mse\"},\"calibration\":"
        "{\"max_samples\":64.0,\"batch\":8,\"method\":\"percentile\",\"percentile\":99."
        "5,\"ranges\":{\"z\":[-1,2],\"a\":[0,0.5]}},"
        "\"evaluate\":{\"samples\":3},\"on_unmatched\":\"warn\",\"equalize\":true,"
        "\"output\":{"
        "\"external_data\":\"never\"}}");
    const struct qdq_spec *s = api_spec_get(spec);
    ck_assert_int_eq(s->external_data, QDQ_EXTERNAL_NEVER);
    ck_assert_int_eq(s->device, QDQ_DEVICE_CPU);
    ck_assert_int_eq(s->weights.granularity, QDQ_PER_TENSOR);
    ck_assert_int_eq(s->weights.storage, QDQ_STORE_DQ);
    ck_assert_int_eq(s->weights.method, QDQ_WEIGHT_MSE);
    ck_assert_int_eq(s->calibration.max_samples, 64);
    ck_assert_int_eq(s->calibration.batch, 8);
    ck_assert_str_eq(s->calibration.method, "percentile");
    ck_assert(s->calibration.percentile == 99.5);
    ck_assert_uint_eq(s->calibration.n_ranges, 2);
    ck_assert_str_eq(s->calibration.ranges[0].tensor, "a");
    ck_assert(s->calibration.ranges[0].max == 0.5);
    ck_assert_str_eq(s->calibration.ranges[1].tensor, "z");
    ck_assert(s->calibration.ranges[1].min == -1);
    ck_assert_int_eq(s->evaluate, QDQ_YES);
    ck_assert_int_eq(s->evaluate_samples, 3);
    ck_assert(!s->unmatched_is_error);
    ck_assert(s->equalize);
    api_spec_free(&spec);
}

/* Members that are absent follow from those that are present. */
static const struct {
    const char *text, *complete;
} completed[] = {
    {"{\"activations\":{\"dtype\":\"int8\"}}",
     "\"activations\":{\"dtype\":\"int8\",\"symmetric\":true}"},
    {"{\"activations\":{\"dtype\":\"uint8\"}}",
     "\"activations\":{\"dtype\":\"uint8\",\"symmetric\":false}"},
    {"{\"activations\":{\"dtype\":\"uint8\",\"symmetric\":true}}",
     "\"activations\":{\"dtype\":\"uint8\",\"symmetric\":true}"},
    {"{\"activations\":{\"symmetric\":false}}",
     "\"activations\":{\"dtype\":\"int8\",\"symmetric\":false}"},
    {"{\"activations\":{\"dtype\":\"float8e5m2\"}}",
     "\"activations\":{\"dtype\":\"float8e5m2\",\"symmetric\":true}"},
    {"{\"activations\":{\"dtype\":\"float8e5m2\"}}", "\"dtype\":\"float8e5m2\",\"gran"},
    {"{\"activations\":{\"dtype\":\"float8e5m2\"},\"weights\":{\"dtype\":\"int8\"}}",
     "\"dtype\":\"int8\",\"gran"},
    {"{\"activations\":{\"dtype\":\"uint16\"}}",
     "\"activations\":{\"dtype\":\"uint16\",\"symmetric\":false}"},
    {"{\"activations\":\"none\"}", "\"activations\":\"none\""},
    {"{\"weights\":{\"granularity\":{\"block\":32}}}",
     "\"granularity\":{\"block\":32}"},
    {"{\"activations\":{}}", "\"activations\":{\"dtype\":\"int8\",\"symmetric\":true}"},
};

UNIT_ROWS(test_completed, completed)
{
    struct api_spec *spec = decode(completed[_i].text);
    char *text = api_spec_encode(api_spec_get(spec));
    ck_assert_ptr_nonnull(strstr(text, completed[_i].complete));
    free(text);
    api_spec_free(&spec);
}

/* A model may name a tensor by bytes that cannot be written in JSON. Such a range is
   left out, and all others are present. */
UNIT_TEST(test_unsayable_range)
{
    const struct qdq_given_range ranges[] = {{"a\xff", 0, 1}, {"b", -1, 2}};
    struct qdq_spec spec;
    qdq_spec_init(&spec);
    spec.calibration.ranges = ranges;
    spec.calibration.n_ranges = 2;
    char *text = api_spec_encode(&spec);
    ck_assert_ptr_nonnull(strstr(text, "\"ranges\":{\"b\":[-1.0,2.0]}"));
    free(text);
}

/* Reads the scales of a calibration cache of TensorRT: 2^-7 and 1. */
UNIT_TEST(test_cache)
{
    struct api_spec *spec = decode("{\"calibration\":{\"ranges\":\"TRT-8601-MinMax\\n"
                                   "b: 3c000000\\na:0: 3F800000\\n\"}}");
    const struct qdq_calibration_spec *c = &api_spec_get(spec)->calibration;
    ck_assert_uint_eq(c->n_ranges, 2);
    ck_assert_str_eq(c->ranges[0].tensor, "a:0");
    ck_assert(c->ranges[0].min == -127 && c->ranges[0].max == 127);
    ck_assert_str_eq(c->ranges[1].tensor, "b");
    ck_assert(c->ranges[1].max == 127.0 / 128);
    api_spec_free(&spec);
}

/* --- refused -------------------------------------------------------------- */

#define JSON_FAULT(json)                                \
    {                                                   \
        json, API_INVALID_JSON, NULL, "line 1, column " \
    }

static const struct refused_spec refused[] = {
    {"", API_INVALID_JSON, NULL, "the spec is empty"},
    {" \t\r\n", API_INVALID_JSON, NULL, "the spec is empty"},
    JSON_FAULT("{"),
    JSON_FAULT("{\"mode\":}"),
    JSON_FAULT("{} {}"),
    JSON_FAULT("mode: full"),
    JSON_FAULT("{\"mode\":\"fu\\u0000ll\"}"),
    JSON_FAULT("{\"calibration\":{\"ranges\":{\"x\":[0,1e999]}}}"),
    INVALID("[]", "", "not an array"),
    INVALID("null", "", "not null"),
    INVALID("3", "", "not a number"),
    INVALID("{\"mod\":1}", "/mod", "did you mean \"mode\"?"),
    INVALID("{\"calibation\":{}}", "/calibation", "did you mean \"calibration\"?"),
    INVALID("{\"weights\":{\"type\":\"int8\"}}", "/weights/type", "\"dtype\"?"),
    INVALID("{\"Mode\":\"full\"}", "/Mode", "did you mean \"mode\"?"),
    INVALID("{\"nothing_like_it\":1}", "/nothing_like_it", "known are mode, target"),
    INVALID("{\"a/b~c\":1}", "/a~1b~0c", "unknown member \"a/b~c\""),
    INVALID("{\"weights/dtype\":\"int8\"}", "/weights~1dtype", "unknown member"),
    INVALID("{\"\":1}", "/", "unknown member"),
    INVALID("{\"mode\":\"full\",\"mode\":\"full\"}", "/mode", "twice"),
    INVALID("{\"weights\":{\"dtype\":\"int8\",\"dtype\":\"int8\"}}", "/weights/dtype",
            "twice"),
    INVALID("{\"mode\":1}", "/mode", "is to be a string, not a number"),
    INVALID("{\"mode\":null}", "/mode", "not null"),
    INVALID("{\"mode\":\"ful\"}", "/mode", "one of full, partial; not \"ful\""),
    INVALID("{\"mode\":\"partial\"}", "/mode",
            "partial mode, and neither layers nor cases name anything"),
    INVALID("{\"cases\":[],\"layers\":[],\"mode\":\"partial\",\"layer_support\":"
            "[{\"class\":\"Selu\",\"kind\":\"non_weighted\"}]}",
            "/mode", "neither layers nor cases"),
    INVALID("{\"weights\":[]}", "/weights", "an object, not an array"),
    INVALID("{\"weights\":{\"storage\":\"int8\"}}", "/weights/storage", "qdq, dq"),
    INVALID("{\"weights\":{\"method\":\"MSE\"}}", "/weights/method", "max, mse"),
    INVALID("{\"weights\":{\"storage\":true}}", "/weights/storage", "a string"),
    INVALID("{\"weights\":{\"granularity\":1}}", "/weights/granularity",
            "a string or an object"),
    INVALID("{\"weights\":{\"granularity\":{}}}", "/weights/granularity", "block"),
    INVALID("{\"weights\":{\"granularity\":{\"block\":\"32\"}}}",
            "/weights/granularity/block", "integer"),
    INVALID("{\"weights\":{\"granularity\":{\"block\":1}}}",
            "/weights/granularity/block", "from 2"),
    INVALID("{\"weights\":{\"granularity\":{\"block\":8,\"axis\":1}}}",
            "/weights/granularity/axis", "unknown member"),
    INVALID("{\"weights\":{\"dtype\":\"int16\"}}", "/weights/dtype", "float4e2m1"),
    INVALID("{\"activations\":{\"dtype\":\"int4\"}}", "/activations/dtype", "uint16"),
    INVALID("{\"activations\":{\"dtype\":\"float8e5m2\",\"symmetric\":false}}",
            "/activations/symmetric", "zero point"),
    INVALID("{\"activations\":\"int8\"}", "/activations", "none"),
    INVALID("{\"activations\":{\"symmetric\":1}}", "/activations/symmetric",
            "true or false"),
    INVALID("{\"evaluate\":\"yes\"}", "/evaluate", "true or false or an object"),
    INVALID("{\"evaluate\":{\"samples\":0}}", "/evaluate/samples", "from 1 to"),
    INVALID("{\"evaluate\":{\"samples\":2.5}}", "/evaluate/samples", "not a fraction"),
    INVALID("{\"evaluate\":{\"sample\":2}}", "/evaluate/sample", "\"samples\"?"),
    INVALID("{\"calibration\":{\"method\":\"max\"}}", "/calibration/method",
            "minmax, moving_average, percentile, entropy, mse"),
    INVALID("{\"calibration\":{\"method\":\"percentile\",\"percentile\":0}}",
            "/calibration/percentile", "above 0 and at most 100, not 0"),
    INVALID("{\"calibration\":{\"method\":\"percentile\",\"percentile\":100.5}}",
            "/calibration/percentile", "not 100.5"),
    INVALID("{\"calibration\":{\"method\":\"percentile\",\"percentile\":-1}}",
            "/calibration/percentile", "not -1"),
    INVALID("{\"calibration\":{\"method\":\"percentile\",\"percentile\":\"99\"}}",
            "/calibration/percentile", "a number, not a string"),
    INVALID("{\"calibration\":{\"percentile\":99.9,\"method\":\"entropy\"}}",
            "/calibration/percentile", "for the method percentile, not entropy"),
    INVALID("{\"calibration\":{\"percentile\":99.99}}", "/calibration/percentile",
            "for the method percentile, not mse"),
    INVALID("{\"calibration\":{\"source\":\"\"}}", "/calibration/source",
            "sha256: and 64"),
    INVALID("{\"calibration\":{\"source\":\"sha256:" HEX "0\"}}", "/calibration/source",
            "64 hexadecimal digits"),
    INVALID("{\"calibration\":{\"source\":\"sha512:" HEX "\"}}", "/calibration/source",
            "calibration.source is to be"),
    INVALID("{\"calibration\":{\"batch\":0}}", "/calibration/batch", "from 1 to"),
    INVALID("{\"calibration\":{\"batch\":3000000000}}", "/calibration/batch",
            "from 1 to"),
    INVALID("{\"calibration\":{\"max_samples\":-1}}", "/calibration/max_samples",
            "not -1"),
    INVALID("{\"calibration\":{\"max_samples\":1e30}}", "/calibration/max_samples",
            "so large"),
    INVALID("{\"calibration\":{\"ranges\":{\"a/b\":[1,0]}}}",
            "/calibration/ranges/a~1b", "minimum above its maximum"),
    INVALID("{\"calibration\":{\"ranges\":{\"x\":[1]}}}", "/calibration/ranges/x",
            "two numbers"),
    INVALID("{\"calibration\":{\"ranges\":{\"x\":[1,2,3]}}}", "/calibration/ranges/x",
            "two numbers"),
    INVALID("{\"calibration\":{\"ranges\":{\"x\":[\"1\",2]}}}", "/calibration/ranges/x",
            "two numbers"),
    INVALID("{\"calibration\":{\"ranges\":{\"x\":{}}}}", "/calibration/ranges/x",
            "two numbers"),
    INVALID("{\"calibration\":{\"dims\":{\"a/b\":0}}}", "/calibration/dims/a~1b",
            "from 1 to"),
    INVALID("{\"calibration\":{\"dims\":{\"n\":3000000000}}}", "/calibration/dims/n",
            "from 1 to"),
    INVALID("{\"calibration\":{\"dims\":{\"n\":1.5}}}", "/calibration/dims/n",
            "an integer, not a fraction"),
    INVALID("{\"calibration\":{\"dims\":{\"n\":\"8\"}}}", "/calibration/dims/n",
            "an integer, not a string"),
    INVALID("{\"calibration\":{\"dims\":[8]}}", "/calibration/dims", "an object"),
    INVALID("{\"calibration\":{\"random_samples\":-1}}", "/calibration/random_samples",
            "from 0 to"),
    INVALID("{\"calibration\":{\"random_samples\":2,\"random\":{\"x\":[1,0]}}}",
            "/calibration/random/x", "above its highest"),
    INVALID("{\"calibration\":{\"random_samples\":2,\"random\":{\"x\":[1]}}}",
            "/calibration/random/x", "two numbers"),
    INVALID("{\"calibration\":{\"random_samples\":2,\"random\":{\"x\":[0,\"1\"]}}}",
            "/calibration/random/x", "two numbers"),
    INVALID(
        "{\"calibration\":{\"random_samples\":2,\"random\":{\"x\":[-1e308,1e308]}}}",
        "/calibration/random/x", "too far apart"),
    INVALID("{\"calibration\":{\"random\":{\"x\":[0,1]}}}", "/calibration/random",
            "random_samples asks for none"),
    INVALID("{\"calibration\":{\"on_nonfinite\":\"skip\"}}",
            "/calibration/on_nonfinite", "error, skip_sample"),
    INVALID("{\"calibration\":{\"ranges\":\"in: 3c010a14\"}}", "/calibration/ranges",
            "begins with \"TRT-\""),
    INVALID("{\"calibration\":{\"ranges\":\"TRT-1\\n\\nin 3c010a14\"}}",
            "/calibration/ranges", "line 3 of the TensorRT"),
    INVALID("{\"calibration\":{\"ranges\":\"TRT-1\\nin: 3c010a141\"}}",
            "/calibration/ranges", "eight hexadecimal digits"),
    INVALID("{\"calibration\":{\"ranges\":\"TRT-1\\nin: 7f800000\"}}",
            "/calibration/ranges", "not finite"),
    INVALID("{\"calibration\":{\"ranges\":\"TRT-1\\nin: bc010a14\"}}",
            "/calibration/ranges", "negative"),
    INVALID("{\"calibration\":{\"ranges\":\"TRT-1\\nin: 1\\nin: 2\"}}",
            "/calibration/ranges", "\"in\" stands there twice"),
    INVALID("{\"calibration\":{\"ranges\":[3]}}", "/calibration/ranges/0",
            "name, min and max"),
    INVALID("{\"calibration\":{\"ranges\":[{\"name\":\"x\",\"min\":null,\"max\":1}]}}",
            "/calibration/ranges/0", "two numbers"),
    INVALID("{\"calibration\":{\"ranges\":[{\"name\":\"x\",\"min\":0,\"max\":1,"
            "\"mean\":0}]}}",
            "/calibration/ranges/0", "\"mean\""),
    INVALID("{\"calibration\":{\"ranges\":[{\"name\":\"x\",\"min\":0,\"max\":1},"
            "{\"name\":\"x\",\"min\":0,\"max\":1}]}}",
            "/calibration/ranges", "\"x\" stands there twice"),
    INVALID("{\"accept\":[]}", "/accept", "an object, not an array"),
    INVALID("{\"accept\":{\"sqnr_db\":30}}", "/accept/sqnr_db",
            "known are min_sqnr_db, min_slice_sqnr_db, max_kl, min_cosine"),
    INVALID("{\"accept\":{\"min_sqnr_db\":\"30\"}}", "/accept/min_sqnr_db", "a number"),
    INVALID("{\"accept\":{\"min_sqnr_db\":null}}", "/accept/min_sqnr_db", "not null"),
    INVALID("{\"accept\":{\"min_cosine\":1.5}}", "/accept/min_cosine",
            "accept.min_cosine is to be from -1 to 1, not 1.5"),
    INVALID("{\"accept\":{\"max_abs_error\":-1}}", "/accept/max_abs_error",
            "at least 0, not -1"),
    INVALID("{\"accept\":{\"min_top1_agreement\":99}}", "/accept/min_top1_agreement",
            "from 0 to 1, not 99"),
    INVALID("{\"profile\":true}", "/profile", "an object"),
    INVALID("{\"profile\":{\"runs\":0}}", "/profile/runs", "1"),
    INVALID("{\"profile\":{\"runs\":10001}}", "/profile/runs", "at most 10000"),
    INVALID("{\"profile\":{\"threads\":257}}", "/profile/threads", "at most 256"),
    INVALID("{\"profile\":{\"run\":5}}", "/profile/run", "\"runs\"?"),
    INVALID("{\"accept\":{\"max_size_ratio\":-0.5}}", "/accept/max_size_ratio",
            "at least 0, not -0.5"),
    INVALID("{\"accept\":{\"outputs\":{\"y\":{\"max_size_ratio\":1}}}}",
            "/accept/outputs/y/max_size_ratio", "unknown member"),
    INVALID("{\"accept\":{\"outputs\":[]}}", "/accept/outputs", "an object"),
    INVALID("{\"accept\":{\"outputs\":{\"a/b\":30}}}", "/accept/outputs/a~1b",
            "the gate of \"a/b\" is to be an object, not a number"),
    INVALID("{\"accept\":{\"outputs\":{\"y\":{\"min_sqnr\":3}}}}",
            "/accept/outputs/y/min_sqnr", "\"min_sqnr_db\"?"),
    INVALID("{\"accept\":{\"outputs\":{\"y\":{\"min_cosine\":2}}}}",
            "/accept/outputs/y/min_cosine", "from -1 to 1"),
    INVALID("{\"accept\":{\"outputs\":{\"y\":{\"outputs\":{}}}}}",
            "/accept/outputs/y/outputs", "unknown member"),
    INVALID("{\"accept\":{\"min_cosine\":0.9},\"evaluate\":false}", "/accept",
            "evaluate is false"),
    INVALID("{\"evaluate\":false,\"accept\":{\"outputs\":{\"y\":{\"min_cosine\":0}}}}",
            "/accept", "evaluate is false"),
    INVALID("{\"float\":\"float8\"}", "/float", "keep, float16, bfloat16"),
    INVALID("{\"float\":16}", "/float", "a string"),
    INVALID("{\"equalize\":1}", "/equalize", "is to be true or false"),
    INVALID("{\"smooth\":1}", "/smooth", "true or false"),
    INVALID("{\"smooth\":{\"alpha\":1}}", "/smooth/alpha", "below 1"),
    INVALID("{\"smooth\":{\"insert\":1}}", "/smooth/insert", "true or false"),
    INVALID("{\"smooth\":{\"beta\":1}}", "/smooth/beta", "unknown member"),
    INVALID("{\"sensitivity\":true}", "/sensitivity", "an object"),
    INVALID("{\"sensitivity\":{\"samples\":0}}", "/sensitivity/samples", "from 1 to"),
    INVALID("{\"sensitivity\":{\"sample\":8}}", "/sensitivity/sample", "\"samples\"?"),
    INVALID("{\"search\":{}}", "/search", "no goal"),
    INVALID("{\"search\":{\"max_float_layers\":3}}", "/search", "no goal"),
    INVALID("{\"search\":{\"min_sqnr_db\":\"30\"}}", "/search/min_sqnr_db", "a number"),
    INVALID("{\"search\":{\"min_top1_agreement\":99}}", "/search/min_top1_agreement",
            "search.min_top1_agreement is to be from 0 to 1, not 99"),
    INVALID("{\"search\":{\"min_sqnr_db\":30,\"max_float_layers\":-1}}",
            "/search/max_float_layers", "from 0 to"),
    INVALID("{\"search\":{\"min_sqnr_db\":30,\"samples\":0}}", "/search/samples",
            "from 1 to"),
    INVALID("{\"output\":{\"external_data\":true}}", "/output/external_data", "string"),
    INVALID("{\"output\":{\"external_data\":\"yes\"}}", "/output/external_data",
            "never"),
    INVALID("{\"output\":{\"external\":\"always\"}}", "/output/external", "external"),
    INVALID("{\"output\":\"always\"}", "/output", "object"),
    LATER("{\"rules\":{\"T8\":false}}", "/rules/T8"),
    INVALID("{\"rules\":[]}", "/rules", "an object"),
    INVALID("{\"rules\":{\"T222\":true}}", "/rules/T222", "did you mean \"T22\"?"),
    INVALID("{\"rules\":{\"a/b\":true}}", "/rules/a~1b", "no target has a rule"),
    INVALID("{\"rules\":{\"T22\":1}}", "/rules/T22", "true or false, not a number"),
    INVALID("{\"rules\":{\"T22\":null}}", "/rules/T22", "not null"),
    INVALID("{\"rules\":{\"T22\":true,\"T22\":true}}", "/rules/T22", "twice"),
    INVALID("{\"opset\":29}", "/opset", "from 7 to 28"),
    INVALID("{\"opset\":6}", "/opset", "from 7 to 28"),
    INVALID("{\"opset\":\"latest\"}", "/opset", "auto, keep"),
    INVALID("{\"opset\":true}", "/opset", "a string"),
    INVALID("{\"existing_qdq\":\"drop\"}", "/existing_qdq", "error, keep, strip"),
};

UNIT_ROWS(test_refused, refused)
{
    expect_refused(&refused[_i]);
}

/* Names from users may be long; no buffer overflows. */
UNIT_TEST(test_long_names)
{
    enum { LONG = 5000 };
    static char text[LONG + 100];
    char name[LONG + 1];
    struct api_spec *spec = NULL;
    struct api_problem problem = {0};
    memset(name, '/', LONG);
    name[LONG] = '\0';
    snprintf(text, sizeof text, "{\"calibration\":{\"ranges\":{\"%s\":3}}}", name);
    ck_assert(!api_spec_decode(text, strlen(text), &spec, &problem));
    ck_assert_str_eq(problem.where + sizeof problem.where - 4, "...");
    problem = (struct api_problem){0};
    snprintf(text, sizeof text, "{\"%s\":3}", name);
    ck_assert(!api_spec_decode(text, strlen(text), &spec, &problem));
    ck_assert_int_eq(problem.code, API_INVALID_SPEC);
}

/* --- out of memory -------------------------------------------------------- */

static char *
encode_some(void)
{
    return decode_and_encode("{\"calibration\":{\"ranges\":\"TRT-1\\na: 0\","
                             "\"dims\":{\"n\":3},\"random_samples\":1,\"random\":"
                             "{\"x\":[0,1]}},"
                             "\"evaluate\":{\"samples\":3},\"equalize\":true,"
                             "\"smooth\":{\"alpha\":0.25,\"insert\":true}}");
}

UNIT_TEST(test_no_memory)
{
    expect_survives_no_memory(encode_some);
}

UNIT_SUITE("api/spec")
