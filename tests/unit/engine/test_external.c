/* SPDX-License-Identifier: Apache-2.0 */
/* Reading external data: which file and which bytes a tensor gets, and what is
   refused. */
#include "config.h"

#include "builder.h"
#include "failing.h"
#include "run/session/lift_weights.h"

enum { WEIGHT = 4 * 3 * 3 * 3, BYTES = WEIGHT * 4, FILE_BYTES = 8192 };

/* Returns a file whose float number i is i + first. */
static int
floats_file(float first)
{
    float data[FILE_BYTES / sizeof(float)];
    for (size_t i = 0; i < sizeof data / sizeof *data; i++)
        data[i] = (float)i + first;
    return memory_file(data, sizeof data);
}

/* Opens the model with files of those paths (NULL: no more). File i begins with the
   number 1000 * (i + 1). */
static enum qdq_code
open_with(const struct builder *b, const char *const *paths, struct qdq_model **ret,
          struct qdq_error *err)
{
    struct qdq_external files[4];
    size_t n = 0;
    for (; n < 4 && paths[n]; n++)
        files[n] =
            (struct qdq_external){paths[n], floats_file(1000.0f * (float)(n + 1))};
    int fd = builder_file(b);
    enum qdq_code code = qdq_model_open_files(fd, files, n, ret, err);
    for (size_t i = 0; i < n; i++)
        close(files[i].fd);
    close(fd);
    return code;
}

static void
check_first(const struct qdq_model *m, const char *name, float first)
{
    const struct qdqi_tensor *t = qdqi_map_get(m->graph.tensors, name);
    struct qdqi_constant c;
    struct qdq_error err = {0};
    float value;
    ck_assert_ptr_nonnull(t);
    ck_assert_msg(!qdqi_constant_read(m, t, &c, &err), "%s: %s", name, err.text);
    memcpy(&value, c.bytes, sizeof value);
    ck_assert_float_eq(value, first);
}

/* --- names ---------------------------------------------------------------- */

/* Two weights with these locations, and files of these paths: the number (from 1) of
   the file that each weight gets, or an error. */
static const struct {
    const char *w, *w2;
    const char *paths[4];
    int file, file2;
    enum qdq_code code;
    const char *text;
} names[] = {
    {"a.bin", "a.bin", {"a.bin"}, 1, 1, QDQ_OK, ""},
    {"a.bin", "b.bin", {"a.bin", "b.bin"}, 1, 2, QDQ_OK, ""},
    {"a.bin", "b.bin", {"x", "b.bin", "a.bin"}, 3, 2, QDQ_OK, ""},
    {"./a.bin", "a.bin", {"a.bin"}, 1, 1, QDQ_OK, ""},
    {"d//a.bin", "d/./a.bin", {"d/a.bin"}, 1, 1, QDQ_OK, ""},
    {"d/a.bin", "d/a.bin", {"a.bin"}, 1, 1, QDQ_OK, ""},
    {"a.bin", "a.bin", {"/home/u/a.bin"}, 1, 1, QDQ_OK, ""},
    {"a.bin", "a.bin", {"C:\\models\\a.bin"}, 1, 1, QDQ_OK, ""},
    {"d/a.bin", "e/a.bin", {"e/a.bin", "d/a.bin"}, 2, 1, QDQ_OK, ""},
    {"d/a.bin", "e/a.bin", {"d/a.bin", "a.bin"}, 1, 2, QDQ_OK, ""},
    {"a..b", "..a", {"a..b", "..a"}, 1, 2, QDQ_OK, ""},
    {"a.bin", "b.bin", {"a.bin"}, 0, 0, QDQ_EXTERNAL_MISSING, "'b.bin'"},
    {"a.bin", "a.bin", {NULL}, 0, 0, QDQ_EXTERNAL_MISSING, "'a.bin'"},
    {"d/a.bin", "e/a.bin", {"d/a.bin"}, 0, 0, QDQ_EXTERNAL_MISSING, "'e/a.bin'"},
    {"a.bin", "a.bin", {"A.bin"}, 0, 0, QDQ_EXTERNAL_MISSING, "'a.bin'"},
    {"d/a.bin", "e/a.bin", {"a.bin"}, 0, 0, QDQ_EXTERNAL_AMBIGUOUS, "'d/a.bin'"},
    {"a.bin", "a.bin", {"d/a.bin", "e/a.bin"}, 0, 0, QDQ_EXTERNAL_AMBIGUOUS, "several"},
    {"a.bin", "a.bin", {"a.bin", "./a.bin"}, 0, 0, QDQ_EXTERNAL_AMBIGUOUS, "two files"},
    {"/etc/passwd", "a", {"passwd", "a"}, 0, 0, QDQ_INVALID_MODEL, "absolute"},
    {"../a.bin", "a", {"../a.bin", "a"}, 0, 0, QDQ_INVALID_MODEL, "'..'"},
    {"d/../../a", "a", {"a"}, 0, 0, QDQ_INVALID_MODEL, "'..'"},
    {"d/..", "a", {"a"}, 0, 0, QDQ_INVALID_MODEL, "'..'"},
    {"..\\a", "a", {"a"}, 0, 0, QDQ_INVALID_MODEL, "backslash"},
    {"", "a", {"a", ""}, 0, 0, QDQ_INVALID_MODEL, "no file"},
    {"d/", "a", {"a", "d/"}, 0, 0, QDQ_INVALID_MODEL, "no file"},
    {".", "a", {"a", "."}, 0, 0, QDQ_INVALID_MODEL, "no file"},
};

UNIT_ROWS(locations_are_matched_with_files, names)
{
    struct builder b;
    struct qdq_model *m = NULL;
    struct qdq_error err = {0};
    builder_two_convs(&b, 13);
    builder_weight(&b, "k", 1, (const int64_t[]){64});
    builder_external(&b, b.weights[0], names[_i].w, NULL, NULL);
    builder_external(&b, b.weights[3], names[_i].w2, NULL, NULL);
    enum qdq_code code = open_with(&b, names[_i].paths, &m, &err);
    ck_assert_msg(code == names[_i].code, "row %d: %s", _i, err.text);
    ck_assert_msg(strstr(err.text, names[_i].text) != NULL, "row %d: %s", _i, err.text);
    if (code == QDQ_OK) {
        check_first(m, "w", 1000.0f * (float)names[_i].file);
        check_first(m, "k", 1000.0f * (float)names[_i].file2);
        ck_assert_ptr_nonnull(qdq_model_location(m, (size_t)names[_i].file - 1));
        bool two = names[_i].file != names[_i].file2;
        ck_assert_uint_eq(qdq_model_info(m)->external_size, FILE_BYTES * (1 + two));
    }
    builder_close(&b, &m);
}

UNIT_TEST(files_that_no_tensor_names_are_not_opened)
{
    struct builder b;
    struct qdq_model *m = NULL;
    struct qdq_error err = {0};
    builder_two_convs(&b, 13);
    builder_external(&b, b.weights[0], "./a.bin", NULL, NULL);
    static const char *const paths[] = {"b.bin", "a.bin", NULL};
    ck_assert_int_eq(open_with(&b, paths, &m, &err), QDQ_OK);
    ck_assert_ptr_null(qdq_model_location(m, 0));
    ck_assert_str_eq(qdq_model_location(m, 1), "./a.bin");
    ck_assert_ptr_null(qdq_model_location(m, 2));
    ck_assert_ptr_null(m->files[1].map);
    builder_close(&b, &m);
}

UNIT_TEST(locations_are_listed_once)
{
    struct builder b;
    struct qdq_locations *locations = NULL;
    struct qdq_error err = {0};
    builder_two_convs(&b, 13);
    builder_external(&b, b.weights[2], "./a.bin", NULL, NULL);
    builder_external(&b, b.weights[1], "a.bin", NULL, NULL);
    builder_external(&b, b.weights[0], "d/b.bin", "7", "99");
    int fd = builder_file(&b);
    ck_assert_int_eq(qdq_model_locations(fd, &locations, &err), QDQ_OK);
    ck_assert_uint_eq(locations->n, 2);
    ck_assert_str_eq(locations->names[0], "d/b.bin");
    ck_assert_str_eq(locations->names[1], "a.bin");
    qdq_locations_free(&locations);
    ck_assert_ptr_null(locations);
    close(fd);
    builder_fini(&b);
}

UNIT_TEST(a_nul_in_a_location_is_refused)
{
    struct builder b;
    struct qdq_model *m = NULL;
    struct qdq_error err = {0};
    builder_two_convs(&b, 13);
    builder_external(&b, b.weights[0], "a.binX../b", NULL, NULL);
    size_t size = onnx__model_proto__get_packed_size(&b.model);
    uint8_t *data = malloc(size);
    onnx__model_proto__pack(&b.model, data);
    uint8_t *x = memmem(data, size, "a.binX", 6);
    ck_assert_ptr_nonnull(x);
    x[5] = '\0';
    int fd = memory_file(data, size), a = floats_file(0);
    const struct qdq_external file = {"a.bin", a};
    ck_assert_int_eq(qdq_model_open_files(fd, &file, 1, &m, &err), QDQ_INVALID_MODEL);
    ck_assert_ptr_nonnull(strstr(err.text, "NUL"));
    ck_assert_int_eq(err.kind, QDQ_AT_OFFSET);
    close(fd);
    close(a);
    free(data);
    builder_fini(&b);
}

/* --- bounds --------------------------------------------------------------- */

/* The weight's shape needs BYTES; the file has FILE_BYTES. */
static const struct {
    const char *offset, *length;
    float first; /* 0: an error */
    const char *text;
} bounds[] = {
    {NULL, NULL, 1000, ""},
    {"0", "0", 1000, ""},
    {"4", NULL, 1001, ""},
    {"4", "432", 1001, ""},
    {"7760", "432", 1000 + 7760 / 4, ""},
    {"7760", NULL, 1000 + 7760 / 4, ""},
    {"7761", NULL, 0, "432 bytes from byte 7761 of 'a.bin', which has 431"},
    {"8192", NULL, 0, "which has 0"},
    {"9000", "432", 0, "which has 0"},
    {"18446744073709551615", "432", 0, "which has 0"},
    {"18446744073709551616", "432", 0, "offset '18446744073709551616'"},
    {"0", "18446744073709551615", 0, "has 18446744073709551615 bytes of data"},
    {"0", "99999999999999999999", 0, "length '99999999999999999999'"},
    {"0", "431", 0, "has 431 bytes of data in 'a.bin', its shape asks for 432"},
    {"0", "433", 0, "has 433 bytes of data"},
    {"-1", NULL, 0, "offset '-1'"},
    {"0x10", NULL, 0, "offset '0x10'"},
    {" 4", NULL, 0, "offset ' 4'"},
    {"", NULL, 0, "offset ''"},
    {"0", "1e3", 0, "length '1e3'"},
};

UNIT_ROWS(data_is_within_its_file, bounds)
{
    struct builder b;
    struct qdq_model *m = NULL;
    struct qdq_error err = {0};
    builder_two_convs(&b, 13);
    builder_external(&b, b.weights[0], "a.bin", bounds[_i].offset, bounds[_i].length);
    static const char *const paths[] = {"a.bin", NULL};
    enum qdq_code code = open_with(&b, paths, &m, &err);
    ck_assert_msg(code == (bounds[_i].first > 0 ? QDQ_OK : QDQ_INVALID_MODEL),
                  "row %d: %s", _i, err.text);
    ck_assert_msg(strstr(err.text, bounds[_i].text) != NULL, "row %d: %s", _i,
                  err.text);
    if (code)
        ck_assert_str_eq(err.where, "w");
    else
        check_first(m, "w", bounds[_i].first);
    builder_close(&b, &m);
}

/* Types, numbers of elements, and the bytes that these need in a file. */
static const struct {
    int32_t dtype;
    int64_t dims[2];
    const char *length;
    bool fits;
} shapes[] = {
    {QDQI_INT64, {32, 32}, NULL, true},
    {QDQI_INT64, {32, 33}, NULL, false},
    {QDQI_BOOL, {8, 1024}, "8192", true},
    {QDQI_INT4, {3, 101}, "152", true},
    {QDQI_INT4, {3, 101}, "151", false},
    {QDQI_FLOAT4E2M1, {128, 128}, NULL, true},
    {QDQI_FLOAT4E2M1, {128, 129}, NULL, false},
    {QDQI_FLOAT32, {0, 1000000}, NULL, true},
    {QDQI_FLOAT32, {-1, 4}, NULL, false},
    {QDQI_FLOAT32, {INT64_MAX, INT64_MAX}, NULL, false},
    {QDQI_FLOAT32, {INT64_MAX, 1}, NULL, false},
    {QDQI_COMPLEX128, {1LL << 31, 1LL << 30}, NULL, false},
    {QDQI_STRING, {2, 2}, NULL, false},
    /* of a later ONNX version: the length in the file counts */
    {999, {2, 2}, "100", true},
    {999, {2, 2}, "8193", false},
};

UNIT_ROWS(sizes_follow_type_and_shape, shapes)
{
    struct builder b;
    struct qdq_model *m = NULL;
    struct qdq_error err = {0};
    builder_two_convs(&b, 13);
    Onnx__TensorProto *t = builder_weight(&b, "k", 2, (const int64_t[]){1, 1});
    memcpy(t->dims, shapes[_i].dims, sizeof shapes[_i].dims);
    t->data_type = shapes[_i].dtype;
    builder_external(&b, t, "a.bin", NULL, shapes[_i].length);
    static const char *const paths[] = {"a.bin", NULL};
    enum qdq_code code = open_with(&b, paths, &m, &err);
    ck_assert_msg(code == (shapes[_i].fits ? QDQ_OK : QDQ_INVALID_MODEL), "row %d: %s",
                  _i, err.text);
    builder_close(&b, &m);
}

UNIT_TEST(data_within_and_without_is_refused)
{
    struct builder b;
    struct qdq_model *m = NULL;
    struct qdq_error err = {0};
    builder_two_convs(&b, 13);
    builder_external(&b, b.weights[0], "a.bin", NULL, NULL);
    b.weights[0]->has_raw_data = 1;
    static const char *const paths[] = {"a.bin", NULL};
    ck_assert_int_eq(open_with(&b, paths, &m, &err), QDQ_INVALID_MODEL);
    ck_assert_ptr_nonnull(strstr(err.text, "outside"));
    builder_fini(&b);
}

UNIT_TEST(only_regular_files_are_accepted)
{
    struct builder b;
    struct qdq_model *m = NULL;
    struct qdq_error err = {0};
    int ends[2];
    builder_two_convs(&b, 13);
    builder_external(&b, b.weights[0], "a.bin", NULL, NULL);
    ck_assert_int_eq(pipe(ends), 0);
    const struct qdq_external file = {"a.bin", ends[0]};
    int fd = builder_file(&b);
    ck_assert_int_eq(qdq_model_open_files(fd, &file, 1, &m, &err), QDQ_INVALID_MODEL);
    ck_assert_ptr_nonnull(strstr(err.text, "'a.bin' is not a regular file"));
    close(fd);
    close(ends[0]);
    close(ends[1]);
    builder_fini(&b);
}

/* --- sharing -------------------------------------------------------------- */

UNIT_TEST(the_same_bytes_are_one_bulk)
{
    struct builder b;
    struct qdq_model *m = NULL;
    struct qdq_error err = {0};
    builder_two_convs(&b, 13);
    for (int i = 0; i < 3; i++) {
        static const char *const offsets[] = {"400", "400", "404"};
        Onnx__TensorProto *t = builder_weight(&b, (const char *[]){"k", "l", "m"}[i], 1,
                                              (const int64_t[]){100});
        builder_external(&b, t, "a.bin", offsets[i], NULL);
    }
    static const char *const paths[] = {"a.bin", NULL};
    ck_assert_int_eq(open_with(&b, paths, &m, &err), QDQ_OK);
    /* The payloads are w of the model itself and two of the file; bias and w2 are
       too small. */
    ck_assert_uint_eq(m->bulks.n, 3);
    check_first(m, "k", 1100);
    check_first(m, "l", 1100);
    check_first(m, "m", 1101);
    builder_close(&b, &m);
}

UNIT_TEST(a_file_read_too_often_is_refused)
{
    struct builder b;
    struct qdq_model *m = NULL;
    struct qdq_error err = {0};
    builder_two_convs(&b, 13);
    for (int i = 0; i < 5; i++) {
        char name[2] = {(char)('k' + i), 0}, offset[2] = {(char)('0' + i), 0};
        Onnx__TensorProto *t = builder_weight(&b, name, 1, (const int64_t[]){2000});
        builder_external(&b, t, "a.bin", offset, NULL);
    }
    static const char *const paths[] = {"a.bin", NULL};
    ck_assert_int_eq(open_with(&b, paths, &m, &err), QDQ_LIMIT_EXCEEDED);
    builder_fini(&b);
}

/* --- places --------------------------------------------------------------- */

/* Builds x -> If(cond) -> y with a body that has an initializer and a Constant. */
UNIT_TEST(every_place_is_resolved)
{
    struct builder b;
    struct qdq_model *m = NULL;
    struct qdq_error err = {0};
    builder_two_convs(&b, 13);
    Onnx__TensorProto *inner = builder_weight(&b, "inner", 1, (const int64_t[]){64});
    Onnx__TensorProto *value = builder_weight(&b, "v", 1, (const int64_t[]){64});
    b.graph.n_initializer -= 2;
    value->name = NULL;
    builder_external(&b, inner, "a.bin", "4", NULL);
    builder_external(&b, value, "a.bin", "8", NULL);
    Onnx__NodeProto *constant = builder_node(&b, "Constant", "", "", "held");
    builder_tensor(&b, constant, "value", value);
    Onnx__GraphProto body;
    onnx__graph_proto__init(&body);
    body.initializer = &inner;
    body.n_initializer = 1;
    builder_weight(&b, "c", 1, (const int64_t[]){1});
    builder_attribute(&b, builder_node(&b, "If", "if", "c", "z"), "then_branch")->g =
        &body;
    static const char *const paths[] = {"a.bin", NULL};
    ck_assert_int_eq(open_with(&b, paths, &m, &err), QDQ_OK);
    check_first(m, "held", 1002);
    const Onnx__TensorProto *t =
        m->proto->graph->node[4]->attribute[0]->g->initializer[0];
    struct qdqi_constant c;
    float first;
    ck_assert_int_eq(t->data_location, 0);
    ck_assert_int_eq(qdqi_stored_read(m, t, "inner", &c, &err), QDQ_OK);
    memcpy(&first, c.bytes, sizeof first);
    ck_assert_float_eq(first, 1001);
    qdq_model_free(&m);
    err = (struct qdq_error){0};
    ck_assert_int_eq(builder_open(&b, &m, &err), QDQ_EXTERNAL_MISSING);
    ck_assert_str_eq(err.where, "held");
    builder_fini(&b);
}

/* A branch, and a Constant, each have a weight of 1 MiB. */
UNIT_TEST(large_weights_are_never_inline_when_run)
{
    struct builder b;
    struct qdq_model *m = NULL;
    struct qdq_error err = {0};
    enum { N = 1 << 18 };
    builder_two_convs(&b, 13);
    builder_node(&b, "Relu", "", "held", "u");
    Onnx__TensorProto *inner = builder_weight(&b, "inner", 1, (const int64_t[]){N});
    Onnx__TensorProto *held = builder_weight(&b, "", 1, (const int64_t[]){N});
    b.graph.n_initializer -= 2;
    builder_tensor(&b, builder_node(&b, "Constant", "", "", "held"), "value", held);
    Onnx__GraphProto body;
    Onnx__ValueInfoProto *output = builder_value(&b, "v", QDQI_FLOAT32);
    Onnx__NodeProto *node = builder_node(&b, "Relu", "", "inner", "v");
    b.graph.n_node--;
    onnx__graph_proto__init(&body);
    body.initializer = &inner;
    body.n_initializer = 1;
    body.node = &node;
    body.n_node = 1;
    body.output = &output;
    body.n_output = 1;
    builder_weight(&b, "c", 1, (const int64_t[]){1});
    builder_attribute(&b, builder_node(&b, "If", "if", "c", "z"), "then_branch")->g =
        &body;
    ck_assert_msg(builder_open(&b, &m, &err) == QDQ_OK, "%s", err.text);
    const struct qdqi_runnable model = {
        .proto = m->proto, .bulks = m->bulks, .files = m->files, .n_files = m->n_files};
    struct qdqi_runnable lifted = model;
    struct qdqi_arena *arena = qdqi_arena_new();
    struct qdqi_bytes bytes = {0};
    ck_assert_int_eq(qdqi_lift_weights(&model, arena, &lifted.proto, &err), QDQ_OK);
    ck_assert_uint_eq(lifted.proto->graph->n_initializer,
                      m->proto->graph->n_initializer + 2);
    ck_assert_uint_eq(lifted.proto->graph->n_node, m->proto->graph->n_node - 1);
    ck_assert_int_eq(qdqi_model_to_memory(&lifted, &bytes, &err), QDQ_OK);
    ck_assert_uint_lt(bytes.size, 4096);
    free(bytes.data);
    qdqi_arena_free(&arena);
    builder_close(&b, &m);
}

UNIT_TEST(every_allocation_may_fail)
{
    struct builder b;
    builder_two_convs(&b, 13);
    builder_external(&b, b.weights[0], "d/a.bin", "4", NULL);
    builder_external(&b, b.weights[1], "b.bin", NULL, NULL);
    struct qdq_external files[] = {{"a.bin", floats_file(0)},
                                   {"b.bin", floats_file(0)}};
    int fd = builder_file(&b);
    enum qdq_code code = QDQ_NO_MEMORY;
    for (long n = 1; code; n++) {
        struct qdq_model *m = NULL;
        struct qdq_error err = {0};
        ck_assert_int_lt(n, 100000);
        fail_at = n;
        code = qdq_model_open_files(fd, files, 2, &m, &err);
        fail_at = 0;
        ck_assert(code == QDQ_OK || code == QDQ_NO_MEMORY);
        qdq_model_free(&m);
    }
    close(fd);
    close(files[0].fd);
    close(files[1].fd);
    builder_fini(&b);
}

#define ROWS(table) (int)(sizeof(table) / sizeof *(table))

UNIT_SUITE("external")
