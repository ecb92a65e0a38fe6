# SPDX-License-Identifier: Apache-2.0
"""Rounding by second moments in numpy and float64, written from docs/spec.md, and a reader
of the moments in a file of observations (engine/range/observations.h)."""

import struct

import numpy as np

MAGIC = b"QDQOBS1\n"
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
        weight = file.text().split("\n")[0]
        groups, k = file.get("II")
        found[weight] = [Moment(file, k) for _ in range(groups)]
    assert file.at == len(file.data)
    return found


def nearest(w, s, low, high):
    return np.clip(np.rint(w / s), low, high)


def narrow(w, scales, diagonal, low, high):
    """One scale for each row: the share of it with the least weighted error."""
    best, least = scales.copy(), np.full(len(w), np.inf)
    for k in range(71):
        tried = (scales * (1 - 0.01 * k)).astype(np.float32).astype(np.float64)[:, None]
        error = (diagonal * (w - nearest(w, tried, low, high) * tried) ** 2).sum(axis=1)
        better = error < least
        best[better], least[better] = tried[better, 0], error[better]
    return best


def compensate(w, scales, c, low, high):
    """GPTQ as its paper has it; w and c in the order of rounding."""
    damped = c + np.eye(len(c)) * 0.01 * np.diag(c).mean()
    upper = np.linalg.cholesky(np.linalg.inv(damped)).T
    w, q = w.copy(), np.zeros_like(w)
    for i in range(len(c)):
        q[:, i] = nearest(w[:, i], scales, low, high)
        error = (w[:, i] - q[:, i] * scales) / upper[i, i]
        w[:, i:] -= error[:, None] * upper[i, i:]
    return q


def refine(w, scales, q, c, low, high):
    """Three rounds of least-squares scales and up to five passes of coordinate descent."""
    for _ in range(3):
        gradient = (w - q * scales[:, None]) @ c
        bottom = ((q @ c) * q).sum(axis=1)
        safe = np.where(bottom > 0, bottom, 1)
        fitted = np.where(bottom > 0, scales + (q * gradient).sum(axis=1) / safe, scales)
        fitted = fitted.astype(np.float32).astype(np.float64)
        fitted = np.where((fitted < scales / 4) | (fitted > scales * 4), scales, fitted)
        gradient += (q @ c) * (scales - fitted)[:, None]
        scales = fitted
        live = np.ones(len(w), bool)
        for _ in range(5):
            moved = np.zeros(len(w), bool)
            for i in np.flatnonzero(np.diag(c) > 0):
                wanted = q[:, i] * scales + gradient[:, i] / c[i, i]
                now = np.where(live, nearest(wanted, scales, low, high), q[:, i])
                step = (q[:, i] - now) * scales
                gradient += step[:, None] * c[i]
                moved |= now != q[:, i]
                q[:, i] = now
            live &= moved
    return q, scales


def round_rows(w, scales, moment, bits, centred):
    """The integers of outputs by inputs, and their scales, one for each output."""
    limit = 2 ** (bits - 1) - 1
    low, high = -limit - 1, limit
    c = moment.blocks[0] - (np.outer(moment.mean, moment.mean) if centred else 0)
    order = np.argsort(-np.diag(c), kind="stable")
    if bits < 8:
        scales = narrow(w, scales, np.diag(c), low, high)
    w, c = w[:, order], c[np.ix_(order, order)]
    q = compensate(w, scales, c, low, high)
    if bits < 8:
        q, scales = refine(w, scales, q, c, low, high)
    back = np.empty_like(q)
    back[:, order] = q
    return back, scales
