"""The caching allocator: reuse, statistics, limits, threads and forks."""

from __future__ import annotations

import os
import threading

import numpy as np
import pytest
from processes import is_sanitized

from sampan import _rt

MB = 1 << 20


def stats(name: str) -> int:
    return _rt.memory_stats()[name]


caching = pytest.mark.skipif(is_sanitized(), reason="a sanitized build caches nothing")


def test_blocks_start_at_multiples_of_64():
    for size in (0, 1, 17, 100, 1000, 5000, 70_000, 300_000, 5 * MB):
        assert _rt.empty([size], "uint8").data_ptr() % 64 == 0


def test_allocated_bytes_return_to_where_they_were():
    before = stats("allocated_bytes")
    tensors = [_rt.empty([n], "uint8") for n in (1, 100, 5000, 100_000, 3 * MB)]
    assert stats("allocated_bytes") >= before + 3 * MB + 105_101
    del tensors
    assert stats("allocated_bytes") == before


@caching
def test_a_large_block_is_reused_without_asking_the_system():
    _rt.empty([64 * MB], "uint8")
    requests = stats("system_count")
    addresses = {_rt.empty([64 * MB], "uint8").data_ptr() for _ in range(5)}
    assert len(addresses) == 1
    assert stats("system_count") == requests


def test_small_blocks_are_reused():
    for _ in range(100):
        _rt.empty([100], "float32")
    reserved = stats("reserved_bytes")
    for _ in range(10_000):
        _rt.empty([100], "float32")
    assert stats("reserved_bytes") == reserved


def test_peak_follows_what_was_in_use():
    _rt.reset_peak_memory()
    start = stats("peak_allocated_bytes")
    held = _rt.empty([10 * MB], "uint8")
    del held
    assert 10 * MB <= stats("peak_allocated_bytes") - start < 11 * MB
    _rt.reset_peak_memory()
    assert stats("peak_allocated_bytes") == stats("allocated_bytes")


@caching
def test_empty_cache_gives_large_blocks_back():
    _rt.empty([32 * MB], "uint8")
    before = stats("reserved_bytes")
    _rt.empty_cache()
    assert stats("reserved_bytes") <= before - 32 * MB


@caching
@pytest.mark.parametrize("size", [1, 900, 1100, 5000, 60_000, 250_000])
def test_empty_cache_gives_slabs_back_that_are_wholly_free(size):
    _rt.empty_cache()
    before = stats("reserved_bytes")
    held = [_rt.empty([size], "uint8") for _ in range(8 * MB // size if size > 100 else 20_000)]
    kept = held[len(held) // 2]
    _rt.fill(kept, 7)
    grown = stats("reserved_bytes") - before
    assert grown > MB
    held.clear()
    _rt.empty_cache()
    # the slab of the block that is in use stays, and so do blocks that Python objects of tensors are made of
    assert stats("reserved_bytes") - before < min(grown // 2, 2 * MB)
    assert set(kept.tolist()) == {7}
    again = [_rt.empty([size], "uint8") for _ in range(100)]
    for k, tensor in enumerate(again):
        _rt.fill(tensor, k)
    assert all(set(tensor.tolist()) == {k} for k, tensor in enumerate(again))
    assert set(kept.tolist()) == {7}


@caching
def test_free_slabs_are_given_up_before_the_limit_refuses():
    _rt.empty_cache()
    held = [_rt.empty([60_000], "uint8") for _ in range(500)]
    worker = threading.Thread(target=held.clear)  # its lists are shared when it ends
    worker.start()
    worker.join()
    limit = stats("reserved_bytes") + 4 * MB
    _rt.set_memory_limit(limit)
    try:
        assert _rt.empty([20 * MB], "uint8").size == 20 * MB
    finally:
        _rt.set_memory_limit(0)


@caching
def test_emptying_the_cache_while_other_threads_allocate():
    stop = threading.Event()
    wrong = []

    def work(value: int) -> None:
        while not stop.is_set():
            held = [_rt.empty([n], "uint8") for n in (10, 700, 3000, 70_000) for _ in range(20)]
            for tensor in held:
                _rt.fill(tensor, value)
            wrong.extend(tensor for tensor in held if not (tensor.numpy_view() == value).all())

    threads = [threading.Thread(target=work, args=(k,)) for k in range(3)]
    for t in threads:
        t.start()
    for _ in range(200):
        _rt.empty_cache()
    stop.set()
    for t in threads:
        t.join()
    assert not wrong


def test_changing_sizes_do_not_pile_up():
    _rt.empty_cache()
    before = stats("reserved_bytes")
    for k in range(200):
        _rt.empty([(8 + k) * MB], "uint8")
    assert stats("reserved_bytes") - before <= 520 * MB


@pytest.mark.parametrize("elements", [2**40, 2**50, 2**59])
def test_huge_requests_raise_memory_error_that_says_what_to_do(elements):
    with pytest.raises(MemoryError, match=r"(?s)cannot allocate .*in use.*set_memory_limit"):
        _rt.empty([elements], "float64")


def test_the_limit_is_kept_and_cached_blocks_are_given_up_first():
    _rt.empty_cache()
    limit = stats("reserved_bytes") + 40 * MB
    _rt.set_memory_limit(limit)
    try:
        _rt.empty([30 * MB], "uint8")
        held = _rt.empty([35 * MB], "uint8")
        with pytest.raises(MemoryError, match="limit"):
            _rt.empty([30 * MB], "uint8")
        del held
    finally:
        _rt.set_memory_limit(0)
    assert _rt.empty([50 * MB], "uint8").size == 50 * MB


def test_many_threads_allocate_and_free_each_others_blocks():
    before = stats("allocated_bytes")
    shared: list = []
    wrong = []

    def work(seed: int) -> None:
        random = np.random.default_rng(seed)
        for k in range(1500):
            tensor = _rt.empty([int(random.integers(1, 3000))], "uint8")
            _rt.fill(tensor, k % 251)
            shared.append((tensor, k % 251))
            if len(shared) > 50:
                other, value = shared.pop(0)
                if not (other.numpy_view() == value).all():
                    wrong.append(value)

    threads = [threading.Thread(target=work, args=(s,)) for s in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    shared.clear()
    assert not wrong
    assert stats("allocated_bytes") == before


def test_blocks_of_a_finished_thread_are_used_again():
    def work() -> None:
        held = [_rt.empty([200], "uint8") for _ in range(2000)]
        held.clear()

    for _ in range(3):
        thread = threading.Thread(target=work)
        thread.start()
        thread.join()
    reserved = stats("reserved_bytes")
    for _ in range(20):
        thread = threading.Thread(target=work)
        thread.start()
        thread.join()
    assert stats("reserved_bytes") <= reserved + MB


def in_child(work) -> int:
    """The exit status of work() in a forked child: 0 when it returned true, SIGALRM when it hung."""
    import signal

    pid = os.fork()
    if pid == 0:
        signal.signal(signal.SIGALRM, signal.SIG_DFL)
        signal.alarm(60)
        status = 1
        try:
            status = 0 if work() else 2
        finally:
            os._exit(status)
    return os.waitpid(pid, 0)[1]


def transposes(array: np.ndarray) -> bool:
    return np.array_equal(_rt.copy(_rt.from_numpy(array.T)).numpy_view(), array.T)


@pytest.mark.filterwarnings("ignore:This process:DeprecationWarning")
def test_a_forked_child_allocates_and_runs_large_work_on_one_thread():
    array = np.random.default_rng(0).normal(size=(1000, 1000)).astype(np.float32)
    assert transposes(array)

    def child() -> bool:
        _rt.set_num_threads(4)
        return _rt.num_threads() == 1 and transposes(array) and _rt.empty([8 * MB], "uint8").size == 8 * MB

    assert in_child(child) == 0


@pytest.mark.filterwarnings("ignore:This process:DeprecationWarning")
def test_forks_while_other_threads_allocate_do_not_hang():
    stop = threading.Event()

    def work() -> None:
        while not stop.is_set():
            for n in (100, 5000, MB):
                _rt.empty([n], "uint8")
                _rt.Layout("float32", [n, 3])

    threads = [threading.Thread(target=work) for _ in range(2)]
    for t in threads:
        t.start()
    try:
        statuses = [in_child(lambda: len([_rt.empty([n], "uint8") for n in (10, 3000, 2 * MB)]) == 3) for _ in range(15)]
    finally:
        stop.set()
        for t in threads:
            t.join()
    assert statuses == [0] * 15


def test_user_threads_run_large_work_at_once():
    arrays = [np.random.default_rng(k).normal(size=(700, 900)).astype(np.float32) for k in range(4)]
    good = []

    def work(array: np.ndarray) -> None:
        good.extend(transposes(array) for _ in range(10))

    threads = [threading.Thread(target=work, args=(a,)) for a in arrays]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert good == [True] * 40


def test_thread_counts_are_checked():
    with pytest.raises(ValueError, match="at least 1"):
        _rt.set_num_threads(0)


def test_cpu_info_names_the_processor_and_onednn():
    info = _rt.cpu_info()
    assert info["onednn_version"] >= (3, 0, 0)
    assert info["threads"] == _rt.num_threads()
    assert isinstance(info["onednn_isa"], str)
    assert all(isinstance(flag, str) for flag in info["flags"])


def test_peak_counts_small_blocks_that_a_thread_has_not_accounted_yet():
    small = [_rt.empty([1000], "uint8") for _ in range(100)]
    _rt.reset_peak_memory()
    start = stats("allocated_bytes")
    large = _rt.empty([10 * MB], "uint8")
    del large
    del small
    assert stats("peak_allocated_bytes") >= start + 10 * MB
