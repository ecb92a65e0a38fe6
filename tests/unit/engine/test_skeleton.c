/* SPDX-License-Identifier: Apache-2.0 */
/* Cutting payloads out of a model and putting them back, also with damaged and
   hostile bytes. */
#include "config.h"

#include "builder.h"
#include "files/model/skeleton.h"

#include <fcntl.h>
#include <sys/stat.h>

struct collected {
    struct qdqi_sink sink;
    const uint8_t *file;
    uint8_t *data;
    size_t size;
};

static enum qdq_code
collect_bytes(struct qdqi_sink *sink, const void *data, size_t size,
              struct qdq_error *err)
{
    struct collected *c = (struct collected *)sink;
    (void)err;
    memcpy(c->data + c->size, data, size);
    c->size += size;
    return QDQ_OK;
}

static enum qdq_code
collect_bulk(struct qdqi_sink *sink, const struct qdqi_bulk *bulk,
             struct qdq_error *err)
{
    struct collected *c = (struct collected *)sink;
    return collect_bytes(sink, c->file + bulk->offset, bulk->size, err);
}

static const char *const files[] = {
    "tests/data/glyph_resnet.onnx",
    "tests/data/glyph_mobilenet.onnx",
    "tests/data/glyph_vit.onnx",
    "tests/data/glyph_se.onnx",
};

UNIT_ROWS(expanding_gives_the_file_back, files)
{
    int fd = open(unit_path(files[_i]), O_RDONLY);
    struct stat st;
    ck_assert_msg(fd >= 0 && fstat(fd, &st) == 0, "%s", files[_i]);
    size_t size = (size_t)st.st_size;
    const uint8_t *file = mmap(NULL, size, PROT_READ, MAP_PRIVATE, fd, 0);
    struct qdqi_arena *arena = qdqi_arena_new();
    struct qdqi_bytes skeleton;
    struct qdqi_bulks bulks;
    struct qdq_error err = {0};
    ck_assert_int_eq(qdqi_skeleton_cut(file, size, arena, &skeleton, &bulks, &err), 0);
    size_t cut = 0;
    for (size_t i = 0; i < bulks.n; i++)
        cut += bulks.rows[i].size;
    ck_assert_msg(skeleton.size < size / 10, "%zu of %zu bytes", skeleton.size, size);
    ck_assert_uint_gt(cut, size / 10 * 9);
    struct collected c = {{collect_bytes, collect_bulk}, file, malloc(size), 0};
    ck_assert_int_eq(
        qdqi_skeleton_expand(&skeleton, &bulks, QDQI_INLINE, NULL, &c.sink, &err), 0);
    ck_assert_uint_eq(c.size, size);
    ck_assert_int_eq(memcmp(c.data, file, size), 0);
    free(c.data);
    qdqi_arena_free(&arena);
    munmap((void *)(uintptr_t)file, size);
    close(fd);
}

/* Invalid bytes, and a part of the error's text, which also names the offset. */
static const struct {
    const char *name, *bytes;
    size_t size;
    const char *error, *offset;
} damages[] = {
    {"a text", "hello world", 11, "unknown wire type", "2"},
    {"field 0", "\x00\x01", 2, "bad field tag", "0"},
    {"a tag without end", "\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff", 11,
     "bad field tag", "0"},
    {"a number without end", "\x08\xff", 2, "does not end", "1"},
    {"a length without end", "\x3a\xff", 2, "does not end", "1"},
    {"a field past the end", "\x3a\x05\x01", 3, "longer than what is left", "0"},
    {"a 64-bit field past the end", "\x09\x01\x02", 3, "longer than what is left", "0"},
    {"a node past its graph", "\x3a\x02\x0a\x05", 4, "longer than what is left", "2"},
    {"a group", "\x0b\x0c", 2, "unknown wire type", "0"},
    {"field 0 in an opset", "\x08\x08\x42\x03\x80\x00\x04", 7, "bad field tag", "4"},
    {"two graphs", "\x3a\x00\x3a\x00", 4, "a second graph", "2"},
    {"our own field", "\x3a\x08\x2a\x06\x88\xc8\xff\xff\x0f\x00", 10,
     "keeps for itself", "4"},
};

UNIT_ROWS(damaged_bytes_are_named_by_offset, damages)
{
    struct qdqi_arena *arena = qdqi_arena_new();
    struct qdqi_bytes skeleton;
    struct qdqi_bulks bulks;
    struct qdq_error err = {0};
    enum qdq_code code =
        qdqi_skeleton_cut((const uint8_t *)damages[_i].bytes, damages[_i].size, arena,
                          &skeleton, &bulks, &err);
    ck_assert_msg(code == QDQ_INVALID_MODEL, "%s: code %d", damages[_i].name, code);
    ck_assert_msg(strstr(err.text, damages[_i].error) != NULL, "%s: %s",
                  damages[_i].name, err.text);
    ck_assert_int_eq(err.kind, QDQ_AT_OFFSET);
    ck_assert_str_eq(err.where, damages[_i].offset);
    qdqi_arena_free(&arena);
}

/* Writes graphs in attributes of nodes, `depth` messages deep; the innermost is
   empty. */
static size_t
write_nested(uint8_t *to, unsigned depth)
{
    static const uint8_t tags[] = {0x0a, 0x2a, 0x32}; /* node, attribute, graph */
    uint8_t *p = to + 4000;                           /* writes backwards */
    size_t size = 0;
    for (unsigned i = depth; i-- > 0;) {
        uint8_t head[4];
        size_t n = 0;
        head[n++] = i == 0 ? 0x3a : tags[(i - 1) % 3];
        for (size_t left = size; n == 1 || left; left >>= 7)
            head[n++] = (uint8_t)((left & 0x7f) | (left > 0x7f ? 0x80 : 0));
        p -= n;
        memcpy(p, head, n);
        size += n;
    }
    memmove(to, p, size);
    return size;
}

UNIT_TEST(nesting_is_bounded)
{
    uint8_t bytes[4096];
    struct qdqi_arena *arena = qdqi_arena_new();
    struct qdqi_bytes skeleton;
    struct qdqi_bulks bulks;
    struct qdq_error err = {0};
    size_t size = write_nested(bytes, 100);
    ck_assert_int_eq(qdqi_skeleton_cut(bytes, size, arena, &skeleton, &bulks, &err), 0);
    size = write_nested(bytes, 101);
    ck_assert_int_eq(qdqi_skeleton_cut(bytes, size, arena, &skeleton, &bulks, &err),
                     QDQ_INVALID_MODEL);
    ck_assert_ptr_nonnull(strstr(err.text, "more than 100 deep"));
    qdqi_arena_free(&arena);
}

UNIT_TEST(every_truncation_is_refused_or_reads)
{
    struct builder b;
    builder_two_convs(&b, 13);
    size_t size = onnx__model_proto__get_packed_size(&b.model);
    uint8_t *data = malloc(size);
    onnx__model_proto__pack(&b.model, data);
    size_t refused = 0;
    for (size_t n = 0; n < size; n++) {
        struct qdq_model *model = NULL;
        struct qdq_error err = {0};
        int fd = memory_file(data, n);
        enum qdq_code code = qdq_model_open(fd, &model, &err);
        ck_assert_msg(code == QDQ_OK || (code == QDQ_INVALID_MODEL && *err.text),
                      "cut at %zu: code %d", n, code);
        refused += code != QDQ_OK;
        qdq_model_free(&model);
        close(fd);
    }
    /* a cut inside the last field may go unnoticed */
    ck_assert_uint_gt(refused, size - 30);
    free(data);
    builder_fini(&b);
}

UNIT_ROWS(no_weight_goes_through_the_parser, files)
{
    struct qdq_model *model = NULL;
    struct qdq_error err = {0};
    int fd = open(unit_path(files[_i]), O_RDONLY);
    ck_assert_int_eq(qdq_model_open(fd, &model, &err), 0);
    const Onnx__GraphProto *g = model->proto->graph;
    size_t parsed = 0;
    for (size_t i = 0; i < g->n_initializer; i++) {
        parsed += g->initializer[i]->raw_data.len;
        ck_assert_uint_lt(g->initializer[i]->raw_data.len, 128);
    }
    ck_assert_uint_lt(parsed, 8192);
    qdq_model_free(&model);
    close(fd);
}

/* --- growing arrays ------------------------------------------------------- */

static const struct {
    size_t capacity, needed, size, room; /* room 0: the call is refused */
} growths[] = {
    {0, 1, 8, 64},       {64, 65, 8, 128},         {64, 64, 8, 64},
    {64, 1000, 1, 1000}, {64, SIZE_MAX / 8, 8, 0}, {64, SIZE_MAX, 1, 0},
};

UNIT_ROWS(arrays_grow_or_stay_as_they_were, growths)
{
    size_t capacity = growths[_i].capacity, size = growths[_i].size;
    char *rows = capacity ? malloc(capacity * size) : NULL;
    if (rows)
        memset(rows, 7, capacity * size);
    char *grown = qdqi_grow(rows, &capacity, growths[_i].needed, size);
    ck_assert_int_eq(grown != NULL, growths[_i].room > 0);
    ck_assert_uint_eq(capacity, grown ? growths[_i].room : growths[_i].capacity);
    if (!grown)
        grown = rows;
    for (size_t i = 0; i < growths[_i].capacity * size; i++)
        ck_assert_int_eq(grown[i], 7);
    free(grown);
}

/* Two models: ir_version, and metadata_props between it and producer_name. The first bytes are
   their lengths. */
static const struct {
    const char *a, *b;
    bool same;
} alike[] = {
    {"\x02\x08\x0a", "\x02\x08\x0a", true},
    {"\x02\x08\x0a", "\x02\x08\x09", false},
    {"\x06\x08\x0a\x72\x02xy", "\x02\x08\x0a", true},
    {"\x09\x08\x0a\x72\x02xy\x12\x01p", "\x08\x08\x0a\x72\x01z\x12\x01p", true},
    {"\x09\x08\x0a\x72\x02xy\x12\x01p", "\x09\x08\x0a\x72\x02xy\x12\x01q", false},
    {"\x05\x08\x0a\x12\x01p", "\x02\x08\x0a", false},
    {"\x02\x08\x0a", "\x05\x08\x0a\x12\x01p", false},
    {"\x04\x08\x0a\x12\x05", "\x04\x08\x0a\x12\x05", false}, /* neither is whole */
};

UNIT_ROWS(models_are_compared_but_for_their_metadata, alike)
{
    const char *a = alike[_i].a, *b = alike[_i].b;
    ck_assert_int_eq(qdqi_same_but_metadata((const uint8_t *)a + 1, (size_t)a[0],
                                            (const uint8_t *)b + 1, (size_t)b[0]),
                     alike[_i].same);
}

UNIT_SUITE("skeleton")
