"""What Programs, blocks, statements and Variables can be asked, and what they refuse."""

from __future__ import annotations

import numpy as np
import pytest

import sampan as paddle


@pytest.fixture
def built():
    paddle.enable_static()
    main, startup = paddle.static.Program(), paddle.static.Program()
    try:
        with paddle.static.program_guard(main, startup):
            x = paddle.static.data("x", [None, 3])
            w = paddle.static.create_parameter([3, 2], "float32", name="w")
            y = paddle.nn.functional.dropout(paddle.matmul(x, w, transpose_y=False), 0.5)
            z = paddle.static.nn.cond(y.sum() > 0, lambda: y * 2, lambda: y)
        yield main, startup, x, w, z
    finally:
        paddle.disable_static()


def test_statements_can_be_read(built):
    main, _, x, w, _ = built
    block = main.global_block()
    product, drop = (next(op for op in block.ops if op.type == name) for name in ("op.matmul", "nn.functional.dropout"))
    assert product.input_names == ["x", "y"]
    assert product.input("x") == [x.name]
    assert product.input("y") == [w.name]
    assert product.input_arg_names == [x.name, w.name]
    assert product.output("0") == product.output_arg_names == [v.name for v in product.outputs]
    assert product.attr("transpose_y") is False
    assert product.has_attr("transpose_x")
    assert set(product.attr_names) == set(product.all_attrs())
    assert drop.attr("p") == 0.5
    assert len(drop.input_names) == 2  # and the key of its random numbers
    assert str(product) == f"{product.output_arg_names[0]} = op.matmul({x.name}, {w.name})"
    with pytest.raises(ValueError, match=r"op.matmul takes no Variable as 'z'; it has x, y"):
        product.input("z")
    with pytest.raises(ValueError, match="has no attribute 'alpha'"):
        product.attr("alpha")
    with pytest.raises(ValueError, match="has no result '1'"):
        product.output("1")


def test_blocks_know_their_parents(built):
    main = built[0]
    assert [b.parent_idx for b in main.blocks] == [-1, 0, 0]
    assert [p.name for p in main.global_block().iter_parameters()] == ["w"]
    assert main.get_output_value_by_name("x") is built[2]
    assert main.get_value_by_op_id(0) == list(main.global_block().ops[0].outputs)
    with pytest.raises(ValueError, match="op_id=99"):
        main.get_value_by_op_id(99)


def test_statements_are_appended_by_paddles_names():
    paddle.enable_static()
    try:
        main, startup = paddle.static.Program(), paddle.static.Program()
        with paddle.static.program_guard(main, startup):
            x, y = paddle.static.data("x", [None, 3]), paddle.static.data("y", [None, 3])
        block = main.global_block()
        total, shown, parts = (block.create_var(name=n, shape=[-1, 3]) for n in ("total", "shown", "part"))
        other = block.create_var(name="other", shape=[-1, 2])
        with paddle.static.program_guard(main, startup):
            w = block.create_parameter([3], "float32", default_initializer=paddle.nn.initializer.Constant(2.0))
        block.append_op(type="elementwise_add", inputs={"X": x, "Y": [y]}, outputs={"Out": total}, attrs={"axis": -1})
        block.append_op(type="elementwise_mul", inputs={"X": total, "Y": w}, outputs={"Out": [shown]})
        last = block.append_op(
            type="split", inputs={"X": shown}, outputs={"Out": [parts, other]}, attrs={"sections": [1, 2], "axis": 1}
        )
        assert last.type == "split"
        executor = paddle.static.Executor()
        executor.run(startup)
        a, b = np.arange(6, dtype="float32").reshape(2, 3), np.ones([2, 3], "float32")
        found = executor.run(main, feed={"x": a, "y": b}, fetch_list=[total, shown, "part", other])
        for value, wanted in zip(found, [a + b, 2 * (a + b), 2 * (a + b)[:, :1], 2 * (a + b)[:, 1:]], strict=True):
            np.testing.assert_array_equal(value, wanted)
        with pytest.raises(NotImplementedError, match="1 operators that are not known: no_such"):
            block.append_op(type="no_such", inputs={"X": x}, outputs={"Out": total})
        with pytest.raises(TypeError, match=r"inputs\['X'\] holds a int"):
            block.append_op(type="relu", inputs={"X": 3}, outputs={"Out": total})
        with pytest.raises(ValueError, match="gives nothing for 'total'"):
            block.append_op(type="relu", inputs={"X": x}, outputs={"Result": total})
        with pytest.raises(NotImplementedError, match="is used in a way that is not known"):
            block.append_op(type="relu", inputs={"X": x}, outputs={"Out": total}, attrs={"slope": 2.0})
    finally:
        paddle.disable_static()


def test_a_program_is_read_from_its_bytes(built):
    main, _, x, _, z = built
    paddle.static.Executor().run(built[1])
    data = paddle.static.serialize_program([x], [z], program=main)
    read = paddle.static.Program.parse_from_string(data)
    assert {op.type for op in read.global_block().ops} >= {"op.matmul", "cond"}


def test_parameters_are_taken_over_from_another_program(built):
    main, startup, *_ = built
    paddle.static.Executor().run(startup)
    held = paddle.static.global_scope().get("w")
    wanted = held.numpy().copy()
    other = paddle.static.Scope()
    main.clone().set_parameters_from(main, other)
    np.testing.assert_array_equal(other.get("w").numpy(), wanted)
    main.global_seed(3)
    assert main.random_seed == 3


REFUSED = [
    (lambda p, v: p.set_is_test_attr(), "clone"), (lambda p, v: p.copy_to_block({}, None), "clone"), (lambda p, v: v.pop(), "array"),
    (lambda p, v: v.to_dense(), "dense"), (lambda p, v: v.set_(v), "memory"), (lambda p, v: v.resize_([1]), "memory"),
    (lambda p, v: v.values(), "sparse"), (lambda p, v: v.indices(), "sparse"), (lambda p, v: v.create_parameter(), "static.create_parameter"),
    (lambda p, v: paddle.static.Executor().start_heter_trainer(p), "one kind"), (lambda p, v: paddle.static.Executor().split_program_by_device(p), "one kind"),
    (lambda p, v: paddle.static.IpuStrategy(), "IPU"), (lambda p, v: paddle.static.IpuCompiledProgram(p), "IPU"),
    (lambda p, v: paddle.static.nn.sequence_pool(v, "sum"), "pad"), (lambda p, v: paddle.static.nn.sequence_conv(v, 3, filter_size=2), "pad"),
    (lambda p, v: paddle.inference.Config().enable_use_gpu(100, 0), "GPU"), (lambda p, v: paddle.inference.Config().enable_tensorrt_engine(), "TensorRT"),
    (lambda p, v: paddle.inference.XpuConfig(), "XPU"),
    (lambda p, v: paddle.inference.convert_to_mixed_precision("a", "b", "c", "d", paddle.inference.PrecisionType.Half, paddle.inference.PlaceType.CPU), "save"),
]  # fmt: skip


@pytest.mark.parametrize("case", range(len(REFUSED)))
def test_what_programs_do_not_have_says_what_to_use(built, case):
    call, what = REFUSED[case]
    with pytest.raises(NotImplementedError, match=what):
        call(built[0], built[-1])


def test_attributes_of_variables(built):
    *_, x, w, _ = built
    assert w.attr("trainable") is True
    assert x.attr("stop_gradient") is True
    assert "trainable" in w.attr_names()
    assert "trainable" not in x.attr_names()
    with pytest.raises(ValueError, match="no attribute 'weight'"):
        w.attr("weight")
    with pytest.raises(TypeError, match="holds no gradient"):
        w.gradient()


def test_settings_belong_to_each_strategy():
    first, second = paddle.static.BuildStrategy(), paddle.static.BuildStrategy()
    first.trainers_endpoints.append("a")
    assert second.trainers_endpoints == []
    assert paddle.static.BuildStrategy.fuse_all_reduce_ops is True


def test_what_a_config_is_asked_about_other_engines():
    config = paddle.inference.Config()
    assert config.tensorrt_engine_enabled() is False
    assert config.onednn_enabled() is True
    assert config.gpu_device_id() == 0
    assert config.enable_profile() is None
    assert paddle.inference.get_trt_runtime_version() == (0, 0, 0)
