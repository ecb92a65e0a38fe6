/* SPDX-License-Identifier: Apache-2.0 */
/* The rows of all targets, by the list TARGETS in engine/local.mk. */
#ifndef QDQI_PLAN_TARGETS_TARGETS_H
#define QDQI_PLAN_TARGETS_TARGETS_H

#include "plan/placement/target.h"

#define TARGET(name) extern const struct qdq_target qdqi_target_##name;
#include "targets.inc"
#undef TARGET

#endif
