"""The DataLoader: batches, workers, seeds, failures, clean ends, resuming."""

from __future__ import annotations

import faulthandler
import gc
import os
import random
import signal
import subprocess
import sys
import textwrap
import time
from itertools import chain
from pathlib import Path

import numpy as np
import pytest

from sampan import io
from sampan.framework import load, save
from sampan.framework.arrays import to_array
from sampan.tensor.random import get_rng_state


class Rows(io.Dataset):
    """Sample i is (an array full of i, i)."""

    def __init__(self, length=20, shape=(3, 4)):
        self.length, self.shape = length, shape

    def __getitem__(self, index):
        return np.full(self.shape, index, "float32"), index

    def __len__(self):
        return self.length


class Stream(io.IterableDataset):
    """0 to length - 1, each worker its share."""

    def __init__(self, length, is_shared=True):
        self.length, self.is_shared = length, is_shared

    def __iter__(self):
        info = io.get_worker_info()
        if info is None or not self.is_shared:
            return iter(range(self.length))
        return iter(range(info.id, self.length, info.num_workers))


class Calls(io.Dataset):
    """Sample i is what the function returns for i."""

    def __init__(self, function, length=8):
        self.function, self.length = function, length

    def __getitem__(self, index):
        return self.function(index)

    def __len__(self):
        return self.length


def numbers(loader):
    return [to_array(batch[1] if isinstance(batch, list) else batch).tolist() for batch in loader]


def worker_processes():
    import multiprocessing

    return [p for p in multiprocessing.active_children() if p.name.startswith("DataLoader")]


@pytest.fixture(autouse=True)
def _no_worker_is_left():
    yield
    gc.collect()
    assert not worker_processes()


@pytest.mark.parametrize("workers", [0, 1, 3])
@pytest.mark.parametrize("use_shared_memory", [True, False])
def test_batches_come_in_order_whole_and_right(workers, use_shared_memory):
    loader = io.DataLoader(Rows(), batch_size=3, num_workers=workers, use_shared_memory=use_shared_memory)
    seen = []
    for arrays, labels in loader:
        arrays, labels = to_array(arrays), to_array(labels)
        assert arrays.shape == (len(labels), 3, 4)
        assert (arrays[:, 0, 0] == labels).all()
        assert arrays.dtype == np.float32
        seen += labels.tolist()
    assert seen == list(range(20))
    assert len(loader) == 7


@pytest.mark.parametrize("workers", [0, 2])
def test_options_of_order(workers):
    def make(**options):
        return io.DataLoader(Rows(7), num_workers=workers, **options)

    assert numbers(make(batch_size=3, drop_last=True)) == [[0, 1, 2], [3, 4, 5]]
    assert sorted(chain.from_iterable(numbers(make(batch_size=3, shuffle=True)))) == list(range(7))
    sampler = io.BatchSampler(sampler=[6, 0, 3], batch_size=2)
    assert numbers(make(batch_sampler=sampler)) == [[6, 0], [3]]
    assert numbers(make(batch_sampler=[[1], [2, 3]])) == [[1], [2, 3]]
    assert [int(label) for _, label in make(batch_size=None)] == list(range(7))
    assert len(make(batch_size=None)) == 7
    named = next(iter(make(batch_size=2, feed_list=["image", "label"], return_list=False)))
    assert to_array(named[0]["label"]).tolist() == [0, 1]
    assert next(make(batch_size=7)())[0].shape[0] == 7


@pytest.mark.parametrize("workers", [0, 2])
def test_a_collate_function_decides_what_a_batch_is(workers):
    loader = io.DataLoader(
        Rows(4), batch_size=2, num_workers=workers, collate_fn=lambda b: {"sum": b[0][0] + b[1][0], "n": len(b), "s": "x"}
    )
    batch = next(iter(loader))
    assert to_array(batch["sum"])[0, 0] == 1
    assert (batch["n"], batch["s"]) == (2, "x")


@pytest.mark.parametrize("workers", [0, 1, 2, 3])
def test_a_stream_is_read_wholly_each_epoch(workers):
    loader = io.DataLoader(Stream(11), batch_size=2, num_workers=workers, persistent_workers=True)
    for _ in range(2):
        assert sorted(chain.from_iterable(numbers(loader))) == list(range(11))
    assert numbers(io.DataLoader(Stream(3), batch_size=None, num_workers=min(workers, 1))) == [0, 1, 2]
    assert numbers(io.DataLoader(Stream(5), batch_size=2, drop_last=True, num_workers=min(workers, 1))) == [[0, 1], [2, 3]]


def test_a_streams_batches_go_round_the_workers():
    loader = io.DataLoader(Stream(5, is_shared=False), batch_size=2, num_workers=2)
    assert numbers(loader) == [[0, 1], [0, 1], [2, 3], [2, 3], [4], [4]]


def test_workers_know_themselves():
    assert io.get_worker_info() is None
    loader = io.DataLoader(Calls(lambda i: str(io.get_worker_info())), batch_size=1, num_workers=2)
    texts = [batch[0] for batch in loader]
    assert "id=0, num_workers=2, seed=" in texts[0]
    assert "id=1, num_workers=2, seed=" in texts[1]


def draws(workers, epochs=2, **options):
    loader = io.DataLoader(
        Calls(lambda i: [np.random.randint(1 << 30), random.getrandbits(30), get_rng_state()[0].seed]),
        num_workers=workers,
        batch_size=1,
        **options,
    )
    return [[tuple(int(to_array(v)[0]) for v in batch) for batch in loader] for _ in range(epochs)]


@pytest.mark.parametrize("persistent_workers", [False, True])
def test_random_numbers_differ_everywhere_and_repeat_with_the_seed(persistent_workers):
    np.random.seed(5)
    first = draws(2, persistent_workers=persistent_workers)
    np.random.seed(5)
    assert draws(3, persistent_workers=persistent_workers) == first
    every = [number for epoch in first for pair in epoch for number in pair]
    assert len(set(every)) == len(every)


def test_worker_init_fn_may_seed():
    options = {"worker_init_fn": lambda number: np.random.seed(40 + number)}
    assert [n for n, *_ in draws(2, 1, **options)[0]] == [n for n, *_ in draws(2, 1, **options)[0]]


class PrivateError(Exception):
    def __init__(self, code, detail):
        super().__init__(code, detail)


def fail_at_five(index):
    if index == 5:
        raise ERRORS[0]
    return index


ERRORS = [None]


@pytest.mark.parametrize(
    "error",
    [
        ValueError("number five"),
        KeyError("number five"),
        PrivateError(1, "number five"),
        UnicodeDecodeError("utf8", b"", 0, 1, "number five"),
    ],
)
def test_a_workers_error_keeps_its_class_and_its_traceback(error):
    ERRORS[0] = error
    with pytest.raises(type(error), match=r"(?s)worker \d raised an error.*in fail_at_five.*number five") as caught:
        list(io.DataLoader(Calls(fail_at_five), batch_size=2, num_workers=2))
    assert isinstance(caught.value, io.WorkerError)


@pytest.mark.parametrize("error", [StopIteration("number five"), SystemExit("number five"), KeyboardInterrupt("number five")])
def test_errors_that_would_end_the_loop_or_the_program_do_not(error):
    ERRORS[0] = error
    with pytest.raises(io.WorkerError, match="number five"):
        list(io.DataLoader(Calls(fail_at_five), batch_size=2, num_workers=2))


def test_errors_of_other_parts_are_reported_too():
    def refuse(number):
        raise RuntimeError("no start")

    with pytest.raises(RuntimeError, match="no start"):
        list(io.DataLoader(Rows(), num_workers=1, worker_init_fn=refuse))
    with pytest.raises(io.WorkerError, match=r"pickle"):
        list(io.DataLoader(Calls(lambda i: i), num_workers=1, collate_fn=lambda batch: lambda: 0))
    with pytest.raises(ValueError, match="the shapes"):
        list(io.DataLoader(Calls(lambda i: np.ones(i)), batch_size=2, num_workers=1))

    def broken():
        yield [0]
        raise RuntimeError("no order")

    with pytest.raises(RuntimeError, match="no order"):
        list(io.DataLoader(Rows(), num_workers=1, batch_sampler=broken()))


@pytest.mark.parametrize(
    ("act", "text"),
    [
        (lambda: os._exit(3), "exit code 3"),
        (lambda: os.kill(os.getpid(), signal.SIGKILL), r"SIGKILL.*\n.*memory runs out"),
        (lambda: (faulthandler.disable(), os.kill(os.getpid(), signal.SIGSEGV)), r"SIGSEGV.*\n.*num_workers=0"),
    ],
)
def test_a_dead_worker_is_named_at_once(act, text):
    begin = time.monotonic()
    with pytest.raises(io.WorkerError, match=r"worker \d \(process \d+\) died.*" + text):
        list(io.DataLoader(Calls(lambda i: act() if i == 5 else i), batch_size=2, num_workers=2))
    assert time.monotonic() - begin < 8


def test_a_worker_killed_from_outside_while_idle_is_named():
    loader = io.DataLoader(Rows(40), batch_size=1, num_workers=2, persistent_workers=True)
    iterator = iter(loader)
    next(iterator)
    os.kill(worker_processes()[0].pid, signal.SIGKILL)
    with pytest.raises(io.WorkerError, match="SIGKILL"):
        list(iterator)
    assert len(numbers(loader)) == 40  # the loader starts new workers


def test_a_slow_batch_ends_at_the_time_limit():
    begin = time.monotonic()
    with pytest.raises(io.WorkerError, match=r"(?s)no batch within timeout=0.3 s; .*worker 0 owes batch 0.*raise timeout"):
        list(io.DataLoader(Calls(lambda i: time.sleep(60)), num_workers=1, timeout=0.3))
    assert time.monotonic() - begin < 10


@pytest.mark.parametrize("persistent_workers", [False, True])
def test_a_loop_broken_off_leaves_the_next_one_whole(persistent_workers):
    loader = io.DataLoader(Rows(40), batch_size=2, num_workers=2, persistent_workers=persistent_workers)
    expected = [[i, i + 1] for i in range(0, 40, 2)]
    for stop in (0, 3, 1):
        for number, (arrays, labels) in enumerate(loader):
            assert to_array(arrays)[1, 0, 0] == to_array(labels)[1]
            if number == stop:
                break
        assert numbers(loader) == expected
    assert bool(worker_processes()) is persistent_workers


def test_persistent_workers_stay_the_same_processes():
    loader = io.DataLoader(Calls(lambda i: os.getpid()), num_workers=2, persistent_workers=True)
    assert {int(to_array(b)[0]) for b in loader} == {int(to_array(b)[0]) for b in loader}


def test_two_loops_over_one_persistent_loader_at_once():
    loader = io.DataLoader(Rows(6), num_workers=2, persistent_workers=True)
    pairs = [(int(to_array(a)[0]), int(to_array(b)[0])) for _, a in loader for _, b in loader]
    assert pairs == [(i, j) for i in range(6) for j in range(6)]


def test_batches_may_be_kept_and_outlive_the_loader():
    loader = io.DataLoader(Rows(60), batch_size=2, num_workers=2)
    kept = [to_array(arrays) for arrays, _ in loader]
    del loader
    gc.collect()
    assert [array[0, 0, 0] for array in kept] == list(range(0, 60, 2))
    assert all(array.flags.writeable for array in kept)


def test_a_view_keeps_the_memory_of_its_batch():
    loader = io.DataLoader(Rows(200, (64, 64)), batch_size=2, num_workers=1)
    views = []
    for arrays, _ in loader:
        views.append(to_array(arrays)[1, 5:7].reshape(-1)[3:9])
        del arrays
    assert [view[0] for view in views] == list(range(1, 200, 2))


def test_memory_is_used_again():
    def mapped():
        return Path("/proc/self/maps").read_text().count("sampan-batch")

    most = 0
    for arrays, labels in io.DataLoader(Rows(300, (100, 100)), batch_size=2, num_workers=2):
        most = max(most, mapped())
        assert arrays.shape[0] == labels.shape[0]
    del arrays, labels
    assert 0 < most <= 12
    gc.collect()
    assert mapped() == 0


def test_descriptors_are_closed():
    before = len(os.listdir("/proc/self/fd"))
    for _ in range(3):
        kept = list(io.DataLoader(Rows(40), batch_size=2, num_workers=2))
    del kept
    gc.collect()
    assert len(os.listdir("/proc/self/fd")) <= before + 1


def test_a_workers_array_that_the_dataset_keeps_is_not_overwritten():
    kept = []

    def collate(samples):
        batch = io.default_collate_fn(samples)
        kept.append(batch[0])
        return [np.array([array[0, 0, 0] for array in kept]), batch[1]]

    for checked, labels in io.DataLoader(Rows(30), num_workers=1, collate_fn=collate):
        assert to_array(checked).tolist() == list(range(int(to_array(labels)[0]) + 1))


def test_large_indices_large_text_and_batches_of_many_sizes():
    loader = io.DataLoader(Rows(30_000, (1,)), batch_size=15_000, num_workers=2, prefetch_factor=40)
    assert [len(to_array(labels)) for _, labels in loader] == [15_000, 15_000]
    text = [batch[0] for batch in io.DataLoader(Calls(lambda i: "x" * (i * 100_000)), num_workers=2)]
    assert [len(t) for t in text] == [i * 100_000 for i in range(8)]
    sizes = [to_array(b).shape[1] for b in io.DataLoader(Calls(lambda i: np.zeros((i * 7919) % 50_000), 40), num_workers=2)]
    assert sizes == [(i * 7919) % 50_000 for i in range(40)]


def test_empty_datasets():
    assert list(io.DataLoader(Rows(0), num_workers=2)) == []
    assert list(io.DataLoader(Stream(0), num_workers=2)) == []
    with pytest.raises(ValueError, match=r"the dataset \(Rows\) is empty; there is nothing to shuffle"):
        io.DataLoader(Rows(0), shuffle=True)


CTRL_C = """
import os, signal, sys, threading, time
import numpy as np
from sampan import io

class Slow(io.Dataset):
    def __len__(self):
        return 1000
    def __getitem__(self, index):
        time.sleep(0.05)
        return index

loader = io.DataLoader(Slow(), num_workers=2, persistent_workers={persistent})
for number, batch in enumerate(loader):
    if number == 0:
        import multiprocessing
        print(*(p.pid for p in multiprocessing.active_children()), flush=True)
"""


def is_alive(pid):
    try:
        return "Z" not in Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except FileNotFoundError:
        return False


def wait_until(condition, limit_s=8):
    end = time.monotonic() + limit_s
    while not condition() and time.monotonic() < end:
        time.sleep(0.02)
    return condition()


@pytest.mark.parametrize(
    ("ending", "persistent"), [(signal.SIGINT, True), (signal.SIGINT, False), (signal.SIGKILL, True), (signal.SIGTERM, False)]
)
def test_no_worker_outlives_the_program(ending, persistent):
    script = textwrap.dedent(CTRL_C).format(persistent=persistent)
    program = subprocess.Popen(
        [sys.executable, "-c", script], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True
    )
    workers = [int(pid) for pid in program.stdout.readline().split()]
    assert len(workers) == 2
    if ending == signal.SIGINT:
        os.killpg(program.pid, ending)  # as the terminal does: every process gets it
    else:
        program.send_signal(ending)
    _, errors = program.communicate(timeout=20)
    assert program.returncode != 0
    if ending == signal.SIGINT:
        assert errors.count("KeyboardInterrupt") == 1  # the workers print nothing
    assert wait_until(lambda: not any(map(is_alive, workers)))


def test_a_program_that_ends_in_the_middle_of_a_loop_ends():
    script = textwrap.dedent(CTRL_C).format(persistent=True).replace("import multiprocessing", "sys.exit(5)")
    assert subprocess.run([sys.executable, "-c", script], timeout=20, check=False, capture_output=True).returncode == 5


def test_a_forked_child_leaves_the_workers_alone():
    loader = io.DataLoader(Rows(40), num_workers=1, persistent_workers=True)
    iterator = iter(loader)
    next(iterator)
    child = os.fork()
    if child == 0:
        del loader, iterator
        gc.collect()
        os._exit(0)
    os.waitpid(child, 0)
    assert len(list(iterator)) == 39
    del iterator, loader


@pytest.mark.parametrize("workers", [0, 2])
@pytest.mark.parametrize("done", [0, 1, 4, 7])
def test_a_shuffled_epoch_goes_on_where_it_was_saved(workers, done, tmp_path):
    def make():
        return io.DataLoader(
            Calls(lambda i: [i, np.random.randint(1 << 30)], 21), batch_size=3, shuffle=True, num_workers=workers
        )

    def values(batches):
        return [[to_array(v).tolist() for v in batch] for batch in batches]

    loader = make()
    np.random.seed(11)
    list(loader)
    iterator = iter(loader)
    for _ in range(done):
        next(iterator)
    save(loader.state_dict(), tmp_path / "loader.pdopt")
    rest, following = values(iterator), values(loader)
    np.random.seed(99)
    other = make()
    other.set_state_dict(load(tmp_path / "loader.pdopt"))
    assert other.state_dict()["batch"] == done
    assert values(other) == rest
    assert values(other) == following


@pytest.mark.parametrize("workers", [0, 1, 2])
def test_a_stream_goes_on_where_it_was_saved(workers):
    loader = io.DataLoader(Stream(17), batch_size=2, num_workers=workers)
    iterator = iter(loader)
    for _ in range(6):
        next(iterator)
    state = loader.state_dict()
    rest = numbers(iterator)
    other = io.DataLoader(Stream(17), batch_size=2, num_workers=workers)
    other.set_state_dict(state)
    assert numbers(other) == rest
    assert sorted(chain.from_iterable(numbers(other))) == list(range(17))


def test_a_distributed_sampler_goes_on_where_it_was_saved():
    def make():
        return io.DataLoader(Rows(30), batch_sampler=io.DistributedBatchSampler(range(30), 4, 2, 1, shuffle=True))

    loader = make()
    list(loader)
    iterator = iter(loader)
    next(iterator)
    state = loader.state_dict()
    rest, following = numbers(iterator), numbers(loader)
    other = make()
    other.set_state_dict(state)
    assert numbers(other) == rest
    assert numbers(other) == following


@pytest.mark.parametrize(
    ("options", "error", "text"),
    [
        ({"batch_size": 0}, ValueError, "batch_size is 0"),
        ({"num_workers": -1}, ValueError, "num_workers is -1"),
        ({"num_workers": 1.5}, TypeError, "num_workers is 1.5"),
        ({"timeout": -1}, ValueError, "timeout is -1"),
        ({"prefetch_factor": 0}, ValueError, "prefetch_factor is 0"),
        ({"batch_sampler": [[0]], "shuffle": True}, ValueError, "the batch_sampler decides all three"),
        ({"batch_sampler": [[0]], "batch_size": 2}, ValueError, "the batch_sampler decides all three"),
        ({"dataset": 3}, TypeError, "dataset is 3"),
        ({"dataset": Stream(3), "shuffle": True}, ValueError, "a stream has its own order"),
        ({"dataset": Stream(3), "batch_sampler": [[0]]}, ValueError, "a stream has no indices"),
    ],
)
def test_bad_arguments_raise_with_the_argument_and_the_value(options, error, text):
    with pytest.raises(error, match=text):
        io.DataLoader(**{"dataset": Rows(), **options})


def test_a_streams_loader_has_no_length_and_states_are_checked():
    with pytest.raises(ValueError, match="known only at the end"):
        len(io.DataLoader(Stream(3)))
    with pytest.raises(ValueError, match="has no epoch, batch"):
        io.DataLoader(Rows()).set_state_dict({})


def test_drop_last_means_nothing_without_batches():
    samples = io.DataLoader(Stream(5), batch_size=None, drop_last=True)
    assert len(list(samples)) == len(list(io.DataLoader(Stream(5), batch_size=None))) == 5
