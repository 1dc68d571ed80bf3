"""Natives refuse or survive whatever they are given."""

import pytest
from runtime.hostile_natives import RIGHT, faults, make

PARTS = 4


@pytest.mark.parametrize("call", [pytest.param(c, id=f"{k} {c.name}") for k, c in enumerate(RIGHT)])
def test_the_calls_that_others_are_made_from_are_right(call):
    if call.name == "matmul_pack_weights":
        pytest.skip("whether packing pays depends on the processor")
    make(call, 0)


@pytest.mark.parametrize("part", range(PARTS))
def test_natives_take_or_refuse_whatever_they_are_given(part):
    found = faults(RIGHT[part::PARTS], rounds=60, seed=part)
    assert not found, "\n".join(f"{f.call}: {f.what}" for f in found)
