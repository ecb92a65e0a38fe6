/* SPDX-License-Identifier: Apache-2.0 */
/* All public headers of libqdq. ARCHITECTURE.md describes the way of the data. */
#ifndef QDQ_H
#define QDQ_H

#include "qdq/error.h"
#include "qdq/model.h"
#include "qdq/limits.h"
#include "qdq/dataset.h"
#include "qdq/spec.h"
#include "qdq/prepare.h"
#include "qdq/rules.h"
#include "qdq/targets.h"
#include "qdq/tokenizer.h"
#include "qdq/catalog.h"
#include "qdq/plan.h"
#include "qdq/report.h"
#include "qdq/executor.h"
#include "qdq/quantize.h"
#include "qdq/runtime.h"
#include "qdq/judge.h"
#include "qdq/words.h"

#endif
