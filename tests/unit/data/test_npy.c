/* SPDX-License-Identifier: Apache-2.0 */
/* .npy files: accepted headers, refused headers, and byte orders. */
#include "config.h"

#include "files/data/reader.h"
#include "data_files.h"

/* Headers of one array of six uint8 elements; it opens when the error is NULL. */
static const struct {
    int version;
    const char *dict;
    const char *error; /* part of the error's text */
} headers[] = {
    {1, "{'descr': '|u1', 'fortran_order': False, 'shape': (2, 3), }  \n", NULL},
    {2, "{'descr': '|u1', 'fortran_order': False, 'shape': (2, 3), }\n", NULL},
    {3, "{'descr': '|u1', 'fortran_order': False, 'shape': (2, 3), }\n", NULL},
    {1, "{'shape':(2,3),'fortran_order':True,'descr':\"<u1\"}", NULL},
    {1, "{ 'shape' : ( 2L , 3L ) , 'fortran_order' : False , 'descr' : '|u1' }", NULL},
    {1, "{'descr': '|u1', 'fortran_order': False, 'shape': (6,)}", NULL},
    {1, "{'descr': '|b1', 'fortran_order': False, 'shape': (6,)}", NULL},
    {1, "{'descr': '<f2', 'fortran_order': False, 'shape': (3,)}", NULL},
    {4, "{'descr': '|u1', 'fortran_order': False, 'shape': (6,)}", "version 4.0"},
    {0, "{'descr': '|u1', 'fortran_order': False, 'shape': (6,)}", "version 0.0"},
    {1, "", "at byte 10: expected '{'"},
    {1, "{}", "lacks 'descr'"},
    {1, "{'descr': '|u1', 'shape': (6,)}", "lacks 'fortran_order'"},
    {1, "{'descr': '|u1', 'fortran_order': False}", "lacks 'shape'"},
    {1, "{'descr': '<V2', 'fortran_order': False, 'shape': (3,)}",
     "bfloat16 and 8-bit floats (write float32), dtype '<V2'"},
    {1, "{'descr': '<f1', 'fortran_order': False, 'shape': (6,)}",
     "8-bit floats, of which numpy has none (write float32), dtype '<f1'"},
    {1, "{'descr': '<f16', 'fortran_order': False, 'shape': (6,)}",
     ": dtype '<f16', cannot be used"},
    {1, "{'descr': '|u1', 'fortran_order': False, 'shape': (6,)", "at byte 64"},
    {1, "{'descr': '|u1', 'fortran_order': False, 'shape': (6,)} x", "nothing after"},
    {1, "{'descr': '|u1', 'descr': '|u1'}", "at byte 27: expected each key once"},
    {1, "{'descr': '|u1', 'colour': 1}", "at byte 27"},
    {1, "{'descr': '|u1' 'fortran_order': False}", "at byte 26: expected ',' or '}'"},
    {1, "{'descr' '|u1'}", "at byte 19: expected ':'"},
    {1, "{'descr': 7}", "expected a string"},
    {1, "{'descr': '|u1}", "the end of a string"},
    {1, "{'desc\\x72': '|u1'}", "the end of a string"},
    {1, "{'descr': '|u1', 'fortran_order': 0, 'shape': (6,)}", "True or False"},
    {1, "{'descr': '|u1', 'fortran_order': False, 'shape': 6}", "'(' of the shape"},
    {1, "{'descr': '|u1', 'fortran_order': False, 'shape': (6)}", "a tuple"},
    {1, "{'descr': '|u1', 'fortran_order': False, 'shape': (2 3)}", "',' or ')'"},
    {1, "{'descr': '|u1', 'fortran_order': False, 'shape': (2,,3)}", "a size"},
    {1, "{'descr': '|u1', 'fortran_order': False, 'shape': (-6,)}", "a size"},
    {1, "{'descr': '|u1', 'fortran_order': False, 'shape': (9223372036854775808,)}",
     "below 2^63"},
    {1, "{'descr': '<f8', 'fortran_order': False, 'shape': (4294967296, 4294967296)}",
     "larger than 2^63"},
    {1, "{'descr': '|u1', 'fortran_order': False, 'shape': ()}", "a scalar"},
    {1, "{'descr': '|u1', 'fortran_order': False, 'shape': (0, 6)}", "no samples"},
    {1, "{'descr': '|u1', 'fortran_order': False, 'shape': (6, 0)}",
     "6 bytes follow its last element"},
    {1, "{'descr': '|u1', 'fortran_order': False, 'shape': (7,)}", "6 bytes of 7"},
    {1, "{'descr': '|u1', 'fortran_order': False, 'shape': (5,)}", "1 bytes follow"},
    {1, "{'descr': '|O', 'fortran_order': False, 'shape': (6,)}", "pickled objects"},
    {1, "{'descr': '<U1', 'fortran_order': False, 'shape': (6,)}", "text"},
    {1, "{'descr': '|S6', 'fortran_order': False, 'shape': (1,)}", "text"},
    {1, "{'descr': '<M8[ns]', 'fortran_order': False, 'shape': (1,)}", "dates"},
    {1, "{'descr': '|V6', 'fortran_order': False, 'shape': (1,)}", "structured"},
    {1, "{'descr': [('a', '<f4')], 'fortran_order': False, 'shape': (1,)}",
     "structured"},
    {1, "{'descr': '<c8', 'fortran_order': False, 'shape': (1,)}", "complex"},
    {1, "{'descr': '<f16', 'fortran_order': False, 'shape': (1,)}", "'<f16'"},
    {1, "{'descr': '|f4', 'fortran_order': False, 'shape': (1,)}", "'|f4'"},
    {1, "{'descr': 'f4', 'fortran_order': False, 'shape': (1,)}", "'f4'"},
    {1, "{'descr': '<\xff\x01', 'fortran_order': False, 'shape': (1,)}", "'<?\?'"},
};

UNIT_ROWS(header, headers)
{
    struct bytes b = npy(headers[_i].version, headers[_i].dict, "\1\2\3\4\5\6", 6);
    int fd = file_of(&b);
    struct qdq_dataset *dataset = NULL;
    struct qdq_error err = {0};
    enum qdq_code code = qdq_dataset_open(fd, &dataset, &err);
    close(fd);
    if (!headers[_i].error) {
        ck_assert_msg(code == QDQ_OK, "%s: %s", headers[_i].dict, err.text);
        ck_assert_uint_eq(qdq_dataset_info(dataset)->n_arrays, 1);
        ck_assert_str_eq(qdq_dataset_info(dataset)->arrays[0].name, "");
        qdq_dataset_free(&dataset);
        ck_assert_ptr_null(dataset);
        return;
    }
    ck_assert_msg(code == QDQ_INVALID_DATASET, "%s", headers[_i].dict);
    ck_assert_int_eq(err.code, code);
    ck_assert_ptr_null(dataset);
    ck_assert_msg(strstr(err.text, headers[_i].error) != NULL, "%s: %s",
                  headers[_i].dict, err.text);
}

/* Every cut of a good file is refused, and none is read beyond its end. */
UNIT_TEST(every_cut)
{
    struct bytes whole = npy_c("<f4", "(2,)", "\0\0\200?\0\0\0@", 8);
    for (size_t n = 0; n < whole.n; n++) {
        struct bytes cut = {0};
        put(&cut, whole.p, n);
        int fd = file_of(&cut);
        struct qdq_dataset *dataset;
        struct qdq_error err = {0};
        ck_assert_int_eq(qdq_dataset_open(fd, &dataset, &err), QDQ_INVALID_DATASET);
        close(fd);
    }
    free(whole.p);
}

UNIT_TEST(long_header)
{
    struct bytes b = {0};
    put(&b, "\x93NUMPY\2\0\377\377\377\377{", 13);
    int fd = file_of(&b);
    struct qdq_dataset *dataset;
    struct qdq_error err = {0};
    ck_assert_int_eq(qdq_dataset_open(fd, &dataset, &err), QDQ_INVALID_DATASET);
    ck_assert_ptr_nonnull(strstr(err.text, "4294967295 bytes"));
    close(fd);
}

/* Files that hold the same six numbers, 0x0102 to 0x0c0b in C order. */
static const uint16_t numbers[6] = {0x0102, 0x0304, 0x0506, 0x0708, 0x090a, 0x0c0b};
static const struct {
    const char *descr, *order, *shape;
    const char *data;
} forms[] = {
    {"<u2", "False", "(2, 3)", "\2\1\4\3\6\5\10\7\12\11\13\14"},
    {">u2", "False", "(2, 3)", "\1\2\3\4\5\6\7\10\11\12\14\13"},
    {"<u2", "True", "(2, 3)", "\2\1\10\7\4\3\12\11\6\5\13\14"},
    {">u2", "True", "(2, 3)", "\1\2\7\10\3\4\11\12\5\6\14\13"},
    {"<u2", "True", "(6,)", "\2\1\4\3\6\5\10\7\12\11\13\14"},
    {"<u2", "True", "(1, 6, 1)", "\2\1\4\3\6\5\10\7\12\11\13\14"},
    {"<u2", "True", "(3, 1, 2)", "\2\1\6\5\12\11\4\3\10\7\13\14"},
};

UNIT_ROWS(element_order, forms)
{
    char dict[128];
    snprintf(dict, sizeof dict, "{'descr': '%s', 'fortran_order': %s, 'shape': %s}",
             forms[_i].descr, forms[_i].order, forms[_i].shape);
    struct bytes b = npy(1, dict, forms[_i].data, 12);
    int fd = file_of(&b);
    struct qdq_dataset *dataset;
    struct qdqi_reader *reader, *other;
    struct qdq_error err = {0};
    ck_assert_int_eq(qdq_dataset_open(fd, &dataset, &err), QDQ_OK);
    close(fd); /* the dataset has a descriptor of its own */
    ck_assert_int_eq(qdqi_dataset_dtype(dataset, 0), QDQI_UINT16);
    ck_assert_int_eq(qdqi_reader_open(dataset, 0, &reader, &err), QDQ_OK);
    ck_assert_int_eq(qdqi_reader_open(dataset, 0, &other, &err), QDQ_OK);
    uint16_t got[6] = {0}, last;
    ck_assert_int_eq(qdqi_reader_read(reader, got, 8, &err), QDQ_OK);
    ck_assert_int_eq(qdqi_reader_skip(other, 10, &err), QDQ_OK);
    ck_assert_int_eq(qdqi_reader_read(other, &last, 2, &err), QDQ_OK);
    ck_assert_int_eq(qdqi_reader_read(reader, got + 4, 4, &err), QDQ_OK);
    ck_assert_mem_eq(got, numbers, sizeof numbers);
    ck_assert_uint_eq(last, numbers[5]);
    ck_assert_int_eq(qdqi_reader_read(reader, got, 2, &err), QDQ_INVALID_DATASET);
    qdqi_reader_close(&reader);
    qdqi_reader_close(&other);
    qdq_dataset_free(&dataset);
}

static const struct {
    const char *bytes;
    size_t size;
    const char *error;
} strangers[] = {
    {"", 0, "is empty"},
    {"P", 1, "neither"},
    {"PK\3", 3, "neither"},
    {"\x93NUMP", 5, "neither"},
    {"hello, world\n", 13, "neither"},
    {"PK\3\4", 4, "damaged"},
    {"PK\5\6", 4, "damaged"},
};

UNIT_ROWS(stranger, strangers)
{
    struct bytes b = {0};
    put(&b, strangers[_i].bytes, strangers[_i].size);
    int fd = file_of(&b);
    struct qdq_dataset *dataset;
    struct qdq_error err = {0};
    ck_assert_int_eq(qdq_dataset_open(fd, &dataset, &err), QDQ_INVALID_DATASET);
    ck_assert_msg(strstr(err.text, strangers[_i].error) != NULL, "%s", err.text);
    close(fd);
}

UNIT_TEST(no_regular_file)
{
    int ends[2];
    struct qdq_dataset *dataset;
    struct qdq_error err = {0};
    ck_assert_int_eq(pipe(ends), 0);
    ck_assert_int_eq(qdq_dataset_open(ends[0], &dataset, &err), QDQ_IO);
    close(ends[0]);
    close(ends[1]);
    ck_assert_int_eq(qdq_dataset_open(ends[0], &dataset, NULL), QDQ_IO);
}

UNIT_SUITE("data/npy")
