/* SPDX-License-Identifier: Apache-2.0 */
/* The spec's lists: layers, cases, layer_support. */
#include "config.h"
#include "api_spec.h"

/* --- accepted ------------------------------------------------------------- */

#define LAYERS(items) "{\"layers\":[" items "]}"
#define CASES(items) "{\"cases\":[" items "]}"
#define SUPPORT(items) "{\"layer_support\":[" items "]}"

static const char *const accepted[] = {
    LAYERS("{\"class\":\"Add\"}"),
    LAYERS("{\"name\":\"a\"}"),
    LAYERS("{\"name\":\"@out:0\"}"),
    LAYERS("{\"name\":[\"a\"]}"),
    LAYERS("{\"name\":[\"a\",\"b\",\"a\"]}"),
    LAYERS("{\"match\":\"*\"}"),
    LAYERS("{\"match\":\"head/*\",\"quantize_input\":false}"),
    LAYERS("{\"quantize_weight\":false,\"name\":\"\xc3\xa4\"}"),
    LAYERS("{\"class\":\"Concat\",\"quantization_index\":[1]}"),
    LAYERS("{\"class\":\"Concat\",\"quantization_index\":[3,0,3,2147483647,1.0]}"),
    LAYERS("{\"class\":\"Concat\",\"quantization_index\":null}"),
    LAYERS("{\"class\":\"Add\"},{\"class\":\"Add\"},{\"name\":\"x\"}"),
    "{\"mode\":\"partial\",\"layers\":[{\"class\":\"Add\"}]}",
    "{\"mode\":\"partial\",\"cases\":[\"residual\"]}",
    CASES("\"residual\""),
    CASES("\"resnet_v1\",\"resnet_v1\""),
    CASES("{\"name\":\"residual\"}"),
    LAYERS("{\"class\":\"Conv\",\"weights\":{\"dtype\":\"int4\",\"rounding\":"
           "\"nearest\"}}"),
    LAYERS(
        "{\"name\":\"a\",\"weights\":{\"granularity\":{\"block\":8},\"storage\":\"dq\","
        "\"method\":\"mse\"},\"activations\":{\"dtype\":\"int16\"}}"),
    LAYERS("{\"name\":\"a\",\"weights\":{},\"activations\":{\"symmetric\":false}}"),
    LAYERS("{\"name\":\"a\",\"weights\":{\"dtype\":\"float32\"},\"activations\":"
           "\"none\"}"),
    CASES("{\"name\":\"a b~\",\"lua\":\"return {}\\n\\t\\u00e4\\\"\"}"),
    CASES("{\"lua\":\"\",\"name\":\"m\"},\"residual\""),
    SUPPORT("{\"class\":\"GlobalMaxPool\",\"kind\":\"non_weighted\"}"),
    SUPPORT("{\"class\":\"S\",\"kind\":\"non_weighted\",\"channel_axis\":null}"),
    SUPPORT("{\"class\":\"S\",\"kind\":\"multi_input\",\"quantize_input\":false}"),
    SUPPORT("{\"class\":\"W\",\"kind\":\"weighted\"}"),
    SUPPORT("{\"class\":\"W\",\"kind\":\"weighted\",\"channel_axis\":null}"),
    SUPPORT("{\"channel_axis\":-1,\"kind\":\"weighted\",\"weight_input\":2,"
            "\"quantize_weight\":false,\"class\":\"W\"}"),
    SUPPORT("{\"class\":\"W\",\"kind\":\"weighted\",\"weight_input\":0,"
            "\"channel_axis\":63}"),
};

UNIT_ROWS(test_round_trip, accepted)
{
    expect_round_trip(accepted[_i]);
}

UNIT_TEST(test_layers)
{
    struct api_spec *spec =
        decode(LAYERS("{\"name\":\"a\"},"
                      "{\"name\":[\"b\",\"c\"],\"quantize_weight\":false},"
                      "{\"match\":\"h/*\",\"quantization_index\":[1,0,1]},"
                      "{\"class\":\"Add\",\"quantize_input\":false}"));
    const struct qdq_spec *s = api_spec_get(spec);
    ck_assert_uint_eq(s->n_layers, 4);
    const struct qdq_layer_entry *e = s->layers;
    ck_assert_int_eq(e[0].by, QDQ_BY_NAME);
    ck_assert(!e[0].is_list && e[0].quantize_input && e[0].quantize_weight);
    ck_assert_uint_eq(e[0].n_names, 1);
    ck_assert_str_eq(e[0].names[0], "a");
    ck_assert_ptr_null(e[0].index);
    ck_assert_int_eq(e[1].by, QDQ_BY_NAME);
    ck_assert(e[1].is_list && e[1].quantize_input && !e[1].quantize_weight);
    ck_assert_uint_eq(e[1].n_names, 2);
    ck_assert_str_eq(e[1].names[0], "b");
    ck_assert_str_eq(e[1].names[1], "c");
    ck_assert_int_eq(e[2].by, QDQ_BY_MATCH);
    ck_assert_str_eq(e[2].names[0], "h/*");
    ck_assert_uint_eq(e[2].n_index, 3);
    ck_assert(e[2].index[0] == 1 && e[2].index[1] == 0 && e[2].index[2] == 1);
    ck_assert_int_eq(e[3].by, QDQ_BY_CLASS);
    ck_assert_str_eq(e[3].names[0], "Add");
    ck_assert(!e[3].quantize_input && e[3].quantize_weight);
    api_spec_free(&spec);
}

UNIT_TEST(test_cases)
{
    struct api_spec *spec =
        decode(CASES("\"residual\",{\"name\":\"mine\",\"lua\":\"return 1\"},"
                     "{\"name\":\"maxpool\"}"));
    const struct qdq_spec *s = api_spec_get(spec);
    ck_assert_uint_eq(s->n_cases, 3);
    ck_assert_str_eq(s->cases[0].name, "residual");
    ck_assert_ptr_null(s->cases[0].lua);
    ck_assert_str_eq(s->cases[1].name, "mine");
    ck_assert_str_eq(s->cases[1].lua, "return 1");
    ck_assert_str_eq(s->cases[2].name, "maxpool");
    ck_assert_ptr_null(s->cases[2].lua);
    api_spec_free(&spec);
}

static const struct {
    const char *members;
    struct qdq_support row;
} rows[] = {
    {"\"kind\":\"weighted\"", {"C", QDQ_WEIGHTED, 1, 0, true, true}},
    {"\"kind\":\"weighted\",\"weight_input\":2,\"channel_axis\":-2",
     {"C", QDQ_WEIGHTED, 2, -2, true, true}},
    {"\"kind\":\"weighted\",\"channel_axis\":null,\"quantize_input\":false",
     {"C", QDQ_WEIGHTED, 1, QDQ_NO_AXIS, false, true}},
    {"\"quantize_weight\":false,\"kind\":\"non_weighted\"",
     {"C", QDQ_NON_WEIGHTED, -1, QDQ_NO_AXIS, true, false}},
    {"\"kind\":\"multi_input\",\"channel_axis\":null",
     {"C", QDQ_MULTI_INPUT, -1, QDQ_NO_AXIS, true, true}},
};

UNIT_ROWS(test_support, rows)
{
    char text[256];
    snprintf(text, sizeof text, SUPPORT("{\"class\":\"C\",%s}"), rows[_i].members);
    struct api_spec *spec = decode(text);
    struct qdq_spec wanted;
    qdq_spec_init(&wanted);
    wanted.support = &rows[_i].row;
    wanted.n_support = 1;
    struct qdq_spec read = *api_spec_get(spec);
    qdq_spec_complete(&read);
    qdq_spec_complete(&wanted);
    expect_equal_specs(&read, &wanted);
    api_spec_free(&spec);
}

/* The effective spec contains every default, and the meaning of null. */
UNIT_TEST(test_effective)
{
    struct api_spec *spec =
        decode("{\"layers\":[{\"class\":\"Add\"},{\"name\":[\"a\"],"
               "\"quantization_index\":[2]},{\"match\":\"x\"}],\"cases\":[{\"name\":"
               "\"residual\"},{\"name\":\"m\",\"lua\":\"x\"}],\"layer_support\":["
               "{\"class\":\"W\",\"kind\":\"weighted\"},{\"class\":\"N\",\"kind\":"
               "\"non_weighted\"}]}");
    char *text = api_spec_encode(api_spec_get(spec));
    json_t *json = json_loads(text, 0, NULL);
    expect_json(
        json_dumps(json_object_get(json, "layers"), 0),
        "[{\"class\":\"Add\",\"quantize_input\":true,\"quantize_weight\":true,"
        "\"quantization_index\":null},{\"name\":[\"a\"],\"quantize_input\":true,"
        "\"quantize_weight\":true,\"quantization_index\":[2]},{\"match\":\"x\","
        "\"quantize_input\":true,\"quantize_weight\":true,"
        "\"quantization_index\":null}]");
    expect_json(json_dumps(json_object_get(json, "cases"), 0),
                "[\"residual\",{\"name\":\"m\",\"lua\":\"x\"}]");
    expect_json(json_dumps(json_object_get(json, "layer_support"), 0),
                "[{\"class\":\"W\",\"kind\":\"weighted\",\"weight_input\":1,"
                "\"channel_axis\":0,\"quantize_input\":true,\"quantize_weight\":true},"
                "{\"class\":\"N\",\"kind\":\"non_weighted\",\"channel_axis\":null,"
                "\"quantize_input\":true,\"quantize_weight\":true}]");
    json_decref(json);
    free(text);
    api_spec_free(&spec);
}

/* --- refused -------------------------------------------------------------- */

static const struct refused_spec refused[] = {
    INVALID("{\"layers\":{}}", "/layers", "layers is to be an array, not an object"),
    INVALID("{\"layers\":\"Add\"}", "/layers", "layers is to be an array"),
    INVALID("{\"layers\":null}", "/layers", "not null"),
    INVALID(LAYERS("\"conv\""), "/layers/0",
            "layers[0] is to be an object, not a string"),
    INVALID(LAYERS("{\"class\":\"Add\"},null"), "/layers/1", "layers[1]"),
    INVALID(LAYERS("{}"), "/layers/0", "exactly one of name, match and class, not 0"),
    INVALID(LAYERS("{\"quantize_input\":false}"), "/layers/0", "not 0"),
    INVALID(LAYERS("{\"class\":\"Add\"},{\"class\":\"Add\",\"name\":\"x\"}"),
            "/layers/1", "not 2"),
    INVALID(LAYERS("{\"name\":\"x\",\"class\":\"Add\",\"match\":\"*\"}"), "/layers/0",
            "not 3"),
    INVALID(LAYERS("{\"name\":\"\"}"), "/layers/0/name", "layers[0].name is empty"),
    INVALID(LAYERS("{\"match\":\"\"}"), "/layers/0/match", "match is empty"),
    INVALID(LAYERS("{\"class\":\"\"}"), "/layers/0/class", "class is empty"),
    INVALID(LAYERS("{\"name\":[]}"), "/layers/0/name", "layers[0].name is empty"),
    INVALID(LAYERS("{\"name\":[\"a\",\"\"]}"), "/layers/0/name/1",
            "layers[0].name[1] is empty"),
    INVALID(LAYERS("{\"name\":[\"a\",3]}"), "/layers/0/name/1",
            "layers[0].name[1] is to be a string, not a number"),
    INVALID(LAYERS("{\"name\":3}"), "/layers/0/name",
            "a string or an array, not a number"),
    INVALID(LAYERS("{\"name\":null}"), "/layers/0/name", "not null"),
    INVALID(LAYERS("{\"class\":[\"Add\"]}"), "/layers/0/class",
            "a string, not an array"),
    INVALID(LAYERS("{\"match\":[\"*\"]}"), "/layers/0/match", "a string, not an array"),
    INVALID(LAYERS("{\"class\":\"A\",\"quantize_input\":1}"),
            "/layers/0/quantize_input",
            "layers[0].quantize_input is to be true or false, not a number"),
    INVALID(LAYERS("{\"class\":\"A\",\"quantize_weight\":null}"),
            "/layers/0/quantize_weight", "true or false, not null"),
    INVALID(LAYERS("{\"class\":\"A\"},{\"class\":\"A\"},{\"class\":\"A\"},"
                   "{\"class\":\"A\",\"quantize_input\":\"no\"}"),
            "/layers/3/quantize_input", "layers[3].quantize_input"),
    INVALID(LAYERS("{\"class\":\"A\",\"quantization_index\":[]}"),
            "/layers/0/quantization_index", "quantization_index is empty"),
    INVALID(LAYERS("{\"class\":\"A\",\"quantization_index\":1}"),
            "/layers/0/quantization_index", "an array or null, not a number"),
    INVALID(LAYERS("{\"class\":\"A\",\"quantization_index\":[0,-1]}"),
            "/layers/0/quantization_index/1",
            "layers[0].quantization_index[1] is to be from 0 to 2147483647, not -1"),
    INVALID(LAYERS("{\"class\":\"A\",\"quantization_index\":[2147483648]}"),
            "/layers/0/quantization_index/0", "not 2147483648"),
    INVALID(LAYERS("{\"class\":\"A\",\"quantization_index\":[1e30]}"),
            "/layers/0/quantization_index/0", "so large a number"),
    INVALID(LAYERS("{\"class\":\"A\",\"quantization_index\":[0.5]}"),
            "/layers/0/quantization_index/0", "an integer, not a fraction"),
    INVALID(LAYERS("{\"class\":\"A\",\"quantization_index\":[[1]]}"),
            "/layers/0/quantization_index/0", "an integer, not an array"),
    INVALID(LAYERS("{\"class\":\"A\",\"quantization_index\":[\"all\"]}"),
            "/layers/0/quantization_index/0", "an integer, not a string"),
    INVALID(LAYERS("{\"class\":\"A\",\"quantise_input\":false}"),
            "/layers/0/quantise_input", "did you mean \"quantize_input\"?"),
    INVALID(LAYERS("{\"class\":\"A\",\"Quantization_Indices\":[1]}"),
            "/layers/0/Quantization_Indices", "did you mean \"quantization_index\"?"),
    INVALID(LAYERS("{\"class\":\"A\",\"is_keras_class\":true}"),
            "/layers/0/is_keras_class",
            "known are name, match, class, quantize_input, quantize_weight, "
            "quantization_index"),
    INVALID(LAYERS("{\"names\":[\"a\"]}"), "/layers/0/names", "did you mean \"name\"?"),
    INVALID(LAYERS("{\"class\":\"A\",\"a/b~\":1}"), "/layers/0/a~1b~0", "unknown"),
    INVALID(LAYERS("{\"class\":\"A\"},{\"class\":\"A\",\"class\":\"A\"}"),
            "/layers/1/class", "twice"),

    INVALID("{\"cases\":\"residual\"}", "/cases", "cases is to be an array"),
    INVALID(CASES("3"), "/cases/0", "cases[0] is to be a string or an object"),
    INVALID(CASES("\"a\",null"), "/cases/1", "not null"),
    INVALID(CASES("\"\""), "/cases/0", "1 to 64 characters"),
    INVALID(CASES("\"a\\nb\""), "/cases/0", "printable"),
    INVALID(CASES("\"\xc3\xa4\""), "/cases/0", "ASCII"),
    INVALID(CASES("\"0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
                  "0\""),
            "/cases/0", "1 to 64"),
    INVALID(CASES("{}"), "/cases/0", "a case is to have a name"),
    INVALID(CASES("{\"lua\":\"return {}\"}"), "/cases/0", "a case is to have a name"),
    INVALID(CASES("{\"name\":\"\"}"), "/cases/0/name", "1 to 64"),
    INVALID(CASES("{\"name\":\"\\u007f\"}"), "/cases/0/name", "printable"),
    INVALID(CASES("{\"name\":7}"), "/cases/0/name", "a string, not a number"),
    INVALID(CASES("\"a\",{\"name\":\"m\",\"lua\":[]}"), "/cases/1/lua",
            "cases[1].lua is to be a string, not an array"),
    INVALID(CASES("{\"name\":\"m\",\"script\":\"\"}"), "/cases/0/script",
            "known are name, lua"),
    INVALID(CASES("{\"name\":\"m\",\"luac\":\"\"}"), "/cases/0/luac", "\"lua\"?"),

    INVALID("{\"layer_support\":{}}", "/layer_support", "an array, not an object"),
    INVALID(SUPPORT("\"Selu\""), "/layer_support/0", "an object, not a string"),
    INVALID(SUPPORT("{}"), "/layer_support/0", "name a class"),
    INVALID(SUPPORT("{\"kind\":\"weighted\"}"), "/layer_support/0", "name a class"),
    INVALID(SUPPORT("{\"class\":\"\",\"kind\":\"weighted\"}"), "/layer_support/0/class",
            "layer_support[0].class is empty"),
    INVALID(SUPPORT("{\"class\":[],\"kind\":\"weighted\"}"), "/layer_support/0/class",
            "a string, not an array"),
    INVALID(SUPPORT("{\"class\":\"S\"}"), "/layer_support/0",
            "weighted, non_weighted or multi_input"),
    INVALID(SUPPORT("{\"class\":\"S\",\"kind\":\"weighed\"}"), "/layer_support/0/kind",
            "one of weighted, non_weighted, multi_input; not \"weighed\""),
    INVALID(SUPPORT("{\"class\":\"S\",\"kind\":1}"), "/layer_support/0/kind",
            "a string"),
    INVALID(SUPPORT("{\"class\":\"S\",\"kind\":\"non_weighted\",\"weight_input\":1}"),
            "/layer_support/0/weight_input", "only a weighted layer"),
    INVALID(SUPPORT("{\"class\":\"S\",\"weight_input\":0,\"kind\":\"multi_input\"}"),
            "/layer_support/0/weight_input", "only a weighted layer"),
    INVALID(SUPPORT("{\"class\":\"S\",\"kind\":\"non_weighted\",\"channel_axis\":0}"),
            "/layer_support/0/channel_axis", "only a weighted layer"),
    INVALID(SUPPORT("{\"class\":\"S\",\"kind\":\"weighted\",\"weight_input\":-1}"),
            "/layer_support/0/weight_input", "from 0 to"),
    INVALID(SUPPORT("{\"class\":\"S\",\"kind\":\"weighted\",\"weight_input\":null}"),
            "/layer_support/0/weight_input", "an integer, not null"),
    INVALID(SUPPORT("{\"class\":\"S\",\"kind\":\"weighted\",\"channel_axis\":64}"),
            "/layer_support/0/channel_axis", "from -64 to 63, not 64"),
    INVALID(SUPPORT("{\"class\":\"S\",\"kind\":\"weighted\",\"channel_axis\":-65}"),
            "/layer_support/0/channel_axis", "not -65"),
    INVALID(SUPPORT("{\"class\":\"S\",\"kind\":\"weighted\",\"channel_axis\":\"0\"}"),
            "/layer_support/0/channel_axis", "an integer or null, not a string"),
    INVALID(SUPPORT("{\"class\":\"S\",\"kind\":\"weighted\",\"quantize_input\":0}"),
            "/layer_support/0/quantize_input", "true or false"),
    INVALID(SUPPORT("{\"class\":\"S\",\"kind\":\"weighted\",\"axis\":0}"),
            "/layer_support/0/axis", "unknown member \"axis\""),
};

UNIT_ROWS(test_refused, refused)
{
    expect_refused(&refused[_i]);
}

/* --- limits --------------------------------------------------------------- */

/* Returns `open`, then `item` n times, with commas between them if `comma`, then
   `close`. */
static char *
repeat(const char *open, const char *item, size_t n, bool comma, const char *close)
{
    size_t step = strlen(item) + comma;
    size_t size = strlen(open) + n * step + strlen(close) + 1;
    char *text = malloc(size);
    ck_assert_ptr_nonnull(text);
    size_t len = (size_t)snprintf(text, size, "%s", open);
    for (size_t i = 0; i < n; i++)
        len += (size_t)snprintf(text + len, size - len, "%s%s", comma && i ? "," : "",
                                item);
    snprintf(text + len, size - len, "%s", close);
    return text;
}

static const struct {
    const char *open, *item;
    size_t most;
    bool comma;
    const char *close;
    const char *pointer, *text;
} limits[] = {
    {"{\"cases\":[", "\"a\"", 64, true, "]}", "/cases", "65 items, and 64 may"},
    {"{\"layers\":[", "{\"match\":\"*\"}", 1024, true, "]}", "/layers",
     "1025 entries have a glob, and 1024 may"},
    {"{\"layers\":[{\"class\":\"A\",\"quantization_index\":[", "7", 1024, true, "]}]}",
     "/layers/0/quantization_index", "1025 items, and 1024 may"},
    {"{\"layers\":[{\"match\":\"", "*", 1024, false, "\"}]}", "/layers/0/match",
     "1024 bytes"},
    {"{\"cases\":[{\"name\":\"m\",\"lua\":\"", "-", 262144, false, "\"}]}",
     "/cases/0/lua", "262144 bytes"},
};

UNIT_ROWS(test_limits, limits)
{
    struct refused_spec row = {NULL, API_LIMIT_EXCEEDED, limits[_i].pointer,
                               limits[_i].text};
    char *most = repeat(limits[_i].open, limits[_i].item, limits[_i].most,
                        limits[_i].comma, limits[_i].close);
    expect_round_trip(most);
    free(most);
    char *more = repeat(limits[_i].open, limits[_i].item, limits[_i].most + 1,
                        limits[_i].comma, limits[_i].close);
    row.json = more;
    expect_refused(&row);
    free(more);
}

/* Entries by name are not limited. */
UNIT_TEST(test_many_names)
{
    char *text = repeat("{\"layers\":[", "{\"name\":[\"a\",\"b\"]}", 20000, true, "]}");
    expect_round_trip(text);
    free(text);
}

/* --- out of memory -------------------------------------------------------- */

void *__real_calloc(size_t n, size_t size);
void *__wrap_calloc(size_t n, size_t size);

void *
__wrap_calloc(size_t n, size_t size)
{
    bool fails = unit_allocations_fail && unit_allocations_left-- <= 0;
    return fails ? NULL : __real_calloc(n, size);
}

static char *
encode_lists(void)
{
    return decode_and_encode(
        "{\"layers\":[{\"name\":[\"a\",\"b\"],\"quantization_index\":[1,2]},"
        "{\"class\":\"Add\"}],\"cases\":[\"residual\",{\"name\":\"m\",\"lua\":\"x\"}],"
        "\"layer_support\":[{\"class\":\"W\",\"kind\":\"weighted\"}],"
        "\"calibration\":{\"ranges\":{\"x\":[0,1]}}}");
}

UNIT_TEST(test_no_memory)
{
    expect_survives_no_memory(encode_lists);
}

UNIT_SUITE("api/lists")
