/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Rows of layer support that the target onnxruntime tries before those of the library.
 * Its integer kernels also accept constants, if these have the format of the
 * activations; a table may be stored as integers; and the runtime may quantize what
 * recurrent layers read.
 */
#include "config.h"
#include "plan/targets/onnxruntime/onnxruntime.h"

#include "files/model/constant.h"
#include "graph/layers/rows.h"

/* Returns whether the node gathers rows of a constant matrix, and nothing but such nodes
   reads the matrix. */
static bool
qdqi_is_gathers_rows(const struct qdq_model *model, const struct qdqi_node *node)
{
    struct qdqi_constant c;
    if (node->proto->n_input != 2 || !qdqi_input_is_constant(node, 0) ||
        !node->inputs[1] || node->inputs[1]->is_fixed ||
        qdqi_constant_read(model, node->inputs[0], &c, NULL) || c.rank != 2 ||
        qdqi_constant_is_fill(&c))
        return false;
    const struct qdqi_tensor *table = node->inputs[0];
    bool alone = !table->is_output && !table->is_captured &&
                 !qdqi_constant_is_overridable(model, table);
    for (const struct qdqi_use *use = table->uses; alone && use; use = use->next) {
        const Onnx__NodeProto *reader = model->graph.nodes[use->node].proto;
        alone = use->input == 0 && qdqi_node_is(reader, "Gather") &&
                qdqi_node_int(reader, "axis", 0) == 0;
    }
    return alone;
}

/* LSTM-14: W is [num_directions, 4*hidden_size, input_size], R likewise. */
static QDQI_AXIS(GATES)
{
    return rank == 3 ? 1 : -1;
}

const struct qdqi_class qdqi_onnxruntime_classes[QDQI_N_ONNXRUNTIME_CLASSES] = {
    LAYER("AddConstant", "Add", OPERAND, 1, NONE, ON, one_constant_operand,
          "Add of a computed tensor and a constant")
        LAYER("MultiplyConstant", "Mul", OPERAND, 1, NONE, ON, one_constant_operand,
              "Mul of a computed tensor and a constant")
            LAYER("Embedding", "Gather", TABLE, 0, LAST, ON, gathers_rows,
                  "Gather of rows of a constant matrix that nothing else reads")
                LAYER("LSTM", "LSTM", RECURRENT, 1, GATES, ASKED, any_node, "LSTM")
                    LAYER("GRU", "GRU", RECURRENT, 1, GATES, ASKED, any_node, "GRU")
                        LAYER("RNN", "RNN", RECURRENT, 1, GATES, ASKED, any_node, "RNN")
                            LAYER("CenterCropPad", "CenterCropPad", NON_WEIGHTED, -1,
                                  NONE, OFF, any_node, "CenterCropPad")};
