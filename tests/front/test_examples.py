"""The examples in the docstrings of the front's Python parts run and give what they show."""

from __future__ import annotations

import doctest
import importlib

import pytest

MODULES = """
optimizer.lr.scheduler optimizer.lr.decays optimizer.lr.waves optimizer.lr.plateau framework.atomic framework.files
framework.safetensors io.dataset io.sampler io.collate io.dataloader io.worker metric.metrics regularizer hapi.event_file
hapi.callbacks hapi.model profiler.pictures.draw profiler.profiler profiler.states profiler.timer profiler.utils
""".split()


@pytest.mark.parametrize("module", MODULES)
def test_examples(module):
    result = doctest.testmod(importlib.import_module(f"sampan.{module}"), verbose=False)
    assert result.failed == 0
    assert result.attempted > 0
