"""Datasets, samplers and collation: values, errors, and equality with the real PaddlePaddle where it is installed."""

from __future__ import annotations

import collections
import json
from itertools import chain

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sampan import io

from .reference import ask_paddle, needs_paddle


class Stream(io.IterableDataset):
    def __iter__(self):
        return iter(range(3))


class Items(io.Dataset):
    def __init__(self, length, make=lambda i: i):
        self.length, self.make = length, make

    def __getitem__(self, index):
        return self.make(index)

    def __len__(self):
        return self.length


def test_datasets_put_together():
    pairs, numbers = Items(5, lambda i: (i, -i)), Items(3, lambda i: 10 * i)
    assert io.ComposeDataset([pairs, Items(5)])[2] == (2, -2, 2)
    joined = io.ConcatDataset([pairs, numbers])
    assert [joined[i] for i in (0, 4, 5, 7, -1, -8)] == [(0, 0), (4, -4), 0, 20, 20, (0, 0)]
    assert joined.cumulative_sizes == io.ConcatDataset.cumsum([pairs, numbers]) == [5, 8]
    assert list(io.ChainDataset([Stream(), Stream()])) == [0, 1, 2, 0, 1, 2]
    rows = io.TensorDataset([np.arange(6).reshape(3, 2), np.arange(3)])
    assert [field.tolist() for field in rows[2]] == [[4, 5], 2]
    assert len(rows) == 3


@pytest.mark.parametrize(
    ("call", "error", "text"),
    [
        (lambda: io.Dataset()[0], NotImplementedError, "define __getitem__"),
        (lambda: len(io.Dataset()), NotImplementedError, "define __len__"),
        (lambda: iter(io.IterableDataset()), NotImplementedError, "define __iter__"),
        (lambda: Stream()[0], RuntimeError, "has no indices"),
        (lambda: len(Stream()), RuntimeError, "has no length"),
        (lambda: len(Stream()), TypeError, "has no length"),
        (lambda: io.TensorDataset([np.ones(3), np.ones(2)]), ValueError, r"shapes are \[\[3\], \[2\]\]"),
        (lambda: io.TensorDataset([]), ValueError, "at least one tensor"),
        (lambda: io.TensorDataset([np.ones(())]), ValueError, "equal first axes"),
        (lambda: io.ComposeDataset([Items(3), Items(2)]), ValueError, r"lengths are \[3, 2\]"),
        (lambda: io.ComposeDataset([]), ValueError, "datasets is empty"),
        (lambda: io.ComposeDataset([Stream()]), TypeError, "use ChainDataset"),
        (lambda: io.ChainDataset([]), ValueError, "datasets is empty"),
        (lambda: io.ChainDataset([Items(3)]), TypeError, r"datasets\[0\] is .*use ConcatDataset"),
        (lambda: io.ConcatDataset([Items(2)])[2], IndexError, r"ConcatDataset\[2\]; it holds 2 samples"),
        (lambda: io.ConcatDataset([Items(2)])[-3], IndexError, "holds 2 samples"),
        (lambda: io.random_split(range(6), [2, 3]), ValueError, "must add up to the dataset's length, 6"),
        (lambda: io.RandomSampler([]), ValueError, r"the dataset \(list\) is empty"),
        (lambda: io.RandomSampler("abc", num_samples=0), ValueError, "num_samples is 0"),
        (lambda: io.RandomSampler("abc", num_samples=4), ValueError, "pass replacement=True"),
        (lambda: io.RandomSampler("abc", replacement=3), TypeError, "replacement is 3"),
        (lambda: io.WeightedRandomSampler([0.1, -0.3], 2), ValueError, "at least 0"),
        (lambda: io.WeightedRandomSampler([0.1, 0.0], 2, replacement=False), ValueError, "1 weights are positive; 2 indices"),
        (lambda: io.WeightedRandomSampler([0.0, 0.0], 1), ValueError, "0 weights are positive"),
        (lambda: io.WeightedRandomSampler([1.0], 0), ValueError, "num_samples is 0"),
        (lambda: io.WeightedRandomSampler([1.0], 1, 3), ValueError, "replacement is 3"),
        (lambda: io.SubsetRandomSampler([]), ValueError, "indices is empty"),
        (lambda: iter(io.Sampler()), NotImplementedError, "define __iter__"),
        (lambda: io.BatchSampler(), ValueError, "neither was given"),
        (lambda: io.BatchSampler("abc", sampler=[1]), ValueError, "both were given"),
        (lambda: io.BatchSampler("abc", batch_size=0), ValueError, "batch_size is 0"),
        (lambda: io.BatchSampler("abc", batch_size=2.0), TypeError, "batch_size is 2.0"),
        (lambda: io.BatchSampler("abc", shuffle=3), TypeError, "shuffle is 3"),
        (lambda: io.BatchSampler("abc", drop_last=3), TypeError, "drop_last is 3"),
        (lambda: io.BatchSampler(3), TypeError, "dataset is 3"),
        (lambda: io.BatchSampler(sampler=3), TypeError, "sampler is 3"),
        (lambda: io.BatchSampler(sampler=[1], shuffle=True), ValueError, "the sampler decides the order"),
        (lambda: io.DistributedBatchSampler("abc", 0), ValueError, "batch_size is 0"),
        (lambda: io.DistributedBatchSampler("abc", 1, num_replicas=0), ValueError, "num_replicas is 0"),
        (
            lambda: io.DistributedBatchSampler("abc", 1, num_replicas=2, rank=2),
            ValueError,
            "rank is 2; it must be an int from 0 to 1",
        ),
        (lambda: io.default_collate_fn([(1, None)]), TypeError, "a sample holds None"),
        (lambda: io.default_collate_fn([np.ones(2), np.ones(3)]), ValueError, r"have the shapes \[2\], \[3\]"),
        (lambda: io.default_collate_fn([(1, 2), (1,)]), ValueError, r"have \[1, 2\] fields"),
        (lambda: io.default_collate_fn([object()]), TypeError, "a sample holds a builtins.object"),
    ],
)
def test_bad_arguments_raise_with_the_argument_and_the_value(call, error, text):
    with pytest.raises(error, match="(?s)" + text):
        call()


@settings(deadline=None)
@given(st.integers(0, 40), st.integers(1, 5))
def test_random_split_is_a_partition(total, parts):
    sizes = np.random.multinomial(total, np.ones(parts) / parts).tolist()
    subsets = io.random_split(range(total), sizes)
    assert [len(s) for s in subsets] == sizes
    assert sorted(s[i] for s in subsets for i in range(len(s))) == list(range(total))


def test_random_split_takes_parts_of_one():
    assert [len(s) for s in io.random_split(range(7), [0.5, 0.5])] == [4, 3]
    assert [len(s) for s in io.random_split(range(10), [0.8, 0.1, 0.1])] == [8, 1, 1]


def test_random_sampler_draws():
    assert sorted(io.RandomSampler(range(9))) == list(range(9))
    few = list(io.RandomSampler(range(9), num_samples=4))
    assert len(set(few)) == len(few) == 4
    assert len(list(io.RandomSampler(range(3), replacement=True, num_samples=20))) == 20
    assert list(io.RandomSampler(range(4), generator=iter([3, 1, 2, 0, 9]))) == [3, 1, 2, 0]
    assert list(io.RandomSampler(range(4), generator=lambda: iter([3, 1]))) == [3, 1]


def test_weighted_sampler_follows_the_weights():
    np.random.seed(0)
    sampler = io.WeightedRandomSampler([1, 0, 3], 4000)
    counts = np.bincount(list(sampler), minlength=3) / len(sampler)
    np.testing.assert_allclose(counts, [0.25, 0, 0.75], atol=0.03)
    assert sorted(io.WeightedRandomSampler([1, 2, 3], 3, replacement=False)) == [0, 1, 2]
    rows = list(io.WeightedRandomSampler([[1, 0], [0, 1]], 2))
    assert rows == [0, 0, 1, 1]


def test_batch_sampler_sizes():
    assert list(io.BatchSampler(range(5), batch_size=2, drop_last=True)) == [[0, 1], [2, 3]]
    sampler = io.BatchSampler(sampler=[4, 2, 3], batch_size=2)
    assert list(sampler) == [[4, 2], [3]]
    assert len(sampler) == 2
    assert sorted(chain.from_iterable(io.BatchSampler(range(7), shuffle=True, batch_size=3))) == list(range(7))


@settings(deadline=None)
@given(st.integers(1, 50), st.integers(1, 6), st.integers(1, 5), st.booleans())
def test_processes_share_a_dataset_evenly_and_wholly(length, batch_size, count, shuffle):
    samplers = [io.DistributedBatchSampler(range(length), batch_size, count, rank, shuffle=shuffle) for rank in range(count)]
    batches = [list(sampler) for sampler in samplers]
    seen = [index for mine in batches for batch in mine for index in batch]
    assert set(seen) == set(range(length))
    assert [len(mine) for mine in batches] == [len(sampler) for sampler in samplers]
    assert len(seen) == -(-length // count) * count


def test_set_epoch_fixes_the_shuffled_order():
    sampler = io.DistributedBatchSampler(range(20), 3, 2, 0, shuffle=True)
    first, second = list(sampler), list(sampler)
    sampler.set_epoch(0)
    assert list(sampler) == first != second


PADDLE_ORDERS = """
import json, numpy as np, paddle
io = paddle.io
def orders(io):
    found = []
    np.random.seed(3)
    found.append([int(i) for i in io.RandomSampler(range(9))])
    found.append([int(i) for i in io.RandomSampler(range(9), replacement=True)])
    found.append([int(i) for i in io.RandomSampler(range(9), num_samples=4)])
    found.append([int(i) for i in io.WeightedRandomSampler(np.array([0.1, 0.4, 0.5]), 6)])
    found.append([list(map(int, b)) for b in io.BatchSampler(range(7), shuffle=True, batch_size=3)])
    for length, size, count in ((7, 2, 2), (11, 3, 4), (2, 2, 5), (24, 3, 2), (17, 4, 3)):
        for rank in range(count):
            for drop_last in (False, True):
                for shuffle in (False, True):
                    sampler = io.DistributedBatchSampler(range(length), size, count, rank, shuffle=shuffle, drop_last=drop_last)
                    sampler.set_epoch(2)
                    found.append([[list(map(int, b)) for b in sampler], len(sampler)])
    return found
if __name__ == "__main__":
    print(json.dumps(orders(io)))
"""


@needs_paddle
def test_orders_equal_paddles_for_the_same_numpy_seed():
    names = {"__name__": "ours", "paddle": None}
    source = PADDLE_ORDERS.replace("import json, numpy as np, paddle", "import numpy as np").replace("io = paddle.io\n", "")
    exec(source, names)
    for mine, other in zip(names["orders"](io), ask_paddle(PADDLE_ORDERS), strict=True):
        assert json.loads(json.dumps(mine)) == other


def test_collation_of_every_kind():
    Point = collections.namedtuple("Point", "x y")
    samples = [(np.full(2, i, "float32"), i, 0.5, "text", {"k": [True, Point(np.int8(i), b"b")]}) for i in range(3)]
    arrays, ints, floats, text, nested = io.default_collate_fn(samples)
    assert (arrays.shape, arrays.dtype) == ((3, 2), np.float32)
    assert (ints.dtype, floats.dtype, text) == (np.int64, np.float64, ["text"] * 3)
    flags, (numbers, raw) = nested["k"]
    assert (flags.dtype, numbers.dtype, raw) == (bool, np.int8, [b"b"] * 3)
    assert io.default_collate_fn([np.float16(1), np.float16(2)]).dtype == np.float16
    assert io.default_collate_fn([np.ones(1, ml_dtypes.bfloat16)]).dtype == ml_dtypes.bfloat16
    assert io.default_collate_fn([np.ones(2, "int32"), np.ones(2, "float32")]).dtype == np.float64
