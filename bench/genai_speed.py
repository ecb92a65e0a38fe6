# SPDX-License-Identifier: Apache-2.0
"""genai_speed.py IDS.npy FOLDER…: what a token costs in ONNX Runtime GenAI, by folder.

The first 64 ids of a row of IDS.npy are read and 64 tokens are made behind them, greedily, on one
thread. The folders take turns, 25 of them, each begun by the next one. Printed are milliseconds of processor for a token made
and for one read, and what they are of the first folder's in the same turn: medians. PYTHONPATH
has GenAI (tools/genai)."""

import statistics
import sys
import time

import numpy as np
import onnxruntime_genai as genai

from common import machine, table

READ, MADE, TURNS = 64, 64, 25
ONE_THREAD = '{"model": {"decoder": {"session_options": {"intra_op_num_threads": 1}}}}'


def opened(folder):
    config = genai.Config(folder)
    config.overlay(ONE_THREAD)
    return genai.Model(config)


def turn(model, ids):
    """Returns the seconds of processor that reading and making took."""
    params = genai.GeneratorParams(model)
    params.set_search_options(max_length=READ + MADE, min_length=READ + MADE, do_sample=False)
    generator = genai.Generator(model, params)
    start = time.process_time()
    generator.append_tokens(ids)
    read = time.process_time()
    while not generator.is_done():
        generator.generate_next_token()
    return read - start, time.process_time() - read


def main(ids, *folders):
    ids = np.load(ids)[0, :READ].astype(np.int32)
    models = [opened(folder) for folder in folders]
    taken = [[] for _ in models]
    for first in range(TURNS):
        for i in range(len(models)):
            which = (first + i) % len(models)
            taken[which].append(turn(models[which], ids))
    rows = []
    for folder, times in zip(folders, taken):
        row = [folder]
        for i, n in (1, MADE), (0, READ):
            ratios = [t[i] / first[i] for t, first in zip(times, taken[0])]
            row += [f"{statistics.median(t[i] for t in times) * 1000 / n:.2f}",
                    f"{statistics.median(ratios):.3f}"]
        rows.append(row)
    machine()
    table("milliseconds of processor for a token in ONNX Runtime GenAI, one thread",
          ["folder", "made", "of the first", "read", "of the first"], rows)


if __name__ == "__main__":
    main(*sys.argv[1:])
