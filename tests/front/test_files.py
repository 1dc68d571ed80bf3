"""save and load: round trips, PaddlePaddle's own files both ways, refusal of code, damage, atomicity, pieces, safetensors."""

from __future__ import annotations

import collections
import io
import json
import os
import pickle
import pickletools
import struct
import subprocess
import sys
import tracemalloc

import ml_dtypes
import numpy as np
import pytest

import sampan as sp
from sampan.base.errors import ArgumentError
from sampan.framework import UnsafeFileError, arrays, dense_tensor, files, load, load_safetensors, pickles, save, save_safetensors
from sampan.framework.safetensors import read_arrays
from sampan.tensor import to_tensor

from .reference import ask_paddle, needs_paddle


def tensor(*shape, dtype="float32", name="t"):
    made = to_tensor(np.arange(np.prod(shape, dtype=int)).reshape(shape).astype(dtype))
    made.name = name
    return made


def same(a, b):
    if arrays.is_tensor(a) or arrays.is_tensor(b):
        return arrays.is_tensor(a) and arrays.is_tensor(b) and same(arrays.to_array(a), arrays.to_array(b))
    if isinstance(a, np.ndarray):
        return isinstance(b, np.ndarray) and a.dtype == b.dtype and a.shape == b.shape and a.tobytes() == b.tobytes()
    if isinstance(a, dict):
        return isinstance(b, dict) and list(a) == list(b) and all(same(a[k], b[k]) for k in a)
    if isinstance(a, (list, tuple)):
        return type(a) is type(b) and len(a) == len(b) and all(map(same, a, b))
    return type(a) is type(b) and a == b


OBJECTS = {
    "state dict": {"weight": tensor(2, 3, name="w"), "bias": tensor(3, name="b")},
    "state dict with nested numbers": {"m": tensor(2), "LR_Scheduler": {"last_epoch": 3, "last_lr": 0.1}},
    "tensor": tensor(2, 3),
    "0-D and empty": [tensor(), tensor(0, 3), tensor(1)],
    "nested": {
        "a": [tensor(2), (tensor(3), "s", 1.5, None, True)],
        "n": np.arange(3),
        4: {"x": {1, 2}, "c": 2j, "b": b"\x00\xff"},
    },
    "dtypes": [
        tensor(3, dtype=d)
        for d in ("bool", "uint8", "int8", "int16", "int32", "int64", "float16", "float64", "complex64", "complex128")
    ],
    "bfloat16": {"w": tensor(3, dtype=ml_dtypes.bfloat16), "l": tensor(2)},
    "numbers": [1, -(2**70), 1e300, float("inf"), "ü", b"", None, np.float32(2), np.int64(-3)],
    "empty": {},
}


@pytest.mark.parametrize("protocol", [2, 3, 4])
@pytest.mark.parametrize("kind", OBJECTS)
def test_objects_round_trip_in_every_protocol(kind, protocol, tmp_path):
    path = tmp_path / "deep" / "folder" / "object.pdparams"
    save(OBJECTS[kind], path, protocol=protocol)
    assert same(load(path), OBJECTS[kind])
    file = io.BytesIO()
    save(OBJECTS[kind], file, protocol=protocol)
    assert file.getvalue() == path.read_bytes()
    file.seek(0)
    assert same(load(file), OBJECTS[kind])


def test_non_contiguous_and_transposed_arrays_round_trip(tmp_path):
    whole = np.arange(24.0).reshape(2, 3, 4)
    value = [tensor(1), whole.T, whole[:, ::-2], np.asfortranarray(whole), whole.astype(">f4")]
    save(value, tmp_path / "x")
    received = load(tmp_path / "x")
    for mine, other in zip(value[1:], received[1:], strict=True):
        np.testing.assert_array_equal(mine, other)
    assert received[3].flags.f_contiguous


def test_containers_of_other_classes_come_back_as_plain_ones(tmp_path):
    Point = collections.namedtuple("Point", "x y")
    value = [collections.OrderedDict(b=tensor(1), a=1), Point(1, tensor(1)), collections.defaultdict(list, k=[tensor(1)])]
    save(value, tmp_path / "x")
    received = load(tmp_path / "x")
    assert type(received[0]) is collections.OrderedDict
    assert type(received[1]) is tuple
    assert type(received[2]) is dict


def test_state_dict_options(tmp_path):
    save(OBJECTS["state dict"], tmp_path / "x")
    assert load(tmp_path / "x", keep_name_table=True)[files.NAME_TABLE] == {"weight": "w", "bias": "b"}
    received = load(tmp_path / "x", return_numpy=True)
    received["bias"][0] = 7  # writable, not a view of the file
    assert list(received) == ["weight", "bias"]
    save(OBJECTS["bfloat16"], tmp_path / "y")
    assert load(tmp_path / "y", return_numpy=True)["w"].dtype == np.uint16


def test_the_same_array_twice_is_written_once(tmp_path):
    shared = np.zeros(10_000)
    save([1, {"a": shared}, shared], tmp_path / "x")
    assert (tmp_path / "x").stat().st_size < 90_000


class Evil:
    def __reduce__(self):
        return os.system, ("touch " + Evil.mark,)


@pytest.mark.parametrize("protocol", [0, 2, 4])
def test_a_file_that_asks_for_code_is_refused_and_nothing_runs(tmp_path, protocol):
    Evil.mark = str(tmp_path / "ran")
    (tmp_path / "x").write_bytes(pickle.dumps({"w": Evil()}, protocol))
    with pytest.raises(
        pickle.UnpicklingError, match=r"asks for (posix|nt)\.system; loading it could run any code.*\n.*trusted_types=\[system\]"
    ):
        load(tmp_path / "x")
    assert not (tmp_path / "ran").exists()


@pytest.mark.parametrize(
    "stream",
    [
        b"cbuiltins\neval\n(S'1'\ntR.",
        b"cbuiltins\ngetattr\n.",
        b"c__builtin__\nexec\n.",
        b"cnumpy\nfrombuffer\n.",
        b"cnumpy\nload\n.",
        b"cnumpy.core.multiarray\nscalar\n(cnumpy\ndtype\n(S'O8'\nI00\nI01\ntRS'x'\ntR.",
        b"c_codecs\nencode\n(S'x'\nS'rot13'\ntR.",
        b"\x80\x04\x8c\x08builtins\x8c\x0a__import__\x93.",
        b"\x80\x04\x8c\x05numpy\x8c\x14ndarray.__setstate__\x93.",
        b"Vsome id\nQ.",
        b"cnumpy\ndtype\n(S'M8'\nI00\nI01\ntR.",
        b"cnumpy\ndtype\n(S'f4,f4'\nI00\nI01\ntR.",
    ],
)
def test_streams_that_reach_outside_the_list_are_refused(stream):
    with pytest.raises(pickles.UnsafeFileError):
        load(io.BytesIO(stream))


def test_arrays_whose_size_does_not_fit_their_content_are_refused():
    good = pickle.dumps(np.arange(4, dtype="int32"), 4)
    assert load(io.BytesIO(good), return_numpy=True).tolist() == [0, 1, 2, 3]
    with pytest.raises(pickles.UnsafeFileError, match="has another size"):
        load(io.BytesIO(good.replace(b"K\x01K\x04\x85", b"K\x01K\x7f\x85")))


def test_a_trusted_class_is_loaded_and_others_still_refused(tmp_path):
    save({"d": Settings(3), "t": tensor(2)}, tmp_path / "x")
    with pytest.raises(pickles.UnsafeFileError, match="Settings"):
        load(tmp_path / "x")
    assert load(tmp_path / "x", trusted_types=[Settings])["d"].value == 3


class Settings:
    def __init__(self, value):
        self.value = value


@pytest.mark.parametrize("keep", [0, 1, 17, 0.3, 0.9, -1])
def test_cut_off_and_foreign_files_raise_with_the_path(tmp_path, keep):
    save(OBJECTS["state dict"], tmp_path / "whole")
    content = (tmp_path / "whole").read_bytes()
    (tmp_path / "x").write_bytes(content[: int(keep * len(content)) if isinstance(keep, float) else keep])
    with pytest.raises(ValueError, match="x' cannot be read"):
        load(tmp_path / "x")


def test_a_damaged_file_raises_or_loads_but_never_crashes(tmp_path):
    file = io.BytesIO()
    save(OBJECTS["nested"], file)
    random = np.random.default_rng(0)
    for _ in range(500):
        damaged = bytearray(file.getvalue())
        for _ in range(3):
            damaged[random.integers(len(damaged))] = random.integers(256)
        try:
            load(io.BytesIO(damaged))
        except (ValueError, pickle.UnpicklingError):
            pass


def test_a_failed_save_leaves_the_old_file_and_no_other(tmp_path):
    path = tmp_path / "x"
    save([1], path)
    with pytest.raises(Exception, match="lambda"):
        save([tensor(200_000), lambda: 0], path)
    assert load(path) == [1]
    assert os.listdir(tmp_path) == ["x"]


def test_saving_keeps_the_files_mode_and_follows_links(tmp_path):
    (tmp_path / "real").write_bytes(b"")
    os.chmod(tmp_path / "real", 0o640)
    os.symlink(tmp_path / "real", tmp_path / "link")
    save([1], tmp_path / "link")
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "real").stat().st_mode & 0o777 == 0o640
    assert load(tmp_path / "real") == [1]


@pytest.mark.parametrize("protocol", [2, 3])
def test_large_arrays_are_cut_into_pieces_and_joined(tmp_path, monkeypatch, protocol):
    monkeypatch.setattr(files, "_PIECE_BYTES", 1023)
    state = {"w": tensor(20, 30), "b": tensor(3), "h": tensor(7, 111, dtype=ml_dtypes.bfloat16)}
    save(state, tmp_path / "x", protocol=protocol)
    raw = pickle.loads((tmp_path / "x").read_bytes(), encoding="latin1")
    assert raw[files.PIECE_TABLE]["w"] == {"OriginShape": (20, 30), "slices": ["w@@.0", "w@@.1", "w@@.2"]}
    assert max(v.nbytes for v in raw.values() if isinstance(v, np.ndarray)) <= 1023
    received = load(tmp_path / "x")
    assert {k: arrays.to_array(received[k]).tobytes() for k in state} == {
        k: arrays.to_array(v).tobytes() for k, v in state.items()
    }
    del raw["w@@.1"]
    (tmp_path / "x").write_bytes(pickle.dumps(raw))
    with pytest.raises(ValueError, match="pieces of 'w' do not fit"):
        load(tmp_path / "x")


def test_an_array_too_large_for_the_protocol_names_the_way_out():
    writer = pickles._Writer(io.BytesIO(), 3)
    with pytest.raises(ValueError, match=r"4,294,967,296 bytes with protocol=3.*\n.*protocol=4"):
        writer._size(np.broadcast_to(np.uint8(0), 1 << 32), 4)


def test_saving_makes_no_copy_of_large_arrays(tmp_path):
    state = {str(i): to_tensor(np.zeros(1_000_000, "float32")) for i in range(4)}
    tracemalloc.start()
    save(state, tmp_path / "x")
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 1_000_000


def test_streams_use_only_names_that_every_numpy_has(tmp_path):
    save(OBJECTS["nested"], tmp_path / "x")
    words = {argument for _, argument, _ in pickletools.genops((tmp_path / "x").read_bytes()) if isinstance(argument, str)}
    assert "ndarray" in words
    assert not any("multiarray" in word for word in words)


@pytest.mark.parametrize(
    ("call", "error", "text"),
    [
        (lambda: save([1], ""), ValueError, "path is ''; it must name a file"),
        (lambda: save([1], "/tmp"), ValueError, "path is '/tmp'; it must name a file, not a folder"),
        (lambda: save([1], 3), TypeError, "path is 3"),
        (lambda: save([1], "x", protocol=5), ValueError, "protocol is 5; it must be 2, 3 or 4"),
        (lambda: save([1], "x", protocol="4"), ValueError, "protocol is '4'"),
        (lambda: save([1], "x", zip=True), ValueError, "unknown option 'zip'"),
        (lambda: save([1], "x", use_binary_format=True), TypeError, "holds one tensor"),
        (lambda: load("/tmp/no/such.file"), FileNotFoundError, "there is no such file"),
        (lambda: load("/tmp/no/such.file"), ValueError, "there is no such file"),
        (lambda: load("x", safe=False), ValueError, "unknown option 'safe'"),
    ],
)
def test_bad_arguments(call, error, text):
    with pytest.raises(error, match=text):
        call()


def test_a_layer_and_an_endless_container_are_refused(tmp_path):
    class Layer:
        def state_dict(self):
            return {}

        def forward(self):
            pass

    with pytest.raises(TypeError, match="is a layer"):
        save(Layer(), tmp_path / "x")
    endless = [tensor(1)]
    endless.append(endless)
    with pytest.raises(ValueError, match="a container holds itself"):
        save(endless, tmp_path / "x")


@pytest.mark.parametrize("dtype", ["float32", "int64", "bool", "complex64", ml_dtypes.bfloat16])
def test_binary_form_of_one_tensor(tmp_path, dtype):
    value = tensor(2, 300, dtype=dtype)
    save(value, tmp_path / "x", use_binary_format=True)
    assert same(load(tmp_path / "x"), value)
    content = (tmp_path / "x").read_bytes()
    for damaged in (content[:-1], content[:30], content[:19], b"\x00" + content):
        with pytest.raises(ValueError, match="no tensor in Paddle's binary format"):
            load(io.BytesIO(damaged))


def test_safetensors_round_trip_and_layout(tmp_path):
    path = tmp_path / "x.safetensors"
    state = {
        "w": tensor(2, 3),
        "h": tensor(3, dtype=ml_dtypes.bfloat16),
        "e": tensor(0, 4),
        "s": tensor(dtype="int64"),
        "b": tensor(2, dtype="bool"),
    }
    save(state, path)
    received = load(path)
    assert {k: arrays.to_array(v).tobytes() for k, v in received.items()} == {
        k: arrays.to_array(v).tobytes() for k, v in state.items()
    }
    assert received["w"].shape == (2, 3)
    content = path.read_bytes()
    length = int.from_bytes(content[:8], "little")
    assert length % 8 == 0
    header = json.loads(content[8 : 8 + length])
    assert header["h"] == {"dtype": "BF16", "shape": [3], "data_offsets": [24, 30]}
    save_safetensors(state, path, metadata={"format": "pt"})
    assert list(load_safetensors(path)) == list(state)
    assert load(path, return_numpy=True)["w"].flags.writeable


@pytest.mark.parametrize(
    "entry",
    [
        {"dtype": "F32", "shape": [3], "data_offsets": [0, 8]},
        {"dtype": "F32", "shape": [2], "data_offsets": [8, 16]},
        {"dtype": "F32", "shape": [-2], "data_offsets": [0, 8]},
        {"dtype": "F99", "shape": [2], "data_offsets": [0, 8]},
        {"dtype": "F32", "shape": [2]},
        [],
    ],
)
def test_safetensors_entries_that_do_not_fit_are_refused(tmp_path, entry):
    text = json.dumps({"w": entry}).encode()
    (tmp_path / "x.safetensors").write_bytes(len(text).to_bytes(8, "little") + text + bytes(8))
    with pytest.raises(ValueError, match="the entry of 'w'"):
        read_arrays(tmp_path / "x.safetensors")


@pytest.mark.parametrize(
    "content", [b"", b"\x01", b"\xff" * 16, (2).to_bytes(8, "little") + b"[]", (2).to_bytes(8, "little") + b"{,"]
)
def test_files_that_are_no_safetensors_are_refused(tmp_path, content):
    (tmp_path / "x.safetensors").write_bytes(content)
    with pytest.raises(ValueError, match="no whole safetensors file"):
        read_arrays(tmp_path / "x.safetensors")


def test_safetensors_refuse_nesting_and_unknown_types(tmp_path):
    with pytest.raises(TypeError, match="flat dict"):
        save({"a": [tensor(1)]}, tmp_path / "x.safetensors")
    with pytest.raises(TypeError, match="flat dict"):
        save([tensor(1)], tmp_path / "x.safetensors")
    with pytest.raises(ValueError, match="the safetensors format holds"):
        save({"a": tensor(1, dtype="complex128")}, tmp_path / "x.safetensors")


def test_a_process_killed_while_saving_leaves_the_old_file(tmp_path):
    path = tmp_path / "x"
    save([1], path)
    script = f"""
import os, numpy as np
from sampan.framework import save
class Bomb:
    def __reduce__(self):
        os._exit(9)
save([np.zeros(1_000_000), Bomb()], {str(path)!r})
"""
    assert subprocess.run([sys.executable, "-c", script], check=False).returncode == 9
    assert load(path) == [1]


PADDLE_READS = """
import json, sys, paddle
def shown(o):
    if isinstance(o, paddle.Tensor):
        return ["tensor", str(o.dtype), o.astype("float64").numpy().tolist() if o.dtype != paddle.bool else o.numpy().tolist()]
    if isinstance(o, dict):
        return {str(k): shown(v) for k, v in o.items()}
    if isinstance(o, (list, tuple)):
        return [type(o).__name__, *map(shown, o)]
    return repr(o)
print(json.dumps([shown(paddle.load(p)) for p in sys.argv[1:]]))
"""


@needs_paddle
def test_paddle_reads_our_files(tmp_path, monkeypatch):
    state = {"w": tensor(2, 3), "h": tensor(2, dtype=ml_dtypes.bfloat16), "LR_Scheduler": {"last_lr": 0.5}}
    for protocol in (2, 3, 4):
        save(state, tmp_path / f"state{protocol}", protocol=protocol)
        save([tensor(2), {"a": (tensor(1, dtype="int64"), "s")}], tmp_path / f"nested{protocol}", protocol=protocol)
    save(tensor(2, 3, dtype="float64"), tmp_path / "binary", use_binary_format=True)
    monkeypatch.setattr(files, "_PIECE_BYTES", 16)
    save({"w": tensor(2, 3)}, tmp_path / "pieces", protocol=2)
    names = sorted(p.name for p in tmp_path.iterdir())
    received = dict(zip(names, ask_paddle(PADDLE_READS, *(str(tmp_path / n) for n in names)), strict=True))
    w = ["tensor", "paddle.float32", [[0, 1, 2], [3, 4, 5]]]
    for protocol in "234":
        assert received["state" + protocol] == {
            "w": w,
            "h": ["tensor", "paddle.bfloat16", [0, 1]],
            "LR_Scheduler": {"last_lr": "0.5"},
        }
        assert received["nested" + protocol] == [
            "list",
            ["tensor", "paddle.float32", [0, 1]],
            {"a": ["tuple", ["tensor", "paddle.int64", [0]], "'s'"]},
        ]
    assert received["binary"] == ["tensor", "paddle.float64", w[2]]
    assert received["pieces"] == {"w": w}


PADDLE_WRITES = """
import sys, json, paddle, numpy as np
folder = sys.argv[1]
w = paddle.arange(6, dtype="float32").reshape([2, 3])
net = paddle.nn.Linear(2, 3)
net.weight.set_value(w)
for p in (2, 3, 4):
    paddle.save(net.state_dict(), f"{folder}/state{p}", protocol=p)
    nested = [w, {"a": (paddle.to_tensor(3), "s"), "n": np.arange(2), "h": w[0].astype("bfloat16")}]
    paddle.save(nested, f"{folder}/nested{p}", protocol=p)
opt = paddle.optimizer.Adam(paddle.optimizer.lr.StepDecay(0.1, 2), parameters=net.parameters())
net(w.T[:, :2]).sum().backward()
opt.step()
paddle.save(opt.state_dict(), f"{folder}/opt")
paddle.save(w, f"{folder}/binary", use_binary_format=True)
print(json.dumps(sorted(opt.state_dict())))
"""


@needs_paddle
def test_we_read_paddles_files(tmp_path):
    keys = ask_paddle(PADDLE_WRITES, str(tmp_path))
    w = tensor(2, 3)
    for protocol in "234":
        state = load(tmp_path / f"state{protocol}")
        assert same(state["weight"], w)
        assert state["bias"].shape == (3,)
        nested = load(tmp_path / f"nested{protocol}")
        assert same(nested[0], w)
        assert same(nested[1]["a"], (to_tensor(np.int64(3)), "s"))
        assert same(nested[1]["n"], np.arange(2))
        assert nested[1]["h"].dtype.name == "bfloat16"
    received = load(tmp_path / "opt")
    assert sorted(received) == keys
    assert received["LR_Scheduler"] == {"last_epoch": 0, "last_lr": 0.1}
    assert same(load(tmp_path / "binary"), w)


def test_dtypes_and_arrays_in_queues_come_back():
    file = io.BytesIO()
    save({"dtype": sp.bfloat16, "recent": collections.deque([np.ones(2)], 3), "step": 1}, file)
    loaded = load(file.seek(0) or file)
    assert loaded["dtype"] is sp.bfloat16
    assert type(loaded["recent"][0]) is np.ndarray
    assert loaded["recent"].maxlen == 3


def test_arrays_of_the_other_byte_order_keep_their_numbers(tmp_path):
    array = np.array([1.0, 2.0], ">f4")
    save({"a": array}, tmp_path / "x.safetensors")
    assert load(tmp_path / "x.safetensors")["a"].tolist() == [1.0, 2.0]
    for settings in ({}, {"use_binary_format": True}):
        save(array, tmp_path / "x", **settings)
        assert load(tmp_path / "x").tolist() == [1.0, 2.0]


def test_a_name_that_safetensors_keeps_is_refused(tmp_path):
    with pytest.raises(ArgumentError, match="'__metadata__'; the format keeps that name"):
        save({"__metadata__": sp.ones([1])}, tmp_path / "x.safetensors")


class _Asks:
    def __init__(self, what, *args):
        self.call = what, args

    def __reduce__(self):
        return self.call


def test_files_cannot_ask_for_memory():
    with pytest.raises(UnsafeFileError, match="memory of any size"):
        load(io.BytesIO(pickle.dumps(_Asks(bytes, 1 << 40))))


@pytest.mark.parametrize("shape", [[0, 1 << 63], [1] * 70])
def test_impossible_shapes_are_named(tmp_path, shape):
    sizes = b"".join(b"\x10" + dense_tensor._varint(n) for n in shape)
    described = b"\x08\x05" + sizes
    with pytest.raises(ArgumentError, match="its shape is impossible"):
        load(io.BytesIO(struct.pack("<IQIi", 0, 0, 0, len(described)) + described + bytes(4)))
    header = json.dumps({"a": {"dtype": "F32", "shape": shape, "data_offsets": [0, 4 if shape[0] else 0]}}).encode()
    (tmp_path / "x.safetensors").write_bytes(len(header).to_bytes(8, "little") + header + bytes(4))
    with pytest.raises(ArgumentError, match="'a' has an impossible shape"):
        load(tmp_path / "x.safetensors")


def test_nested_headers_are_refused(tmp_path):
    header = b'{"a":' + b"[" * 100_000
    (tmp_path / "x.safetensors").write_bytes(len(header).to_bytes(8, "little") + header)
    with pytest.raises(ArgumentError, match="its header is no JSON"):
        load(tmp_path / "x.safetensors")
