/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "runtimes/common/whole.h"

#include "files/data/file.h"
#include "files/model/write.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

static enum qdq_code
copy_model(const struct qdq_model *model, struct qdqi_whole *ret, struct qdq_error *err)
{
    const struct qdqi_edited edited = {.proto = model->proto, .bulks = model->bulks};
    const struct qdqi_destination destination = {
        .fd = ret->fd, .data = -1, .external = QDQ_EXTERNAL_NEVER};
    struct qdqi_written written;
    struct qdq_error why = {0};
    enum qdq_code code =
        qdqi_model_write_result(model, &edited, &destination, &written, &why);
    if (code == QDQ_INVALID_SPEC || code == QDQ_UNSUPPORTED)
        return qdq_error_set(err, QDQ_UNSUPPORTED, QDQ_AT_NOTHING, NULL,
                             "its weights are outside the model file, and a copy with "
                             "all of them inside would be larger than 2 GB");
    if (code)
        return qdq_error_set(err, code, why.kind, why.where, "%s", why.text);
    return qdqi_map_file(ret->fd, "the copy of the model", &ret->copy, err);
}

enum qdq_code
qdqi_whole_open(const struct qdq_model *model, struct qdqi_whole *ret,
                struct qdq_error *err)
{
    *ret = (struct qdqi_whole){.copy.fd = -1, .fd = -1};
    if (model->n_files == 1 && model->files[0].map) {
        ret->data = model->files[0].map;
        ret->size = model->files[0].size;
        return QDQ_OK;
    }
    ret->fd = qdqi_file_open_temporary();
    enum qdq_code code =
        ret->fd < 0 ? qdq_error_set(err, QDQ_IO, QDQ_AT_NOTHING, NULL,
                                    "opening a temporary file: %s", strerror(errno))
                    : copy_model(model, ret, err);
    if (code)
        qdqi_whole_close(ret);
    ret->data = ret->copy.map;
    ret->size = ret->copy.size;
    return code;
}

void
qdqi_whole_close(struct qdqi_whole *whole)
{
    if (whole->fd < 0)
        return;
    if (whole->copy.map)
        qdqi_unmap(&whole->copy);
    close(whole->fd);
    *whole = (struct qdqi_whole){.copy.fd = -1, .fd = -1};
}
