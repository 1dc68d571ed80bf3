"""An epoch of a DataLoader: samples made in Python and NumPy, collated into batches, by worker processes and without."""

from __future__ import annotations

import numpy as np

from .case import Case

_SAMPLES, _BATCH = 2048, 64
_SHAPE = (3, 64, 64)


class _Images:
    """Images of 8 bits, turned into normalised floats, as a data set does it: some work for each sample."""

    def __init__(self) -> None:
        self.images = np.random.default_rng(0).integers(0, 256, (256, *_SHAPE), dtype="uint8")

    def __len__(self) -> int:
        return _SAMPLES

    def __getitem__(self, index: int):
        image = self.images[index % len(self.images)]
        if index % 2:
            image = image[:, :, ::-1]
        return (image.astype("float32") - 128.0) * (1 / 64), index % 10


def _epoch(loader):
    def run():
        labels = 0
        for _, label in loader:
            labels += int(label.sum())
        return np.array([labels], "float64")

    return run


def _paddle(workers: int):
    def body(p):
        class Data(_Images, p.io.Dataset):
            pass

        return _epoch(p.io.DataLoader(Data(), batch_size=_BATCH, num_workers=workers, persistent_workers=workers > 0))

    return body


def _torch(workers: int):
    def body(t):
        from torch.utils.data import DataLoader

        return _epoch(DataLoader(_Images(), batch_size=_BATCH, num_workers=workers, persistent_workers=workers > 0))

    return body


CASES = tuple(
    Case(f"an epoch of {_SAMPLES} images, {workers} workers", "loader", _paddle(workers), _torch(workers)) for workers in (0, 2)
)
