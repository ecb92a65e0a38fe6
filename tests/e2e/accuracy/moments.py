# SPDX-License-Identifier: Apache-2.0
"""Rounding by second moments in numpy and float64, written from docs/reference/accuracy-methods.md, and a reader
of the moments in a file of observations (engine/numbers/range/observations.h)."""

import struct

import numpy as np

MAGIC = b"QDQOBS2\n"
WHOLE, BLOCK, WIDE, STEP = 4608, 2304, 64, 16


class File:
    def __init__(self, data):
        self.data, self.at = data, 0

    def get(self, form):
        values = struct.unpack_from("<" + form, self.data, self.at)
        self.at += struct.calcsize("<" + form)
        return values[0] if len(values) == 1 else values

    def text(self):
        n = self.get("I")
        self.at += n
        return self.data[self.at - n:self.at].decode()

    def array(self, dtype, n):
        found = np.frombuffer(self.data, dtype, n, self.at)
        self.at += found.nbytes
        return found


def up(n, step):
    return -(-n // step) * step


class Moment:
    """E[x] and, by block of elements, E[x x^T]."""

    def __init__(self, file, k):
        self.k, rows = k, file.get("Q")
        n_blocks = 1 if k <= WHOLE else -(-k // BLOCK)
        self.block = k if n_blocks == 1 else up(-(-k // n_blocks), WIDE)
        tile = WIDE if k >= WIDE else up(k, STEP)
        side = up(self.block, tile) // tile
        self.mean = file.array("<f8", k) / rows
        self.blocks = []
        for first in range(0, k, self.block):
            whole = np.zeros((side * tile, side * tile))
            for i in range(side):
                for j in range(i, side):
                    part = file.array("<f4", tile * tile).reshape(tile, tile)
                    whole[i * tile:(i + 1) * tile, j * tile:(j + 1) * tile] = part
            n = min(self.block, k - first)
            whole = np.triu(whole)[:n, :n]
            self.blocks.append((whole + np.triu(whole, 1).T) / rows)


def read(path):
    """The moments of each weight: one for each group."""
    file = File(path.read_bytes())
    assert file.data.startswith(MAGIC)
    file.at = 24
    file.text(), file.get("qq"), file.text()
    for _ in range(file.get("I")):
        file.text(), file.get("iiIddqi")
        file.array("<u8", file.get("I"))
    found = {}
    for _ in range(file.get("I")):
        weight = file.text().split("\n")[1]  # behind the target
        groups, k = file.get("II")
        found[weight] = [Moment(file, k) for _ in range(groups)]
    assert file.at == len(file.data)
    return found


class Scales:
    """The scales of rows, [rows, scales], and which one each element has. Integers go from
    `low` to `high`, [rows, scales]: the zero point is taken off."""

    def __init__(self, scales, of, low, high):
        self.s, self.of = scales.astype(np.float32).astype(np.float64), of
        self.low, self.high = (np.broadcast_to(x, scales.shape) for x in (low, high))

    def nearest(self, w, i):
        """The integers for numbers that stand at element i of the rows."""
        b = self.of[i]
        return np.clip(np.rint(w / self.s[:, b]), self.low[:, b], self.high[:, b])


def narrow(w, scales, diagonal):
    """Each scale becomes the share of it with the least weighted error."""
    most, of, least = scales.s.copy(), scales.of, np.full(scales.s.shape, np.inf)
    best, belongs = most.copy(), np.eye(most.shape[1])[of]
    for k in range(71):
        tried = (most * (1 - 0.01 * k)).astype(np.float32).astype(np.float64)
        q = np.clip(np.rint(w / tried[:, of]), scales.low[:, of], scales.high[:, of])
        error = (diagonal * (w - q * tried[:, of]) ** 2) @ belongs
        better = error < least
        best[better], least[better] = tried[better], error[better]
    scales.s = best


def compensate(w, scales, c):
    """GPTQ as its paper has it; w and c in the order of rounding."""
    damped = c + np.eye(len(c)) * 0.01 * np.diag(c).mean()
    upper = np.linalg.cholesky(np.linalg.inv(damped)).T
    w, q = w.copy(), np.zeros_like(w)
    for i in range(len(c)):
        q[:, i] = scales.nearest(w[:, i], i)
        error = (w[:, i] - q[:, i] * scales.s[:, scales.of[i]]) / upper[i, i]
        w[:, i:] -= error[:, None] * upper[i, i:]
    return q


def fit(scales, b, q, gradient, c):
    """Least squares for scale b of each row, whose elements have these integers. Returns
    by how much the scales are less."""
    product, before = q @ c, scales.s[:, b].copy()
    bottom = (product * q).sum(axis=1)
    safe = np.where(bottom > 0, bottom, 1)
    after = before + np.where(bottom > 0, (q * gradient).sum(axis=1) / safe, 0)
    after = after.astype(np.float32).astype(np.float64)
    wild = (after < before / 4) | (after > before * 4)
    scales.s[:, b] = np.where(wild, before, after)
    return before - scales.s[:, b]


def descend(scales, q, gradient, c, elements, live):
    """One pass along some elements: each integer goes to where the error is least while
    the others stay. `gradient` and `c` are those of these elements. Returns which rows
    moved."""
    moved = np.zeros(len(q), bool)
    for k, i in enumerate(elements):
        if c[k, k] <= 0:
            continue
        s = scales.s[:, scales.of[i]]
        now = scales.nearest(q[:, i] * s + gradient[:, k] / c[k, k], i)
        now = np.where(live, now, q[:, i])
        gradient += ((q[:, i] - now) * s)[:, None] * c[k]
        moved |= now != q[:, i]
        q[:, i] = now
    return moved


def refine_block(scales, b, q, gradient, c):
    """Fits scale b and descends along its elements. Returns which rows moved."""
    own = np.flatnonzero(scales.of == b)
    own = own[np.argsort(scales.elements[own])]
    part, before = c[np.ix_(own, own)], q[:, own] * scales.s[:, b:b + 1]
    near = gradient[:, own].copy()
    near += (q[:, own] @ part) * fit(scales, b, q[:, own], near, part)[:, None]
    moved = descend(scales, q, near, part, own, True)
    gradient += (before - q[:, own] * scales.s[:, b:b + 1]) @ c[own]
    return moved


def refine(w, scales, q, c):
    """Three rounds of least-squares scales and five passes of coordinate descent, of which
    the first goes scale by scale where at most 128 elements share one."""
    n = scales.s.shape[1]
    gradient = (w - q * scales.s[:, scales.of]) @ c
    for _ in range(3):
        live = np.zeros(len(w), bool)
        few = len(c) / n <= 128
        for b in range(n):
            if few:
                live |= refine_block(scales, b, q, gradient, c)
            else:
                own = q * (scales.of == b)
                gradient += (own @ c) * fit(scales, b, own, gradient, c)[:, None]
        live |= not few
        for _ in range(5 - few):
            live = descend(scales, q, gradient, c, range(len(c)), live)
    return q


def round_rows(w, scales, of, moment, bits, centred, zero=0):
    """The integers of outputs by inputs, less their zero points, and the scales that they
    got. `scales` are [outputs, scales], and of[i] is that of element i."""
    limit = 2 ** (bits - 1) - 1
    c = moment.blocks[0] - (np.outer(moment.mean, moment.mean) if centred else 0)
    order = np.argsort(-np.diag(c), kind="stable")
    low, high = (0, 2 * limit + 1) if np.any(zero) else (-limit - 1, limit)
    made = Scales(scales, of, low - zero, high - zero)
    if bits < 8:
        narrow(w, made, np.diag(c))
    w, c = w[:, order], c[np.ix_(order, order)]
    made.of, made.elements = of[order], order
    q = compensate(w, made, c)
    if bits < 8:
        q = refine(w, made, q, c)
    back = np.empty_like(q)
    back[:, order] = q
    return back, made.s
