/* SPDX-License-Identifier: Apache-2.0 */
/* Hooks of the target openvino that leave layers in floating point, or warn of pairs;
   plan/placement/target.h says what they do. */
#ifndef QDQI_PLAN_TARGETS_OPENVINO_VETOES_H
#define QDQI_PLAN_TARGETS_OPENVINO_VETOES_H

#include "plan/placement/target.h"

/* Makes the marks that the vetoes and the warnings use. NO_MEMORY. */
enum qdq_code qdqi_openvino_begin(struct planner *p, struct qdq_error *err);

extern const struct qdqi_veto qdqi_openvino_vetoes[];
extern const struct qdqi_lint qdqi_openvino_lints[];

#endif
