/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "stages/plausible/layout.h"
#include "files/data/reader.h"

#include <inttypes.h>

/* Returns the channels that a Conv wants of its input, which has four axes; 0: not known. */
static int64_t
channels_of(const struct qdqi_node *conv)
{
    const struct qdqi_tensor *weight =
        conv->proto->n_input > 1 ? conv->inputs[1] : NULL;
    if (!weight || !weight->is_fixed || weight->view.rank != 4)
        return 0;
    return weight->view.dims[1] * qdqi_node_int(conv->proto, "group", 1);
}

/* Returns the channels that the first Conv that reads the input wants; 0: not known. */
static int64_t
wanted_channels(const struct qdq_model *model, const char *input)
{
    const struct qdqi_tensor *tensor = qdqi_map_get(model->graph.tensors, input);
    for (const struct qdqi_use *use = tensor ? tensor->uses : NULL; use;
         use = use->next) {
        const struct qdqi_node *node = &model->graph.nodes[use->node];
        if (use->input == 0 && qdqi_node_is(node->proto, "Conv"))
            return channels_of(node);
    }
    return 0;
}

static enum qdq_code
check_input(const struct qdqi_attempt *a, size_t i, struct qdq_error *err)
{
    const struct qdq_value *input = &a->fixed.inputs[i];
    const struct qdq_array *array = qdqi_feed_array(a->context->dataset, &a->fixed, i);
    if (!array || array->rank != 4 || qdqi_dataset_has_images(a->context->dataset))
        return QDQ_OK;
    const int64_t channels = wanted_channels(a->context->original, input->name);
    if (channels == 0 || array->shape[1] == channels || array->shape[3] != channels)
        return QDQ_OK;
    return qdq_error_set(err, QDQ_CALIBRATION_MISMATCH, QDQ_AT_INPUT, input->name,
                         "input '%s' is read by a convolution of %" PRId64
                         " channels, which are the last axis of the data, not axis 1: "
                         "the data looks like "
                         "NHWC for a model of NCHW; numpy.transpose(x, (0, 3, 1, 2)) "
                         "makes the other layout",
                         input->name, channels);
}

enum qdq_code
qdqi_check_layout(const struct qdqi_attempt *a, struct qdq_error *err)
{
    enum qdq_code code = QDQ_OK;
    for (size_t i = 0; !code && a->context->work->dataset >= 0 && i < a->fixed.n_inputs;
         i++)
        code = check_input(a, i, err);
    return code;
}
