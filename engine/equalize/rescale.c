/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "equalize/rescale.h"

#include "data/file.h"
#include "edit/edit.h"
#include "model/write.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

/* A change as the writer of models sees it. */
struct change {
    struct qdqi_made made; /* must be first: the writer's pointer points here */
    const struct qdqi_rescaled *rescaled;
};

static const double no_scale[] = {1};

struct qdqi_rescaled
qdqi_rescaled_bias(const struct qdqi_tensor *tensor,
                   const struct qdqi_constant *constant, const double *factors)
{
    const struct qdqi_weight weight = {.tensor = tensor,
                                       .bytes = constant->bytes,
                                       .n_major = constant->n,
                                       .minor = 1,
                                       .inner = 1,
                                       .groups = 1,
                                       .major_is_out = true,
                                       .n_in = 1,
                                       .n_out = constant->n};
    return (struct qdqi_rescaled){weight, factors, no_scale};
}

static enum qdq_code
write_change(const struct qdqi_made *made, struct qdqi_sink *sink,
             struct qdq_error *err)
{
    const struct qdqi_rescaled *r = ((const struct change *)made)->rescaled;
    return qdqi_weight_write(&r->weight, r->out, r->in, sink, err);
}

static size_t
size_of(const struct qdqi_weight *w)
{
    return w->n_major * w->minor * w->inner * sizeof(float);
}

static enum qdq_code
write_model(const struct qdq_model *source, const struct qdqi_rescaled *changes,
            size_t n, struct qdqi_arena *arena, int fd, struct qdq_error *err)
{
    struct change *made = qdqi_arena_array(arena, n, sizeof *made);
    struct qdqi_edit *edit = qdqi_edit_new(source, arena);
    struct qdqi_edited edited;
    uint64_t size;
    if (!made || !edit)
        return qdqi_no_memory(err);
    for (size_t i = 0; i < n; i++) {
        made[i] = (struct change){{.write = write_change}, &changes[i]};
        qdqi_edit_set_made(edit, changes[i].weight.tensor, size_of(&changes[i].weight),
                           &made[i].made);
    }
    enum qdq_code code = qdqi_edit_finish(edit, &edited.proto, err);
    if (code)
        return code;
    edited.bulks = qdqi_edit_bulks(edit);
    return qdqi_model_write(source, &edited, fd, &size, err);
}

enum qdq_code
qdqi_rescale(const struct qdq_model *source, const struct qdqi_rescaled *changes,
             size_t n, struct qdqi_arena *arena, struct qdq_model **ret,
             struct qdq_error *err)
{
    int fd = qdqi_file_open_buffer();
    if (fd < 0)
        return qdq_error_set(err, QDQ_IO, QDQ_AT_NOTHING, NULL,
                             "opening a temporary file: %s", strerror(errno));
    enum qdq_code code = write_model(source, changes, n, arena, fd, err);
    if (!code)
        code = qdq_model_open(fd, ret, err);
    close(fd); /* the model has a duplicate of the descriptor */
    if (!code)
        (*ret)->warnings = source->warnings;
    return code;
}
