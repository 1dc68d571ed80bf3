"""Fixtures of the runtime's tests."""

from __future__ import annotations

import pytest
from runtime import hand_made_ops as ops

from sampan import _rt


@pytest.fixture
def add_op():
    """Gradients are added by the hand-made op, and the test leaves recording on."""
    before = _rt.set_add_op(ops.add.op)
    yield
    _rt.set_add_op(before)
    assert _rt.grad_enabled()
