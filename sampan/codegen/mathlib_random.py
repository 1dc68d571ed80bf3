"""Counter-based random bits: Philox4x32-10 (Salmon et al., "Parallel random numbers: as easy as 1, 2, 3", 2011)."""

from __future__ import annotations

from sampan.codegen.llvm_text import U64, Value, make_type
from sampan.codegen.scalar_ops import scalar_op

_MULTIPLIERS = (0xD2511F53, 0xCD9E8D57)
_WEYL = (0x9E3779B9, 0xBB67AE85)
_MASK = 0xFFFFFFFF


def _philox(seed: Value, counter: Value) -> list[Value]:
    """The four 32-bit words of a block, each in a 64-bit lane.

    The key is the seed's low and high half; the block's counter is (counter low, counter high, 0, 0).
    """
    type_ = U64.with_lanes(seed.type.lanes)
    seed, counter = seed.bits_as(type_), counter.bits_as(type_)
    zero = seed.writer.constant(0, type_)
    key = [seed & _MASK, seed >> 32]
    words = [counter & _MASK, counter >> 32, zero, zero]
    for _ in range(10):
        first, second = words[0] * _MULTIPLIERS[0], words[2] * _MULTIPLIERS[1]
        words = [(second >> 32) ^ words[1] ^ key[0], second & _MASK, (first >> 32) ^ words[3] ^ key[1], first & _MASK]
        key = [(k + w) & _MASK for k, w in zip(key, _WEYL)]
    return words


@scalar_op("random_bits", "i", 2, "uint32", cost=200, dtypes=("int64",))
def random_bits(seed: Value, counter: Value) -> Value:
    """Word 0 of the block that counter numbers, under the key seed."""
    return _philox(seed, counter)[0].convert("trunc", make_type("u", 32, seed.type.lanes))


@scalar_op("random_bits64", "i", 2, "int64", cost=200, dtypes=("int64",))
def random_bits64(seed: Value, counter: Value) -> Value:
    """Words 0 (low half) and 1 (high half) of the block that counter numbers, under the key seed."""
    words = _philox(seed, counter)
    return (words[0] | (words[1] << 32)).bits_as(make_type("i", 64, seed.type.lanes))
