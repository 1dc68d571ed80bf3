"""All cases, in the order in which they are shown."""

from __future__ import annotations

from . import convolution, eager, elementwise, embedding, inference, lenet, loader, matmul, models, optimizer, programs, rows
from .case import Case

CASES: tuple[Case, ...] = (
    *eager.CASES,
    *matmul.CASES,
    *elementwise.CASES,
    *rows.CASES,
    *convolution.CASES,
    *lenet.CASES,
    *models.CASES,
    *optimizer.CASES,
    *loader.CASES,
    *embedding.CASES,
    *programs.CASES,
    *inference.CASES,
)
BY_NAME = {case.name: case for case in CASES}
LENET = lenet.NAME
