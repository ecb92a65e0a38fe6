/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Messages between a process that quantizes and one that judges. Both ends are the same
 * program, and neither trusts the other: each reads with bounds. A message is a kind, a
 * body of numbers and bytes, and an attachment: the bytes of a model.
 */
#ifndef QDQI_RUNTIMES_PROCESS_WIRE_H
#define QDQI_RUNTIMES_PROCESS_WIRE_H

#include "qdq/error.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* OPEN: threads, own_precision, traced, reads_only; attached: the model. OK: id, precision.
 * RUN: id, inputs. OK: ms, ms of the processor (below 0: unknown), outputs.
 * NODES: id. OK: nodes.
 * CLOSE: id. OK: nothing.
 * VERSION: name of the runtime that is wanted. OK: its version, its own name, device and runner, or "",
 * and whether it only plans.
 * FAILED answers any of them: code, text. */
enum qdqi_wire_kind {
    QDQI_WIRE_OPEN,
    QDQI_WIRE_RUN,
    QDQI_WIRE_NODES,
    QDQI_WIRE_CLOSE,
    QDQI_WIRE_VERSION,
    QDQI_WIRE_OK,
    QDQI_WIRE_FAILED,
};

/* The most dimensions of an input or output that one side takes from the other. */
enum { QDQI_WIRE_MOST_DIMS = 64 };

/* The body of a message, which is written or read from its beginning on. */
struct qdqi_wire {
    uint8_t *data;
    size_t size, capacity, at;
    bool failed; /* out of memory, or read behind the end */
};

void qdqi_wire_free(struct qdqi_wire *wire);

void qdqi_wire_put(struct qdqi_wire *wire, uint64_t value);
void qdqi_wire_put_real(struct qdqi_wire *wire, double value);
void qdqi_wire_put_bytes(struct qdqi_wire *wire, const void *bytes, size_t size);
void qdqi_wire_put_text(struct qdqi_wire *wire, const char *text);

/* Read what was written in this order. Once `failed` is set they return 0, NULL or "".
   Bytes are aligned to 8 and borrowed from the body. */
uint64_t qdqi_wire_get(struct qdqi_wire *wire);
double qdqi_wire_get_real(struct qdqi_wire *wire);
const void *qdqi_wire_get_bytes(struct qdqi_wire *wire, size_t *ret_size);
const char *qdqi_wire_get_text(struct qdqi_wire *wire);
/* Reads the number of things that follow, of which each takes `least` bytes or more. It fails
   for more of them than the rest of the body can hold. */
size_t qdqi_wire_get_count(struct qdqi_wire *wire, size_t least);

/* Returns false when the other side is gone, or the body has failed. */
bool qdqi_wire_send(int fd, enum qdqi_wire_kind kind, const struct qdqi_wire *body,
                    const void *attached, size_t n_attached);

/* Receives a message. The caller frees *ret_body and, with free(), *ret_attached, which is
   NULL when nothing is attached. Returns false when the other side is gone, broke the
   protocol, or sent more than there is memory for. */
bool qdqi_wire_receive(int fd, enum qdqi_wire_kind *ret_kind,
                       struct qdqi_wire *ret_body, void **ret_attached,
                       size_t *ret_n_attached);

#endif
