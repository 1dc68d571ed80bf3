"""The tensor layer through its bindings: dtypes, layouts, NumPy and DLPack both ways, views, objects, storages."""

from __future__ import annotations

import copy
import gc
import os
import pickle
import threading
import weakref
from multiprocessing import shared_memory

import ml_dtypes
import numpy as np
import pytest
from runtime.arrays import DTYPES, NUMPY, bits, sample

from sampan import _rt
from sampan.base.errors import ShapeError


class TestDTypes:
    def test_every_dtype_is_one_object_that_pickling_and_copying_keep(self):
        for name, dtype in _rt.dtypes.items():
            assert pickle.loads(pickle.dumps(dtype)) is dtype
            assert copy.deepcopy(dtype) is dtype
            assert repr(dtype) == f"paddle.{name}"
            assert {dtype: 1}[_rt.dtypes[name]] == 1

    @pytest.mark.parametrize("name", DTYPES)
    def test_item_size_and_kind_are_numpys(self, name):
        assert _rt.dtypes[name].itemsize == NUMPY[name].itemsize
        assert _rt.dtypes[name].kind == ("f" if name == "bfloat16" else NUMPY[name].kind)

    def test_unknown_dtype_is_a_type_error(self):
        with pytest.raises(TypeError, match="float99"):
            _rt.empty([2], "float99")


class TestLayouts:
    def test_equal_layouts_compare_and_hash_equal(self):
        a = _rt.Layout("float32", [2, 3], [3, 1])
        b = _rt.empty([2, 3], "float32").layout
        assert a == b
        assert hash(a) == hash(b)
        assert a != _rt.Layout("float32", [2, 3], [1, 2])
        assert a != _rt.Layout("int32", [2, 3], [3, 1])
        assert a != "float32[2, 3]"

    def test_strides_of_axes_of_length_one_do_not_matter(self):
        assert _rt.Layout("float32", [1, 3], [99, 1]) == _rt.Layout("float32", [1, 3])
        assert _rt.Layout("float32", [3, 1], [1, -7]).is_contiguous

    def test_strides_of_empty_layouts_do_not_matter(self):
        assert _rt.Layout("float32", [0, 3], [5, 17]) == _rt.Layout("float32", [0, 3])

    @pytest.mark.parametrize(
        ("strides", "is_contiguous", "is_dense"),
        [
            ([12, 4, 1], True, True),
            ([12, 1, 3], False, True),
            ([1, 2, 6], False, True),
            ([24, 4, 1], False, False),
            ([0, 4, 1], False, False),
            ([12, 4, -1], False, False),
        ],
    )
    def test_contiguous_and_dense(self, strides, is_contiguous, is_dense):
        layout = _rt.Layout("int16", [2, 3, 4], strides)
        assert (layout.is_contiguous, layout.is_dense) == (is_contiguous, is_dense)

    @pytest.mark.parametrize("shape", [[2**62, 2], [-1, 3], [1] * 17, [2**40, 0, 2**40]])
    def test_impossible_shapes_are_value_errors(self, shape):
        with pytest.raises(ValueError, match=r"shape|axes"):
            _rt.empty(shape, "float32")

    def test_strides_that_reach_too_far_are_value_errors(self):
        with pytest.raises(ValueError, match="reach"):
            _rt.Layout("float32", [2, 2], [2**62, 1])
        with pytest.raises(ValueError, match="reach"):
            _rt.Layout("float32", [2, 2], [-(2**63), 1])

    def test_a_new_tensor_refuses_gaps_and_overlaps(self):
        with pytest.raises(ValueError, match="gaps"):
            _rt.empty_with_layout(_rt.Layout("float32", [2, 2], [4, 1]))

    def test_many_threads_intern_and_drop_the_same_layouts(self):
        failures = []

        def work() -> None:
            for i in range(3000):
                a, b = _rt.Layout("float32", [i % 7, 3]), _rt.Layout("float32", [i % 7, 3])
                if a != b:
                    failures.append(i)

        threads = [threading.Thread(target=work) for _ in range(4)]
        for t in threads:
            t.start()
        for t in threads:
            t.join()
        assert not failures


class TestNumPy:
    @pytest.mark.parametrize("name", DTYPES)
    def test_round_trip_shares_memory(self, name):
        array = sample(name, (3, 4))
        tensor = _rt.from_numpy(array)
        view = tensor.numpy_view()
        assert view.dtype == NUMPY[name]
        assert np.shares_memory(view, array)
        assert bits(view) == bits(array)

    @pytest.mark.parametrize(
        "make",
        [lambda a: a.T, lambda a: a[::-1], lambda a: a[:, ::-2], lambda a: a[1:2], lambda a: a[:0], lambda a: a[1, 2, ...]],
    )
    def test_strided_views_share_memory(self, make):
        array = make(np.arange(24, dtype=np.int32).reshape(4, 6))
        if array.ndim == 0:
            array = np.array(array)
        tensor = _rt.from_numpy(array)
        assert tensor.tolist() == array.tolist()
        assert np.array_equal(tensor.numpy_view(), array)
        if array.size:
            assert np.shares_memory(tensor.numpy_view(), array)

    def test_writes_go_both_ways(self):
        array = np.zeros(3, np.float32)
        tensor = _rt.from_numpy(array)
        array[1] = 5
        tensor.numpy_view()[2] = 7
        assert tensor.tolist() == [0, 5, 7]
        assert array.tolist() == [0, 5, 7]

    def test_copy_does_not_share(self):
        array = np.zeros(3, np.float32)
        assert not np.shares_memory(_rt.from_numpy(array, copy=True).numpy_view(), array)

    def test_read_only_arrays_are_copied(self):
        array = np.broadcast_to(np.arange(3, dtype=np.float32), (2, 3))
        tensor = _rt.from_numpy(array)
        tensor.numpy_view()[:] = 9
        assert array.tolist() == [[0, 1, 2], [0, 1, 2]]

    def test_foreign_byte_order_and_misaligned_memory_are_copied(self):
        swapped = np.arange(5, dtype=">f4")
        raw = np.zeros(21, np.uint8)
        misaligned = raw[1:].view(np.float32)
        misaligned[:] = [1, 2, 3, 4, 5]
        record = np.zeros(4, np.dtype([("a", np.uint8), ("b", np.int32)]))["b"]
        assert _rt.from_numpy(swapped).tolist() == [0, 1, 2, 3, 4]
        assert _rt.from_numpy(misaligned).tolist() == [1, 2, 3, 4, 5]
        assert _rt.from_numpy(record).tolist() == [0, 0, 0, 0]

    def test_from_numpy_casts(self):
        assert _rt.from_numpy(np.array([1.5, -2.5]), dtype="int32").tolist() == [1, -2]
        assert _rt.from_numpy(np.arange(3, dtype=">i8"), dtype="float32").dtype is _rt.dtypes["float32"]

    def test_numpy_scalars_become_0d(self):
        tensor = _rt.from_numpy(np.float64(2.5))
        assert (tensor.shape, tensor.item()) == ([], 2.5)

    @pytest.mark.parametrize(
        "array",
        [
            np.zeros(2, np.uint16),
            np.zeros(2, "U3"),
            np.array([None]),
            np.zeros(2, np.longdouble),
            np.zeros(2, ml_dtypes.float8_e4m3fn),
        ],
    )
    def test_other_element_types_are_type_errors(self, array):
        with pytest.raises(TypeError, match="NumPy elements"):
            _rt.from_numpy(array)

    def test_too_many_axes_are_a_value_error(self):
        with pytest.raises(ValueError, match="axes"):
            _rt.from_numpy(np.zeros([1] * 20, np.float32))

    def test_memory_lives_as_long_as_any_side(self):
        view = _rt.from_numpy(np.arange(1000, dtype=np.int64), copy=True).numpy_view()
        gc.collect()
        assert view.sum() == 499500
        tensor = _rt.from_numpy(np.arange(1000, dtype=np.int64))
        gc.collect()
        assert tensor.numpy_view().sum() == 499500

    def test_array_protocol(self):
        tensor = _rt.from_numpy(np.arange(6, dtype=np.float32).reshape(2, 3))
        assert np.shares_memory(np.asarray(tensor), tensor.numpy_view())
        assert not np.shares_memory(np.array(tensor), tensor.numpy_view())
        assert np.asarray(tensor, dtype=np.int64).dtype == np.int64
        assert float(np.sum(tensor)) == 15
        with pytest.raises(ValueError, match="copy"):
            np.asarray(tensor, dtype=np.int64, copy=False)


class TestDLPack:
    @pytest.mark.parametrize("name", [n for n in DTYPES if n != "bfloat16"])
    def test_round_trip_through_numpy_shares_memory(self, name):
        tensor = _rt.from_numpy(sample(name, (3, 4)).T)
        array = np.from_dlpack(tensor)
        assert np.shares_memory(array, tensor.numpy_view())
        back = _rt.from_dlpack(array)
        assert back.layout == tensor.layout
        assert back.data_ptr() == tensor.data_ptr()

    def test_bfloat16_goes_through(self):
        tensor = _rt.from_numpy(sample("bfloat16", (5,)))
        assert _rt.from_dlpack(tensor).dtype is _rt.dtypes["bfloat16"]

    @pytest.mark.parametrize("version", [None, (0, 8), (1, 0)])
    def test_both_versions(self, version):
        tensor = _rt.from_numpy(np.arange(6, dtype=np.float32)[::-1])
        capsule = tensor.__dlpack__(max_version=version)
        assert _rt.from_dlpack(capsule).tolist() == [5, 4, 3, 2, 1, 0]
        with pytest.raises(ValueError, match="unused"):
            _rt.from_dlpack(capsule)

    def test_an_unused_capsule_frees_its_tensor(self):
        gc.collect()
        before = _rt.memory_stats()["allocated_bytes"]
        for _ in range(10):
            _rt.empty([1 << 20], "float32").__dlpack__()
            _rt.from_dlpack(_rt.empty([1 << 20], "float32"))
        assert _rt.memory_stats()["allocated_bytes"] == before

    def test_read_only_memory_is_copied(self):
        array = np.arange(3, dtype=np.float32)
        array.flags.writeable = False
        tensor = _rt.from_dlpack(array)
        _rt.fill(tensor, 9)
        assert array.tolist() == [0, 1, 2]

    def test_wrong_sources_and_devices_raise(self):
        with pytest.raises(TypeError, match="__dlpack__"):
            _rt.from_dlpack(3)
        tensor = _rt.empty([2], "float32")
        assert tensor.__dlpack_device__() == (1, 0)
        with pytest.raises(BufferError):
            tensor.__dlpack__(dl_device=(2, 0))


class TestViews:
    def test_a_view_shares_the_storage(self):
        base = _rt.from_numpy(np.arange(12, dtype=np.float32))
        view = _rt.as_view(base, [3, 2], [4, -1], 3)
        assert view.tolist() == [[3, 2], [7, 6], [11, 10]]
        assert _rt.shares_storage(base, view)
        assert view.storage == base.storage
        assert _rt.as_view(view, [2], [1], -3).tolist() == [0, 1]

    @pytest.mark.parametrize(
        ("shape", "strides", "offset"),
        [
            ([13], [1], 0),
            ([12], [1], 1),
            ([1], [1], -1),
            ([2, 2], [-1, 1], 0),
            ([2], [2**61], 0),
            ([2], [1], 2**62),
            ([2], [1], 2**61),
            ([0], [1], 13),
            ([1], [1], 12),
        ],
    )
    def test_views_outside_the_storage_are_index_errors(self, shape, strides, offset):
        with pytest.raises((IndexError, ValueError)):
            _rt.as_view(_rt.empty([12], "float32"), shape, strides, offset)

    def test_an_empty_view_at_the_end_is_fine(self):
        assert _rt.as_view(_rt.empty([12], "float32"), [0, 5], [5, 1], 12).shape == [0, 5]

    def test_a_storage_can_be_read_as_another_dtype(self):
        base = _rt.from_numpy(np.array([1.0, 2.0], np.float32))
        tensor = _rt.tensor_over(base.storage, _rt.Layout("int32", [2]), 0)
        assert tensor.numpy_view().view(np.float32).tolist() == [1, 2]
        with pytest.raises(ValueError, match="multiple"):
            _rt.tensor_over(base.storage, _rt.Layout("int32", [1]), 2)

    def test_rebind_changes_what_an_object_looks_at(self):
        a, b = _rt.from_numpy(np.zeros(2, np.float32)), _rt.from_numpy(np.arange(3, dtype=np.int32))
        _rt.rebind(a, b)
        assert a.tolist() == [0, 1, 2]
        assert a.dtype is b.dtype


class TestItems:
    def test_item_reads_python_numbers(self):
        for name in DTYPES:
            value = _rt.from_numpy(np.ones([1, 1], NUMPY[name])).item()
            assert value == 1
            assert type(value) is {"b": bool, "u": int, "i": int, "f": float, "c": complex}[_rt.dtypes[name].kind]

    def test_item_takes_flat_and_full_indices(self):
        array = np.arange(12, dtype=np.float32).reshape(3, 4)
        tensor = _rt.from_numpy(array.T)
        assert tensor.item(5) == array.T.item(5)
        assert tensor.item(-1) == 11
        assert tensor.item(3, 2) == array.T.item(3, 2)
        assert tensor.item(-1, -2) == array.T.item(-1, -2)

    @pytest.mark.parametrize(
        ("args", "error"),
        [
            ((), ValueError),
            ((12,), IndexError),
            ((-13,), IndexError),
            ((3, 0), IndexError),
            ((0, 0, 0), ValueError),
            (("a",), TypeError),
        ],
    )
    def test_wrong_items_raise(self, args, error):
        with pytest.raises(error):
            _rt.empty([3, 4], "float32").item(*args)

    def test_tolist_of_0d_and_empty(self):
        assert _rt.from_numpy(np.array(3)).tolist() == 3
        assert _rt.from_numpy(np.zeros([2, 0])).tolist() == [[], []]


class TestObjects:
    def test_a_subclass_keeps_attributes_and_memory(self):
        class Parameter(_rt.Tensor):
            def __init__(self, source, name):
                self.name = name

        source = _rt.from_numpy(np.arange(3, dtype=np.float32))
        source.stop_gradient = False
        parameter = Parameter(source, "weight")
        assert parameter.name == "weight"
        assert parameter.data_ptr() == source.data_ptr()
        assert parameter.stop_gradient is False
        assert isinstance(parameter, _rt.Tensor)

    def test_a_subclass_may_take_other_arguments(self):
        class Parameter(_rt.Tensor):
            def __init__(self, shape, dtype, name=None):
                _rt.rebind(self, _rt.empty(shape, dtype))
                self.name = name

        parameter = Parameter([2, 3], "float64", name="bias")
        assert parameter.shape == [2, 3]
        assert parameter.name == "bias"

    def test_weak_references_end_with_the_object(self):
        tensor = _rt.empty([2], "float32")
        reference = weakref.ref(tensor)
        assert reference() is tensor
        del tensor
        assert reference() is None

    def test_cycles_through_attributes_are_collected(self):
        for make in (lambda: _rt.empty([2], "float32"), lambda: type("Sub", (_rt.Tensor,), {})()):
            tensor = make()
            tensor.me = tensor
            reference = weakref.ref(tensor)
            del tensor
            gc.collect()
            assert reference() is None

    def test_a_cycle_through_the_dict_itself_is_collected(self):
        tensor = _rt.empty([2], "float32")
        vars(tensor)["me"] = tensor
        reference = weakref.ref(tensor)
        del tensor
        gc.collect()
        assert reference() is None

    def test_the_constructor_takes_tensors_and_data(self):
        assert _rt.Tensor().shape == [0]
        assert _rt.Tensor(None).shape == [0]
        assert _rt.Tensor([1, 2]).shape == [2]
        with pytest.raises(TypeError, match="to_tensor"):
            _rt.Tensor(object())

    def test_reused_objects_start_clean(self):
        tensor = _rt.empty([2], "float32")
        tensor.note = 1
        del tensor
        assert not any(hasattr(_rt.empty([2], "float32"), "note") for _ in range(300))

    def test_functions_refuse_what_is_no_tensor(self):
        with pytest.raises(TypeError, match="Tensor"):
            _rt.copy(np.zeros(3))
        with pytest.raises(TypeError):
            _rt.empty(3.5, "float32")
        with pytest.raises(TypeError):
            _rt.empty([1.5], "float32")

    def test_error_classes_are_pythons(self):
        class Mine(ValueError):
            pass

        _rt.set_error_classes({"shape": Mine})
        try:
            with pytest.raises(Mine):
                _rt.empty([-1], "float32")
        finally:
            _rt.set_error_classes({"shape": ShapeError})
        with pytest.raises(ValueError, match="kind"):
            _rt.set_error_classes({"nonsense": ValueError})
        with pytest.raises(TypeError, match="class"):
            _rt.set_error_classes({"shape": 3})


class TestStorages:
    def test_shared_memory_is_seen_by_every_view(self):
        segment = shared_memory.SharedMemory(create=True, size=64)
        try:
            storage = _rt.Storage.from_buffer(segment.buf)
            tensor = _rt.tensor_over(storage, _rt.Layout("float32", [4]), 16)
            _rt.fill(tensor, 2)
            assert np.frombuffer(bytes(segment.buf), np.float32).tolist() == [0] * 4 + [2] * 4 + [0] * 8
            del storage, tensor
        finally:
            segment.close()
            segment.unlink()

    @pytest.mark.filterwarnings("ignore:This process:DeprecationWarning")
    def test_a_forked_process_writes_into_shared_memory(self):
        segment = shared_memory.SharedMemory(create=True, size=32)
        try:
            tensor = _rt.tensor_over(_rt.Storage.from_buffer(segment.buf), _rt.Layout("int32", [8]))
            _rt.fill(tensor, 0)
            if (pid := os.fork()) == 0:
                _rt.fill(tensor, 7)
                os._exit(0)
            os.waitpid(pid, 0)
            assert tensor.tolist() == [7] * 8
            del tensor
        finally:
            segment.close()
            segment.unlink()

    def test_an_exported_buffer_cannot_shrink_under_a_tensor(self):
        memory = bytearray(16)
        tensor = _rt.tensor_over(_rt.Storage.from_buffer(memory), _rt.Layout("int32", [4]))
        with pytest.raises(BufferError):
            memory.clear()
        del tensor
        memory.clear()

    def test_read_only_buffers_are_refused(self):
        with pytest.raises((BufferError, TypeError)):
            _rt.Storage.from_buffer(b"1234")

    def test_a_storage_is_a_buffer_of_its_bytes(self):
        tensor = _rt.from_numpy(np.arange(4, dtype=np.int32))
        assert bytes(tensor.storage) == np.arange(4, dtype=np.int32).tobytes()
        assert tensor.storage.size_bytes == 16
        assert tensor.storage.is_external
        assert hash(tensor.storage) == hash(tensor.storage)
        assert not _rt.Storage.allocate(8).is_external
