/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "runtimes/process/wire.h"
#include "ground/base/arena.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* The largest body and attachment, in bytes. */
static const uint64_t MOST = UINT64_C(4) << 30;

void
qdqi_wire_free(struct qdqi_wire *wire)
{
    free(wire->data);
    *wire = (struct qdqi_wire){0};
}

/* --- writing -------------------------------------------------------------- */

static size_t
round_up(size_t n)
{
    return (n + 7) & ~(size_t)7;
}

/* Returns where `size` more bytes go, rounded up to 8; NULL when there is no memory. */
static uint8_t *
extend(struct qdqi_wire *w, size_t size)
{
    size_t whole = round_up(size), wanted = w->size + whole;
    w->failed = w->failed || whole < size || wanted < whole;
    if (w->failed)
        return NULL;
    uint8_t *data = qdqi_grow(w->data, &w->capacity, wanted, 1);
    if (!data) {
        w->failed = true;
        return NULL;
    }
    w->data = data;
    uint8_t *to = w->data + w->size;
    memset(to + size, 0, whole - size);
    w->size = wanted;
    return to;
}

void
qdqi_wire_put(struct qdqi_wire *w, uint64_t value)
{
    uint8_t *to = extend(w, sizeof value);
    if (to)
        memcpy(to, &value, sizeof value);
}

void
qdqi_wire_put_real(struct qdqi_wire *w, double value)
{
    uint64_t bits;
    memcpy(&bits, &value, sizeof bits);
    qdqi_wire_put(w, bits);
}

void
qdqi_wire_put_bytes(struct qdqi_wire *w, const void *bytes, size_t size)
{
    qdqi_wire_put(w, size);
    uint8_t *to = extend(w, size);
    if (to && size)
        memcpy(to, bytes, size);
}

void
qdqi_wire_put_text(struct qdqi_wire *w, const char *text)
{
    qdqi_wire_put_bytes(w, text, strlen(text) + 1);
}

/* --- reading -------------------------------------------------------------- */

/* Returns the next `size` bytes; NULL when there are not so many. */
static const uint8_t *
take(struct qdqi_wire *w, size_t size)
{
    size_t left = w->size - w->at, whole = round_up(size);
    if (w->failed || whole < size || whole > left) {
        w->failed = true;
        return NULL;
    }
    const uint8_t *from = w->data + w->at;
    w->at += whole;
    return from;
}

uint64_t
qdqi_wire_get(struct qdqi_wire *w)
{
    uint64_t value = 0;
    const uint8_t *from = take(w, sizeof value);
    if (from)
        memcpy(&value, from, sizeof value);
    return value;
}

double
qdqi_wire_get_real(struct qdqi_wire *w)
{
    uint64_t bits = qdqi_wire_get(w);
    double value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

const void *
qdqi_wire_get_bytes(struct qdqi_wire *w, size_t *ret_size)
{
    uint64_t size = qdqi_wire_get(w);
    const void *from = size <= SIZE_MAX ? take(w, (size_t)size) : NULL;
    *ret_size = from ? (size_t)size : 0;
    return from;
}

const char *
qdqi_wire_get_text(struct qdqi_wire *w)
{
    size_t size;
    const char *text = qdqi_wire_get_bytes(w, &size);
    if (!text || size == 0 || text[size - 1])
        w->failed = true;
    return w->failed ? "" : text;
}

size_t
qdqi_wire_get_count(struct qdqi_wire *w, size_t least)
{
    uint64_t n = qdqi_wire_get(w);
    if (n > (w->size - w->at) / least)
        w->failed = true;
    return w->failed ? 0 : (size_t)n;
}

/* --- the socket ----------------------------------------------------------- */

static bool
write_all(int fd, const void *bytes, size_t size)
{
    const uint8_t *from = bytes;
    while (size > 0) {
        ssize_t n = write(fd, from, size);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return false;
        from += n;
        size -= (size_t)n;
    }
    return true;
}

static bool
read_all(int fd, void *bytes, size_t size)
{
    uint8_t *to = bytes;
    while (size > 0) {
        ssize_t n = read(fd, to, size);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return false;
        to += n;
        size -= (size_t)n;
    }
    return true;
}

bool
qdqi_wire_send(int fd, enum qdqi_wire_kind kind, const struct qdqi_wire *body,
               const void *attached, size_t n_attached)
{
    const uint64_t head[] = {kind, body->size, n_attached};
    return !body->failed && write_all(fd, head, sizeof head) &&
           write_all(fd, body->data, body->size) && write_all(fd, attached, n_attached);
}

bool
qdqi_wire_receive(int fd, enum qdqi_wire_kind *ret_kind, struct qdqi_wire *ret_body,
                  void **ret_attached, size_t *ret_n_attached)
{
    uint64_t head[3];
    *ret_body = (struct qdqi_wire){0};
    *ret_attached = NULL;
    *ret_n_attached = 0;
    if (!read_all(fd, head, sizeof head) || head[0] > QDQI_WIRE_FAILED ||
        head[1] > MOST || head[2] > MOST)
        return false;
    *ret_kind = (enum qdqi_wire_kind)head[0];
    ret_body->data = malloc((size_t)head[1] + 1);
    ret_body->size = ret_body->capacity = (size_t)head[1];
    *ret_n_attached = (size_t)head[2];
    if (head[2])
        *ret_attached = malloc((size_t)head[2]);
    if (ret_body->data && (*ret_attached || !head[2]) &&
        read_all(fd, ret_body->data, (size_t)head[1]) &&
        read_all(fd, *ret_attached, (size_t)head[2]))
        return true;
    qdqi_wire_free(ret_body);
    free(*ret_attached);
    *ret_attached = NULL;
    return false;
}
