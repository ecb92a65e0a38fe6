# SPDX-License-Identifier: Apache-2.0
"""Exports a PyTorch model to ONNX, and quantizes it with samples of a DataLoader.

    python3 export_int8.py OUTPUT [MIN_SQNR_DB]
"""

import sys

import qdqd
import torch
from torch import nn


def make_net() -> nn.Module:
    """Stands for your model."""
    torch.manual_seed(1)
    return nn.Sequential(nn.Conv2d(3, 16, 3, padding=1), nn.ReLU(), nn.Conv2d(16, 32, 3, 2),
                         nn.ReLU(), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(32, 10))


def make_loader() -> torch.utils.data.DataLoader:
    """Stands for your data: some hundred samples like those that the model will see."""
    images = torch.randn(128, 3, 32, 32)
    return torch.utils.data.DataLoader(torch.utils.data.TensorDataset(images), batch_size=32)


def main() -> None:
    output = sys.argv[1]
    bound = float(sys.argv[2]) if len(sys.argv) > 2 else 20.0
    exported = output + ".float"
    torch.onnx.export(make_net().eval(), (torch.zeros(1, 3, 32, 32),), exported,
                      input_names=["image"], output_names=["scores"],
                      dynamic_axes={"image": {0: "n"}, "scores": {0: "n"}})
    try:
        result = qdqd.quantize(exported, (images.numpy() for (images,) in make_loader()),
                               {"accept": {"min_sqnr_db": bound}})
    except qdqd.Error as error:
        sys.exit(f"qdqd: {error}")
    result.save(output)
    print(f"{output}: verdict {result.verdict}")


if __name__ == "__main__":
    main()
