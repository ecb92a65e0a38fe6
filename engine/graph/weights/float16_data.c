/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "graph/weights/float16_data.h"

#include "numbers/arithmetic/float16.h"

struct data {
    struct qdqi_made made; /* must be the first member: callers have a pointer to it */
    enum qdqi_dtype type;
    const uint8_t *bytes;
    size_t n;
};

static enum qdq_code
write_data(const struct qdqi_made *made, struct qdqi_sink *sink, struct qdq_error *err)
{
    enum { PIECE = 4096 };
    const struct data *d = (const struct data *)made;
    uint16_t piece[PIECE];
    enum qdq_code code = QDQ_OK;
    for (size_t at = 0, n; at < d->n && !code; at += n) {
        n = d->n - at < PIECE ? d->n - at : PIECE;
        qdqi_float16_of_floats(piece, d->type, d->bytes + at * sizeof(float), n);
        code = sink->bytes(sink, piece, n * sizeof *piece, err);
    }
    return code;
}

const struct qdqi_made *
qdqi_float16_data_new(struct qdqi_arena *arena, enum qdqi_dtype type,
                      const struct qdqi_constant *constant)
{
    struct data *d = qdqi_arena_alloc(arena, sizeof *d);
    if (!d)
        return NULL;
    *d = (struct data){{.write = write_data}, type, constant->bytes, constant->n};
    return &d->made;
}
