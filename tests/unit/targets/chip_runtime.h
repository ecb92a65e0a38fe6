/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TESTS_UNIT_TARGETS_CHIP_RUNTIME_H
#define TESTS_UNIT_TARGETS_CHIP_RUNTIME_H

#include "runtimes/onnxruntime/onnxruntime.h"

/* The provider that runs the chip's models, which a test may change. */
extern struct qdqi_provider chip_provider;

#endif
