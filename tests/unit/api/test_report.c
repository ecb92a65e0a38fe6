/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "api.h"

#include <math.h>

#include "api/report.h"
#include "api/spec.h"

/* --- a small quantized model ---------------------------------------------- */

static const struct qdq_dim dims[] = {{-1, "batch"}, {1, NULL}, {-1, NULL}};
static const struct qdq_value inputs[] = {{"input", "float32", true, 3, dims}};
static const struct qdq_value outputs[] = {{"out\xff", "", false, 0, NULL}};
static const struct qdq_op_count ops[] = {{"Conv", 2}, {"com.x:Foo", 1}};
static const struct qdq_model_info model = {
    .name = "graph",
    .producer = "pytorch",
    .ir_version = 8,
    .opset = 13,
    .size = 1000,
    .n_nodes = 3,
    .n_initializers = 2,
    .n_inputs = 1,
    .n_outputs = 1,
    .n_ops = 2,
    .inputs = inputs,
    .outputs = outputs,
    .ops = ops,
};
static const int first_input[] = {0};
static const size_t first_row[] = {0};
static const struct qdq_rule rules[] = {
    {.id = "T1"}, {.id = "T2"}, {.id = "T3"}, {.id = "T5"}, {.id = "T8"}};
static const struct qdq_target target = {.rules = rules, .n_rules = 5};
static const struct qdq_layer_format bytes = {
    .weights = {.format = QDQ_FORMAT_INT8}, .activations = {.format = QDQ_FORMAT_INT8}};
static const struct qdq_layer layers[] = {
    {"conv\xc3", "Conv", "Conv", 0,         1,        first_input,
     1,          0,      "w0",   "default", {{0x12}}, 0,
     NULL,       0,      0,      first_row, NULL,     QDQ_REASON_DEFAULT,
     &bytes,     "int8", 0,      "int8",    false,    NULL},
    {"conv1", "Conv",           "Conv", 1,    0,    NULL, 1,     -1,
     "w1",    "integer tensor", {{0}},  0,    NULL, 1,    0,     NULL,
     NULL,    QDQ_REASON_OTHER, &bytes, NULL, 0,    NULL, false, NULL},
    {"add",       "Add",
     "Add",       2,
     0,           NULL,
     -1,          -1,
     NULL,        "off by default",
     {{0}},       1,
     first_input, 0,
     0,           NULL,
     first_row,   QDQ_REASON_OFF_BY_DEFAULT,
     &bytes,      NULL,
     0,           "int8",
     true,        NULL},
};
static const char *const tensor_names[] = {"input"};
static const struct qdq_warning warnings[] = {
    {"opset_per_tensor", "opset 12 has no axis", NULL, NULL},
    {"dead_tensor", "nobody reads it", "add", "T22"},
};
static const struct qdq_plan_view plan = {
    .n_layers = 3,
    .layers = layers,
    .n_quantized = 2,
    .n_tensors = 1,
    .tensors = tensor_names,
    .n_weights = 2,
    .n_pairs = 3,
    .n_warnings = 1,
    .warnings = warnings,
    .target = &target,
};

#define LAYERS_JSON                                                                 \
    "[{\"name\":\"conv\xef\xbf\xbd\",\"op\":\"Conv\",\"class\":\"Conv\","           \
    "\"quantized_inputs\":[0],\"quantized_outputs\":[],\"weight_quantized\":true,"  \
    "\"weight_axis\":0,\"reason\":"                                                 \
    "\"default\",\"rules\":[\"T2\",\"T8\"],\"weight_dtype\":\"int8\","              \
    "\"weight_block\":null,\"input_dtype\":\"int8\",\"constant\":false},{\"name\":" \
    "\"conv1\",\"op\":\"Conv\",\"class\":\"Conv\","                                 \
    "\"quantized_inputs\":[],\"quantized_outputs\":[],\"weight_quantized\":true,"   \
    "\"weight_axis\":null,"                                                         \
    "\"reason\":\"integer "                                                         \
    "tensor\",\"rules\":[],\"weight_dtype\":null,"                                  \
    "\"weight_block\":null,\"input_dtype\":null,\"constant\":false},{\"name\":"     \
    "\"add\",\"op\":\"Add\",\"class\":\"Add\","                                     \
    "\"quantized_inputs\":[],\"quantized_outputs\":[0],\"weight_quantized\":"       \
    "false,\"weight_axis\":null,"                                                   \
    "\"reason\":\"off by default\",\"rules\":[],\"weight_dtype\":null,"             \
    "\"weight_block\":null,\"input_dtype\":\"int8\",\"constant\":true}]"
#define WARNING_JSON                                               \
    "{\"code\":\"opset_per_tensor\",\"detail\":\"opset 12 has no " \
    "axis\",\"node\":null,\"rule\":null}"
#define SUMMARY_JSON(after, verdict)                                             \
    "{\"layers\":3,\"quantized_layers\":2,\"qdq_pairs\":3,\"size_before\":1000," \
    "\"size_after\":" after ",\"verdict\":" verdict "}"
/* The summary of a report, which also says what made the result. */
#define MADE_JSON(after, verdict, judged_by)                                      \
    "{\"layers\":3,\"quantized_layers\":2,\"qdq_pairs\":3,\"size_before\":1000,"  \
    "\"size_after\":" after ",\"verdict\":" verdict ",\"judged_by\":" judged_by   \
    ",\"made_by\":{\"engine\":\"1.2.3\",\"build\":\"ab\",\"runtime\":\"1.31.1\"," \
    "\"processor\":\"avx2\"}}"

static char *
encode_plan(void)
{
    return api_plan_encode(&plan, &model);
}

UNIT_TEST(test_plan)
{
    expect_json(encode_plan(), "{\"summary\":" SUMMARY_JSON(
                                   "null", "null") ",\"layers\":" LAYERS_JSON
                                                   ",\"warnings\":[" WARNING_JSON "]}");
}

static char *
encode_info(void)
{
    return api_model_info_encode(&model, &plan);
}

#define INFO_JSON(classes)                                                           \
    "{\"name\":\"graph\",\"producer\":\"pytorch\",\"ir_version\":8,\"opset\":13,"    \
    "\"size\":1000,\"nodes\":3,\"initializers\":2,\"inputs\":[{\"name\":\"input\","  \
    "\"dtype\":\"float32\",\"shape\":[\"batch\",1,null]}],\"outputs\":[{\"name\":"   \
    "\"out\xef\xbf\xbd\",\"dtype\":null,\"shape\":null}],\"ops\":[{\"op\":\"Conv\"," \
    "\"count\":2},{\"op\":\"com.x:Foo\",\"count\":1}],\"classes\":" classes "}"

UNIT_TEST(test_info)
{
    expect_json(encode_info(), INFO_JSON("{\"Conv\":{\"count\":2,\"quantized\":2},"
                                         "\"Add\":{\"count\":1,\"quantized\":0}}"));
    expect_json(api_model_info_encode(&model, NULL), INFO_JSON("null"));
}

static const int64_t shape[] = {256, 1, 32, 32};
static const struct qdq_array arrays[] = {{"input", "float32", 4, shape}};
static const struct qdq_dataset_info dataset = {4096, 256, 1, arrays, false, 0, NULL};

static char *
encode_dataset(void)
{
    return api_dataset_info_encode(&dataset);
}

UNIT_TEST(test_dataset)
{
    expect_json(encode_dataset(),
                "{\"samples\":256,\"inputs\":[{\"name\":\"input\",\"dtype\":"
                "\"float32\",\"shape\":[256,1,32,32]}]}");
}

/* --- the report ----------------------------------------------------------- */

static const struct qdq_tensor_report tensors[] = {
    {"input", -0.5, 1.0, "int8", (double)(1.0F / 127), 0, "minmax", 256, NULL, 0, 0},
};
static const float scales[] = {0.25F, 0.125F, 0.5F};
static const struct qdq_weight_report weights[] = {
    {"w0", "conv0", 0, "int8", "channel", 0, 3, scales, 0, 0, NULL},
    {"w1", "conv1", -1, "int8", "tensor", 0, 0, NULL, 0, 0, NULL},
};
static const struct qdq_slice_report slices[] = {
    {"boxes", 1, 0, 4, 30.5, 0.875, NULL},
    {"scores", 1, 4, 12, NAN, 0.125, "constant"},
};
static const struct qdq_output_report output_reports[] = {
    {"logits", 30.25, 0.999, 0.125, NAN, false, .n_slices = 2, .slices = slices,
     .samples = {32, 12.5, 20.25, 31, 12.5, 0.75}},
    {"same", INFINITY, 1, 0, 1, false, .rows = 0},
};
static const struct qdq_output_report deployed_reports[] = {
    {"logits", 12.5, 0.75, 2, NAN, false, .rows = 0}};
static const struct qdq_deployed deployed = {"A CPU", "onnxruntime",    "1.31.1",
                                             1,       deployed_reports, NULL};
static const struct qdq_layer_error layer_errors[] = {{"conv0", 41.5},
                                                      {"conv1", INFINITY}};

static const struct qdq_unjudged unjudged[] = {
    {true, "conv1", "it reads a text", false}};
static const struct qdq_gate_report gates[] = {
    {"log/its", "cosine", "min_cosine", false, true, 0.5, 0.75, NULL, true,
     QDQ_FIGURE_COSINE},
    {"log/its", "sqnr_db", "min_sqnr_db", false, true, 40, 30.25, NULL, false,
     QDQ_FIGURE_SQNR_DB},
    {"logits", "top1_agreement", "min_top1_agreement", false, false, 0.5, NAN, "why",
     false, QDQ_FIGURE_TOP1_AGREEMENT},
    {"logits", "max_abs_error", "max_abs_error", true, false, 0.0625, 0.125, NULL,
     false, QDQ_FIGURE_MAX_ABS_ERROR},
    {NULL, "size_ratio", "max_size_ratio", true, false, 0.25, 0.375, NULL, false,
     QDQ_FIGURE_SIZE_RATIO},
};
static const struct qdq_rule_report rule_reports[] = {{"C7", "it saturates", true}};
static const struct qdq_timing timings[] = {{"load", 0.25}, {"plan", 0.5}};

static const struct qdq_edge edge = {"conv0", "conv1", "t"};
static const char *const node_names[] = {"conv0", "conv1"};
static const struct qdq_graph_edge numbered = {0, 1, 0};

static struct qdq_report
make_report(const struct qdq_spec *spec)
{
    return (struct qdq_report){
        .made_by = {"1.2.3", "ab", "1.31.1", "avx2"},
        .model = &model,
        .model_id = "sha256:aa",
        .dataset_id = "sha256:bb",
        .calibration_samples = 256,
        .reused = 27,
        .spec = spec,
        .device = "cpu",
        .host = {"avx2", "as asked", "A CPU"},
        .rules = rule_reports,
        .n_rules = 1,
        .plan = &plan,
        .n_edges = 1,
        .edges = &edge,
        .graph = {2, 1, 1, node_names, &edge.tensor, &numbered},
        .qdq_pairs = 3,
        .size_before = 1000,
        .size_after = 400,
        .external_bytes = 123,
        .n_tensors = 1,
        .n_weights = 2,
        .n_outputs = 2,
        .n_timings = 2,
        .n_warnings = 2,
        .tensors = tensors,
        .weights = weights,
        .evaluated_samples = 128,
        .evaluated_of = 256,
        .evaluation_rule = "settled",
        .evaluation_is_settled = true,
        .outputs = output_reports,
        .deployed = &deployed,
        .layer_errors = layer_errors,
        .n_layer_errors = 2,
        .layer_samples = 16,
        .unjudged = unjudged,
        .n_unjudged = 1,
        .n_gates = 3,
        .gates = gates,
        .verdict = "poor",
        .timings = timings,
        .warnings = warnings,
    };
}

static char *
encode_report(void)
{
    struct qdq_spec spec;
    qdq_spec_init(&spec);
    struct qdq_report report = make_report(&spec);
    return api_report_encode(&report);
}

/* Covers all members except `spec` and `engine`, which have their own tests. */
UNIT_TEST(test_report)
{
    char *text = encode_report();
    json_t *json = json_loads(text, 0, NULL);
    free(text);
    ck_assert_str_eq(json_string_value(json_object_get(json, "engine")), qdq_version());
    ck_assert_int_eq(json_object_del(json, "engine"), 0);

    struct qdq_spec spec;
    qdq_spec_init(&spec);
    char *spec_text = api_spec_encode(&spec);
    expect_json(json_dumps(json_object_get(json, "spec"), 0), spec_text);
    free(spec_text);
    ck_assert_int_eq(json_object_del(json, "spec"), 0);

    expect_json(
        api_json_dump(json, 0),
        "{\"schema\":1,\"model\":{\"id\":\"sha256:aa\",\"name\":\"graph\",\"producer\":"
        "\"pytorch\",\"ir_version\":8,\"opset\":13,\"size\":1000,\"nodes\":3,"
        "\"initializers\":2},\"calibration\":{\"id\":\"sha256:bb\",\"samples\":256,"
        "\"inferences\":0,\"reused\":27},"
        "\"device\":\"cpu\",\"host\":{\"name\":\"avx2\",\"reason\":\"as asked\","
        "\"processor\":\"A CPU\"},\"rules\":[{\"id\":\"C7\",\"on\":true,\"reason\":"
        "\"it saturates\"}],\"summary\":" MADE_JSON(
            "400", "\"poor\"",
            "\"deployed\"") ",\"external_bytes\":123,\"layers\":" LAYERS_JSON
                            ",\"edges\":[[\"conv0\",\"conv1\",\"t\"]]"
                            ",\"graph\":{\"nodes\":[\"conv0\",\"conv1\"],\"tensors\":["
                            "\"t\"],"
                            "\"edges\":[[0,1,0]],\"constants\":[]}"
                            ",\"tensors\":[{\"name\":\"input\","
                            "\"min\":-0.5,\"max\":1.0,\"dtype\":\"int8\",\"scale\":"
                            "0.007874015718698502,\"zero_point\":0,\"method\":"
                            "\"minmax\","
                            "\"samples\":256}],"
                            "\"weights\":[{\"name\":\"w0\",\"layer\":\"conv0\","
                            "\"axis\":0,"
                            "\"dtype\":"
                            "\"int8\",\"granularity\":\"channel\",\"block\":null,"
                            "\"scales\":3,\"scale_min\":0.125,\"scale_max\":0.5,"
                            "\"channel_scales\":[0.25,0.125,0.5]},{"
                            "\"name\":"
                            "\"w1\",\"layer\":"
                            "\"conv1\","
                            "\"axis\":null,\"dtype\":\"int8\",\"granularity\":"
                            "\"tensor\","
                            "\"block\":null,\"scales\":0,\"scale_min\":null,"
                            "\"scale_max\":null,\"channel_scales\":null}],"
                            "\"float\":null,\"equalization\":null,\"smoothing\":null,"
                            "\"kv_"
                            "cache\":null,"
                            "\"evaluation\":{\"samples\":128,\"of\":256,\"rule\":"
                            "\"settled\",\"outputs\":[{\"name\":"
                            "\"logits\",\"sqnr_db\":30.25,\"cosine\":0.999,"
                            "\"max_abs_error\":0.125,\"top1_agreement\":null,"
                            "\"kl\":null,"
                            "\"nats_per_token\":null,"
                            "\"float_nats_per_token\":null,\"nonfinite\":0,\"slices\":["
                            "{"
                            "\"name\":\"boxes\",\"axis\":1,"
                            "\"begin\":0,"
                            "\"end\":4,\"sqnr_db\":30.5,\"share\":0.875},{\"name\":"
                            "\"scores\",\"axis\":1,\"begin\":4,\"end\":12,\"sqnr_db\":"
                            "null,"
                            "\"share\":0.125,\"left_out\":\"constant\"}],"
                            "\"samples\":{\"worst_db\":12.5,\"p5_db\":20.25,"
                            "\"median_db\":31.0,\"confidence\":{\"db\":12.5,\"level\":"
                            "0.75}"
                            "}},"
                            "{\"name\":\"same\",\"sqnr_db\":null,\"cosine\":1.0,\"max_"
                            "abs_"
                            "error\":0.0,\"top1_agreement\":1.0,\"kl\":null,"
                            "\"nats_per_token\":null,"
                            "\"float_nats_per_token\":null,\"nonfinite\":0,\"slices\":"
                            "[],\"samples\":"
                            "null}],\"deployed\":{\"processor\":\"A "
                            "CPU\",\"runtime\":{\"name\":\"onnxruntime\",\"version\":"
                            "\"1.31.1\"},\"outputs\":[{\"name\":\"logits\",\"sqnr_db\":"
                            "12."
                            "5,\"cosine\":0.75,\"max_abs_error\":2.0,\"top1_"
                            "agreement\":"
                            "null,\"kl\":null,"
                            "\"nats_per_token\":null,"
                            "\"float_nats_per_token\":null,\"nonfinite\":0,\"slices\":["
                            "],"
                            "\"samples\":null}]},"
                            "\"layers\":[{\"name\":\"conv0\","
                            "\"sqnr_db\":41.5},{\"name\":\"conv1\",\"sqnr_db\":null}],"
                            "\"layer_samples\":16,"
                            "\"not_judged\":[{\"kind\":\"layer\",\"name\":\"conv1\","
                            "\"reason\":\"it reads a text\"}],"
                            "\"missed\":[{\"output\":\"log/its\","
                            "\"gate\":\"min_sqnr_db\",\"bound\":40.0,\"value\":30.25},{"
                            "\"output\":\"logits\",\"gate\":\"min_top1_agreement\","
                            "\"bound\":0.5,\"value\":null}]},\"gates\":[{\"output\":"
                            "\"log/its\",\"name\":\"min_cosine\",\"wanted\":0.5,"
                            "\"measured\":0.75,\"met\":true},{\"output\":\"log/its\","
                            "\"name\":\"min_sqnr_db\",\"wanted\":40.0,\"measured\":30."
                            "25,"
                            "\"met\":false},{\"output\":\"logits\",\"name\":"
                            "\"min_top1_agreement\",\"wanted\":0.5,\"measured\":null,"
                            "\"met\":false}],\"refinement\":null,"
                            "\"sensitivity\":null,\"search\":null,\"recipe\":null,"
                            "\"frontier\":null,\"costs\":null,\"what_ifs\":0,"
                            "\"kernels\":"
                            "null,\"profile\":null,\"timings\":{"
                            "\"load\":0.25,"
                            "\"plan\":0.5,"
                            "\"total\":"
                            "0.75},\"stages\":[],\"warnings\":[" WARNING_JSON
                            ",{\"code\":\"dead_tensor\",\"detail\":"
                            "\"nobody reads "
                            "it\",\"node\":\"add\",\"rule\":\"T22\"}],\"deploy\":[]}");
}

static const uint64_t counts[] = {3, 0, 1};
static const struct qdq_histogram_report histograms[] = {
    {"in\"schema\":put", 0, 6, 3, counts, false, 0, 4.5, 0.25, 30.5},
    {"t", -3, 0, 3, counts, true, -1, 0, 0, NAN},
};

/* Histograms stand before the report, from which they are cut off as text. */
UNIT_TEST(test_histograms)
{
    struct qdq_spec spec;
    qdq_spec_init(&spec);
    struct qdq_report report = make_report(&spec);
    char *without = api_report_encode(&report);
    report.histograms = histograms;
    report.n_histograms = 2;
    char *with = api_report_encode(&report);
    ck_assert(!api_report_has_histograms(without, strlen(without)));
    ck_assert(!api_report_has_histograms("{", 1));
    ck_assert(api_report_has_histograms(with, strlen(with)));
    char *cut = api_report_without_histograms(with, strlen(with));
    ck_assert_str_eq(cut, without);
    free(cut);
    cut = api_report_without_histograms(without, strlen(without));
    ck_assert_str_eq(cut, without);
    free(cut);
    json_t *json = json_loads(with, 0, NULL);
    expect_json(
        api_json_dump(json_incref(json_object_get(json, "histograms")), 0),
        "[{\"tensor\":\"in\\\"schema\\\":put\",\"low\":0.0,\"high\":6.0,\"counts\":[3,"
        "0,1],\"magnitudes\":false,\"range\":[0.0,4.5],\"clipped\":0.25,\"sqnr_db\":"
        "30.5},{\"tensor\":\"t\",\"low\":-3.0,\"high\":0.0,\"counts\":[3,0,1],"
        "\"magnitudes\":true,\"range\":[-1.0,0.0],\"clipped\":0.0,\"sqnr_db\":null}]");
    json_object_set_new(json, "histograms", json_null());
    char *wanted = api_json_dump(json, 0);
    expect_json(api_report_null_histograms(without, strlen(without)), wanted);
    free(wanted);
    free(with);
    free(without);
}

static const struct qdq_sensitivity costs[] = {
    {"conv1", 21.5, 0.25},
    {"conv0", INFINITY, -0.125},
};
static const struct qdq_search_step steps[] = {
    {0, NULL, 24.5, 0.75},
    {1, "conv1", 31, NAN},
};
static const char *const left_in_float[] = {"conv1"};
static const struct qdq_recipe_step recipe_steps[] = {
    {"start", 0, NULL, 0, NULL, -INFINITY, NAN, NAN, 0, true, false, NAN, NAN},
    {"group", 0, NULL, 1, left_in_float, 27.5, 0.25, NAN, 4, true, true, 0.25, 0.5},
};
static const struct qdq_recipe_report tried = {2, recipe_steps};
static const struct qdq_search_report found = {.samples = 128,
                                               .met = true,
                                               .deployed_sqnr_db = NAN,
                                               .task_drop = NAN,
                                               .n_layers = 1,
                                               .n_steps = 2,
                                               .layers = left_in_float,
                                               .steps = steps};
static struct qdq_frontier_point points[] = {{27.5, 0.5, 0.25, NULL},
                                             {INFINITY, 1, 1, NULL}};
static const struct qdq_frontier frontier = {2, points};
static const struct qdq_refinement refinement = {"mse", 64, 3, 24.5, 25};

static void
expect_member(const char *report, const char *name, const char *value)
{
    json_t *json = json_loads(report, 0, NULL);
    expect_json(json_dumps(json_object_get(json, name), JSON_ENCODE_ANY), value);
    json_decref(json);
}

UNIT_TEST(test_what_ifs)
{
    struct qdq_spec spec;
    qdq_spec_init(&spec);
    struct qdq_report report = make_report(&spec);
    report.sensitivity = costs;
    report.n_sensitivity = 2;
    report.search = &found;
    report.recipe = &tried;
    points[0].spec = points[1].spec = &spec;
    report.frontier = &frontier;
    report.refinement = &refinement;
    report.what_ifs = 512;
    char *text = api_report_encode(&report);
    expect_member(text, "what_ifs", "512");
    expect_member(text, "sensitivity",
                  "[{\"name\":\"conv1\",\"sqnr_db_alone\":21.5,\"gain_db\":0.25},"
                  "{\"name\":\"conv0\",\"sqnr_db_alone\":null,\"gain_db\":-0.125}]");
    expect_member(
        text, "recipe",
        "[{\"step\":\"start\",\"spec\":{},\"sqnr_db\":null,\"size_ratio\":null,"
        "\"latency_ratio\":null,\"samples\":0,\"kept\":true,"
        "\"estimated\":false,\"task_drop\":null,"
        "\"predicted_latency_ratio\":null},{\"step\":\"group\","
        "\"spec\":{\"layers\":[{\"name\":[\"conv1\"],\"quantize_input\":"
        "false,\"quantize_weight\":false}]},\"sqnr_db\":27.5,\"size_ratio\":0.25,"
        "\"latency_ratio\":null,\"samples\":4,\"kept\":true,\"estimated\":true,"
        "\"task_drop\":0.25,\"predicted_latency_ratio\":0.5}]");
    json_t *json = json_loads(text, 0, NULL);
    json_t *first = json_array_get(json_object_get(json, "frontier"), 0);
    json_t *last = json_array_get(json_object_get(json, "frontier"), 1);
    ck_assert_double_eq(json_number_value(json_object_get(first, "sqnr_db")), 27.5);
    ck_assert_double_eq(json_number_value(json_object_get(first, "latency_ratio")), .5);
    ck_assert_double_eq(json_number_value(json_object_get(first, "size_ratio")), .25);
    ck_assert(json_is_object(json_object_get(first, "spec")));
    ck_assert(json_is_null(json_object_get(last, "sqnr_db")));
    json_decref(json);
    expect_member(text, "search",
                  "{\"samples\":128,\"met\":true,\"deployed\":null,"
                  "\"task_drop\":null,\"float_layers\":[\"conv1\"],"
                  "\"curve\":[{\"float_layers\":0,\"layer\":null,\"sqnr_db\":24.5,"
                  "\"top1_agreement\":0.75},{\"float_layers\":1,\"layer\":\"conv1\","
                  "\"sqnr_db\":31.0,\"top1_agreement\":null}]}");
    expect_member(text, "refinement",
                  "{\"start\":\"mse\",\"samples\":64,\"adjusted\":3,"
                  "\"sqnr_db_before\":24.5,\"sqnr_db_after\":25.0}");
    free(text);
}

static const struct qdq_equalization equalization[] = {
    {"conv0", "conv1", 16, "equalized"},
    {"conv1", NULL, 0, "nothing follows"},
};

UNIT_TEST(test_equalization)
{
    struct qdq_spec spec;
    qdq_spec_init(&spec);
    spec.equalize = true;
    struct qdq_report report = make_report(&spec);
    report.equalization = equalization;
    report.n_equalization = 2;
    char *text = api_report_encode(&report);
    json_t *json = json_loads(text, 0, NULL);
    expect_json(json_dumps(json_object_get(json, "equalization"), 0),
                "[{\"first\":\"conv0\",\"second\":\"conv1\",\"channels\":16,"
                "\"reason\":\"equalized\"},{\"first\":\"conv1\",\"second\":null,"
                "\"channels\":0,\"reason\":\"nothing follows\"}]");
    json_decref(json);
    free(text);
}

static const struct qdq_kept_node kept[] = {
    {"square", "its results grow beyond the type's range"},
};

UNIT_TEST(test_float)
{
    struct qdq_spec spec;
    qdq_spec_init(&spec);
    struct qdq_report report = make_report(&spec);
    const struct qdq_float_report floats = {"float16", 12, 1, kept};
    report.floats = &floats;
    char *text = api_report_encode(&report);
    json_t *json = json_loads(text, 0, NULL);
    expect_json(json_dumps(json_object_get(json, "float"), 0),
                "{\"type\":\"float16\",\"nodes\":12,\"kept\":[{\"name\":\"square\","
                "\"reason\":\"its results grow beyond the type's range\"}]}");
    json_decref(json);
    free(text);
}

/* Without data there is neither calibration nor evaluation. */
UNIT_TEST(test_report_without_data)
{
    struct qdq_spec spec;
    qdq_spec_init(&spec);
    struct qdq_report report = make_report(&spec);
    report.model_id = report.dataset_id = NULL;
    report.calibration_samples = report.evaluated_samples = 0;
    report.n_outputs = 0;
    char *text = api_report_encode(&report);
    json_t *json = json_loads(text, 0, NULL);
    ck_assert(json_is_null(json_object_get(json, "calibration")));
    ck_assert(json_is_null(json_object_get(json, "evaluation")));
    ck_assert(json_is_null(json_object_get(json_object_get(json, "model"), "id")));
    json_decref(json);
    free(text);
    /* A job's summary has the gates, too. */
    json = json_loads(text = api_summary_encode(&report), 0, NULL);
    ck_assert_uint_eq(json_array_size(json_object_get(json, "gates")), report.n_gates);
    json_object_del(json, "gates");
    expect_json(json_dumps(json, JSON_COMPACT),
                MADE_JSON("400", "\"poor\"", "\"deployed\""));
    json_decref(json);
    free(text);
    report.deployed = NULL;
    json = json_loads(text = api_summary_encode(&report), 0, NULL);
    ck_assert_str_eq(json_string_value(json_object_get(json, "judged_by")), "literal");
    json_decref(json);
    free(text);
}

static const struct {
    const char *summary, *verdict;
} summaries[] = {
    {SUMMARY_JSON("400", "\"good\""), "good"},
    {SUMMARY_JSON("400", "\"fair\""), "fair"},
    {SUMMARY_JSON("400", "\"poor\""), "poor"},
    {SUMMARY_JSON("400", "null"), NULL},
    {SUMMARY_JSON("400", "\"line\\r\\nbreak\""), NULL},
    {"{\"layers\":3}", NULL},
    {"7", NULL},
    {"", NULL},
    {NULL, NULL},
};

UNIT_ROWS(test_verdict, summaries)
{
    const char *verdict = api_summary_verdict(summaries[_i].summary);
    ck_assert_pstr_eq(verdict, summaries[_i].verdict);
}

static const struct {
    size_t first, n;
    const char *where, *detail;
} rejections[] = {
    {0, 3, "/accept/outputs/log~1its/min_sqnr_db",
     "output 'log/its' has sqnr_db 30.25, and at least 40 is asked for; 1 more "
     "missed"},
    {2, 1, "/accept/min_top1_agreement",
     "output 'logits' has no top1_agreement (why), and at least 0.5 is asked for"},
    {3, 1, "/accept/max_abs_error",
     "output 'logits' has max_abs_error 0.125, and at most 0.0625 is asked for"},
    {4, 1, "/accept/max_size_ratio",
     "the model has size_ratio 0.375, and at most 0.25 is asked for"},
};

UNIT_ROWS(test_accepted, rejections)
{
    struct qdq_spec spec;
    qdq_spec_init(&spec);
    struct qdq_report report = make_report(&spec);
    struct api_problem problem = {0};
    report.n_gates = 1;
    ck_assert(api_report_accepted(&report, &problem) && !problem.set);
    report.gates = gates + rejections[_i].first;
    report.n_gates = rejections[_i].n;
    ck_assert(!api_report_accepted(&report, &problem));
    ck_assert_int_eq(problem.code, API_ACCURACY);
    ck_assert_int_eq(problem.kind, QDQ_AT_POINTER);
    ck_assert_str_eq(problem.where, rejections[_i].where);
    ck_assert_str_eq(problem.detail, rejections[_i].detail);
    ck_assert_str_eq(problem.model, ""); /* only the daemon knows the model's id */
}

/* A range copied from the report is valid in a spec. */
UNIT_TEST(test_tensors_are_ranges)
{
    char *text = encode_report();
    json_t *report = json_loads(text, 0, NULL);
    char *spec_text = api_json_dump(json_pack("{s:{s:O}}", "calibration", "ranges",
                                              json_object_get(report, "tensors")),
                                    0);
    struct api_spec *spec = NULL;
    struct api_problem problem = {0};
    ck_assert_msg(api_spec_decode(spec_text, strlen(spec_text), &spec, &problem), "%s",
                  problem.detail);
    const struct qdq_calibration_spec *c = &api_spec_get(spec)->calibration;
    ck_assert_uint_eq(c->n_ranges, 1);
    ck_assert_str_eq(c->ranges[0].tensor, tensors[0].name);
    ck_assert(c->ranges[0].min == tensors[0].min && c->ranges[0].max == tensors[0].max);
    api_spec_free(&spec);
    free(spec_text);
    free(text);
    json_decref(report);
}

static const unit_encode_fn encoders[] = {
    encode_plan,
    encode_info,
    encode_dataset,
    encode_report,
};

UNIT_ROWS(test_no_memory, encoders)
{
    expect_survives_no_memory(encoders[_i]);
}

UNIT_SUITE("api/report")
