/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "files/data/npy.h"
#include "ground/base/arena.h"

#include <stdlib.h>
#include <string.h>

/* Parses the dict literal. `offset` is the position of text[0] in the stream. */
struct parser {
    const char *name;
    const char *text;
    size_t size, at;
    size_t offset;
    struct qdq_error *err;
};

/* The inside of a string literal, borrowed from the text. */
struct piece {
    const char *text;
    size_t size;
};

static enum qdq_code
expected(const struct parser *p, const char *what)
{
    return qdqi_array_invalid(p->name, p->err, "header at byte %zu: expected %s",
                              p->offset + p->at, what);
}

static void
skip_space(struct parser *p)
{
    while (p->at < p->size && (p->text[p->at] == ' ' || p->text[p->at] == '\n'))
        p->at++;
}

/* Skips space, then consumes `c` if it comes next. Returns whether it did. */
static bool
consume(struct parser *p, char c)
{
    skip_space(p);
    if (p->at >= p->size || p->text[p->at] != c)
        return false;
    p->at++;
    return true;
}

static bool
consume_word(struct parser *p, const char *word)
{
    size_t n = strlen(word);
    skip_space(p);
    if (p->size - p->at < n || memcmp(p->text + p->at, word, n) != 0)
        return false;
    p->at += n;
    return true;
}

static bool
piece_is(struct piece piece, const char *word)
{
    return piece.text && piece.size == strlen(word) &&
           memcmp(piece.text, word, piece.size) == 0;
}

/* Parses 'text' or "text". A backslash ends it: no usable name or dtype has one. */
static enum qdq_code
parse_string(struct parser *p, struct piece *ret)
{
    char quote = consume(p, '\'') ? '\'' : '"';
    if (quote == '"' && !consume(p, '"'))
        return expected(p, "a string");
    size_t start = p->at;
    while (p->at < p->size && p->text[p->at] != quote && p->text[p->at] != '\\')
        p->at++;
    if (p->at >= p->size || p->text[p->at] != quote)
        return expected(p, "the end of a string");
    *ret = (struct piece){p->text + start, p->at - start};
    p->at++;
    return QDQ_OK;
}

/* Parses a size. Python 2 wrote an L behind large ones. */
static enum qdq_code
parse_size(struct parser *p, int64_t *ret)
{
    skip_space(p);
    int64_t value = 0;
    size_t start = p->at;
    for (; p->at < p->size && p->text[p->at] >= '0' && p->text[p->at] <= '9'; p->at++)
        if (__builtin_mul_overflow(value, 10, &value) ||
            __builtin_add_overflow(value, p->text[p->at] - '0', &value))
            return expected(p, "a size below 2^63");
    if (p->at == start)
        return expected(p, "a size");
    if (p->at < p->size && p->text[p->at] == 'L')
        p->at++;
    *ret = value;
    return QDQ_OK;
}

/* Parses a tuple: (), (2,), (2, 3) or (2, 3,). */
static enum qdq_code
parse_shape(struct parser *p, struct qdqi_npy *npy)
{
    bool comma = true;
    npy->rank = 0;
    if (!consume(p, '('))
        return expected(p, "'(' of the shape");
    while (!consume(p, ')')) {
        if (!comma)
            return expected(p, "',' or ')' in the shape");
        if (npy->rank == QDQI_NPY_MAX_RANK)
            return qdqi_array_invalid(p->name, p->err, "it has more than %d axes",
                                      QDQI_NPY_MAX_RANK);
        enum qdq_code code = parse_size(p, &npy->shape[npy->rank]);
        if (code != QDQ_OK)
            return code;
        npy->rank++;
        comma = consume(p, ',');
    }
    if (npy->rank == 1 && !comma)
        return expected(p, "a tuple as shape");
    return QDQ_OK;
}

static enum qdq_code
bad_dtype(const struct parser *p, struct piece descr)
{
    const char *why = "dtype";
    if (descr.size > 1)
        switch (descr.text[1]) {
        case 'O':
            why = "pickled objects, dtype";
            break;
        case 'U':
        case 'S':
        case 'a':
            why = "text, dtype";
            break;
        case 'M':
        case 'm':
            why = "dates or times, dtype";
            break;
        case 'V':
            why =
                "structured or raw elements, as which numpy stores bfloat16 and 8-bit "
                "floats (write float32), dtype";
            break;
        case 'f':
            if (descr.size == 3 && descr.text[2] == '1')
                why = "8-bit floats, of which numpy has none (write float32), dtype";
            break;
        case 'c':
            why = "complex numbers, dtype";
            break;
        default:
            break;
        }
    char shown[41] = "";
    for (size_t i = 0; i < descr.size && i < sizeof shown - 1; i++)
        shown[i] = descr.text[i] >= ' ' && descr.text[i] <= '~' ? descr.text[i] : '?';
    return qdqi_array_invalid(p->name, p->err, "%s '%s', cannot be used", why, shown);
}

/* Parses NumPy's descr, such as '<f4': byte order, then kind and size. */
static enum qdq_code
parse_descr(struct parser *p, struct qdqi_npy *npy)
{
    if (consume(p, '['))
        return qdqi_array_invalid(p->name, p->err, "structured dtype, cannot be used");
    struct piece descr;
    enum qdq_code code = parse_string(p, &descr);
    if (code != QDQ_OK)
        return code;
    char kind[4] = "";
    if (descr.size != 3 || !strchr("<>|=", descr.text[0]))
        return bad_dtype(p, descr);
    memcpy(kind, descr.text + 1, 2);
    npy->dtype = qdqi_dtype_of_npy(kind);
    npy->big_endian = descr.text[0] == '>';
    bool ordered = descr.text[0] != '|' || qdqi_dtype_size(npy->dtype) == 1;
    return npy->dtype != QDQI_UNKNOWN && ordered ? QDQ_OK : bad_dtype(p, descr);
}

static enum qdq_code
parse_order(struct parser *p, struct qdqi_npy *npy)
{
    npy->fortran = consume_word(p, "True");
    return npy->fortran || consume_word(p, "False") ? QDQ_OK
                                                    : expected(p, "True or False");
}

/* The members of the dict; each must be present once. */
static const struct {
    const char *key;
    enum qdq_code (*parse)(struct parser *, struct qdqi_npy *);
} members[] = {
    {"descr", parse_descr},
    {"fortran_order", parse_order},
    {"shape", parse_shape},
};
enum { N_MEMBERS = sizeof members / sizeof *members };

static enum qdq_code
parse_member(struct parser *p, struct qdqi_npy *npy, bool seen[N_MEMBERS])
{
    struct piece key = {0};
    skip_space(p);
    struct parser at_key = *p;
    enum qdq_code code = parse_string(p, &key);
    if (code != QDQ_OK)
        return code;
    for (size_t i = 0; i < N_MEMBERS; i++) {
        if (!piece_is(key, members[i].key))
            continue;
        if (seen[i])
            return expected(&at_key, "each key once");
        seen[i] = true;
        if (!consume(p, ':'))
            return expected(p, "':'");
        return members[i].parse(p, npy);
    }
    return expected(&at_key, "'descr', 'fortran_order' or 'shape'");
}

static enum qdq_code
parse_dict(struct parser *p, struct qdqi_npy *npy)
{
    bool seen[N_MEMBERS] = {false};
    bool comma = true;
    if (!consume(p, '{'))
        return expected(p, "'{'");
    while (!consume(p, '}')) {
        if (!comma)
            return expected(p, "',' or '}'");
        enum qdq_code code = parse_member(p, npy, seen);
        if (code != QDQ_OK)
            return code;
        comma = consume(p, ',');
    }
    skip_space(p);
    if (p->at < p->size)
        return expected(p, "nothing after '}'");
    for (size_t i = 0; i < N_MEMBERS; i++)
        if (!seen[i])
            return qdqi_array_invalid(p->name, p->err, "its header lacks '%s'",
                                      members[i].key);
    return QDQ_OK;
}

/* Sets the bytes of all elements, which must fit in an int64. */
static enum qdq_code
set_size(struct qdqi_npy *npy, const char *name, struct qdq_error *err)
{
    int64_t size = (int64_t)qdqi_dtype_size(npy->dtype);
    size_t long_axes = 0;
    for (size_t i = 0; i < npy->rank; i++) {
        if (__builtin_mul_overflow(size, npy->shape[i], &size))
            return qdqi_array_invalid(name, err, "its shape is larger than 2^63 bytes");
        long_axes += npy->shape[i] != 1;
    }
    npy->size = (uint64_t)size;
    npy->fortran = npy->fortran && long_axes > 1;
    return QDQ_OK;
}

enum qdq_code
qdqi_npy_read(struct qdqi_stream *stream, struct qdqi_npy *ret, struct qdq_error *err)
{
    unsigned char start[12];
    char *text = NULL;
    struct qdqi_npy npy = {0};
    enum qdq_code code = qdqi_stream_read(stream, start, QDQI_NPY_MAGIC_SIZE, err);
    if (code != QDQ_OK)
        goto out;
    if (memcmp(start, QDQI_NPY_MAGIC, QDQI_NPY_MAGIC_SIZE) != 0) {
        code = qdqi_array_invalid(stream->name, err,
                                  "it does not start with NumPy's magic");
        goto out;
    }
    code = qdqi_stream_read(stream, start + 6, 4, err);
    if (code != QDQ_OK)
        goto out;
    if (start[6] < 1 || start[6] > 3 || start[7] != 0) {
        code = qdqi_array_invalid(stream->name, err, "NumPy format version %d.%d",
                                  start[6], start[7]);
        goto out;
    }
    size_t size = start[8] | (size_t)start[9] << 8;
    if (start[6] > 1) {
        code = qdqi_stream_read(stream, start + 10, 2, err);
        if (code != QDQ_OK)
            goto out;
        size |= (size_t)start[10] << 16 | (size_t)start[11] << 24;
    }
    if (size > QDQI_NPY_MAX_HEADER) {
        code = qdqi_array_invalid(stream->name, err,
                                  "its header of %zu bytes is longer than %d", size,
                                  QDQI_NPY_MAX_HEADER);
        goto out;
    }
    struct parser p = {stream->name, NULL, size, 0, (size_t)stream->offset, err};
    p.text = text = malloc(size + 1);
    if (!text) {
        code = qdqi_no_memory(err);
        goto out;
    }
    code = qdqi_stream_read(stream, text, size, err);
    if (code != QDQ_OK)
        goto out;
    npy.offset = stream->offset;
    code = parse_dict(&p, &npy);
    if (code == QDQ_OK)
        code = set_size(&npy, stream->name, err);
    if (code == QDQ_OK)
        *ret = npy;
out:
    free(text);
    return code;
}
