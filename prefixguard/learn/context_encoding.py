"""The context as a network reads it: standardised values, piecewise-linear bins, hazards of the step index."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from prefixguard.learn.scaling import ContextScale


class ContextEncoding(nn.Module):
    """Context vector (..., d) -> (..., size). Nothing in it is trained by gradient; all of it is fitted before."""

    mean: Tensor
    std: Tensor
    low: Tensor
    width: Tensor
    feature: Tensor
    hazards: Tensor

    def __init__(self, scale: ContextScale) -> None:
        super().__init__()
        self.size = scale.size
        for name in ("mean", "std", "low", "width", "feature", "hazards"):
            self.register_buffer(name, torch.from_numpy(getattr(scale, name).copy()))

    def forward(self, context: Tensor) -> Tensor:
        standard = ((context - self.mean) / self.std).clamp(-4, 4)  # (..., d)
        bins = ((context[..., self.feature] - self.low) / self.width).clamp(0, 1)  # (..., bins)
        step = (context[..., 0].long() - 1).clamp(0, self.hazards.shape[0] - 1)  # feature 0 is the step, from 1
        return torch.cat((standard, bins, self.hazards[step]), dim=-1)
