/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "files/data/parquet/encodings.h"

#include <string.h>

enum {
    MOST_MINIS = 512,       /* miniblocks of a block */
    MOST_MINI_SIZE = 65536, /* values of a miniblock; both are 4 and 32 as a rule */
};

static bool
take_varint(const unsigned char **at, const unsigned char *end, uint64_t *ret)
{
    *ret = 0;
    for (unsigned shift = 0; shift < 64 && *at < end; shift += 7) {
        const unsigned byte = *(*at)++;
        *ret |= (uint64_t)(byte & 0x7f) << shift;
        if (byte < 0x80)
            return true;
    }
    return false;
}

/* Returns `width` bits, at most 64, that begin at a bit of the bytes; they must be there. */
static uint64_t
bits_at(const unsigned char *from, uint64_t bit, unsigned width)
{
    const unsigned char *p = from + bit / 8;
    const unsigned shift = bit % 8, n = (shift + width + 7) / 8;
    uint64_t low = 0;
    for (unsigned i = 0; i < n && i < 8; i++)
        low |= (uint64_t)p[i] << 8 * i;
    low >>= shift;
    if (n > 8)
        low |= (uint64_t)p[8] << (64 - shift);
    return width < 64 ? low & ((1ull << width) - 1) : low;
}

/* --- runs ----------------------------------------------------------------- */

void
qdqi_rle_start(struct qdqi_rle *r, const unsigned char *from, size_t size,
               unsigned width)
{
    *r = (struct qdqi_rle){.at = from, .end = from + size, .width = width};
}

/* Enters the next run. The bytes of its values are there. */
static bool
next_run(struct qdqi_rle *r)
{
    uint64_t head;
    if (!take_varint(&r->at, r->end, &head))
        return false;
    const size_t there = (size_t)(r->end - r->at);
    r->is_packed = head & 1;
    r->left = head >> 1;
    if (!r->is_packed) {
        const size_t n = (r->width + 7) / 8;
        if (n > there)
            return false;
        r->value = (uint32_t)bits_at(r->at, 0, (unsigned)n * 8);
        if (r->width < 32 && r->value >> r->width)
            return false;
        r->at += n;
        return true;
    }
    if (r->left > SIZE_MAX / 64)
        return false;
    /* groups of 8 values; the last run may end with the bytes */
    const uint64_t bytes = r->left * r->width;
    r->left *= 8;
    r->run = r->at;
    r->bit = 0;
    if (bytes > there)
        r->left = (uint64_t)there * 8 / r->width;
    r->at += bytes < there ? bytes : there;
    return true;
}

bool
qdqi_rle_take(struct qdqi_rle *r, uint32_t *to, size_t n)
{
    while (n > 0) {
        if (r->left == 0 && !next_run(r))
            return false;
        const size_t take = r->left < n ? (size_t)r->left : n;
        for (size_t i = 0; i < take && r->is_packed; i++, r->bit += r->width)
            to[i] = (uint32_t)bits_at(r->run, r->bit, r->width);
        for (size_t i = 0; i < take && !r->is_packed; i++)
            to[i] = r->value;
        r->left -= take;
        to += take;
        n -= take;
    }
    return true;
}

/* --- differences ---------------------------------------------------------- */

static uint64_t
unfold(uint64_t zigzag)
{
    return zigzag >> 1 ^ (0 - (zigzag & 1));
}

bool
qdqi_deltas_start(struct qdqi_deltas *d, const unsigned char *from, size_t size)
{
    uint64_t block, minis, total, first;
    *d = (struct qdqi_deltas){.at = from, .end = from + size, .is_first = true};
    if (!take_varint(&d->at, d->end, &block) || !take_varint(&d->at, d->end, &minis) ||
        !take_varint(&d->at, d->end, &total) || !take_varint(&d->at, d->end, &first))
        return false;
    if (minis == 0 || minis > MOST_MINIS || block % minis != 0 ||
        block / minis % 8 != 0 || block / minis == 0 || block / minis > MOST_MINI_SIZE)
        return false;
    d->n_minis = d->mini = (size_t)minis;
    d->mini_size = d->in_mini = (size_t)(block / minis);
    d->left = total;
    d->value = unfold(first);
    return true;
}

static bool
next_block(struct qdqi_deltas *d)
{
    uint64_t least;
    if (!take_varint(&d->at, d->end, &least) || (size_t)(d->end - d->at) < d->n_minis)
        return false;
    d->least = unfold(least);
    d->widths = d->at;
    d->at += d->n_minis;
    d->mini = 0;
    return true;
}

static bool
next_mini(struct qdqi_deltas *d)
{
    if (d->mini == d->n_minis && !next_block(d))
        return false;
    d->width = d->widths[d->mini++];
    const size_t bytes = d->mini_size / 8 * d->width;
    if (d->width > 64 || (size_t)(d->end - d->at) < bytes)
        return false;
    d->bits = d->at;
    d->at += bytes;
    d->in_mini = 0;
    return true;
}

bool
qdqi_deltas_take(struct qdqi_deltas *d, int64_t *to, size_t n)
{
    if (n > d->left)
        return false;
    for (size_t i = 0; i < n; i++) {
        if (!d->is_first) {
            if (d->in_mini == d->mini_size && !next_mini(d))
                return false;
            d->value +=
                d->least + bits_at(d->bits, (uint64_t)d->in_mini * d->width, d->width);
            d->in_mini++;
        }
        d->is_first = false;
        to[i] = (int64_t)d->value;
    }
    d->left -= n;
    return true;
}
