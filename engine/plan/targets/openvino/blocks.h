/* SPDX-License-Identifier: Apache-2.0 */
/* A warning about ONNX Runtime, by which results for OpenVINO may be tried. */
#ifndef QDQI_PLAN_TARGETS_OPENVINO_BLOCKS_H
#define QDQI_PLAN_TARGETS_OPENVINO_BLOCKS_H

#include "plan/placement/planner.h"

/* Warns of layers that multiply integers of 8 bits whose weights have blocks: ONNX Runtime's
   integer kernels have none. */
enum qdq_code qdqi_warn_blocks(struct planner *p, struct qdq_error *err) QDQ_MUST_CHECK;

#endif
