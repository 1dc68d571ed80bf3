"""static.amp: Programs in mixed precision, the scale of the loss, 16-bit parameters, guards, lists; against the real PaddlePaddle."""

from __future__ import annotations

import json
import os
import subprocess
from contextlib import nullcontext

import numpy as np
import pytest
from front.reference import needs_paddle, paddle_python

import sampan as paddle
from sampan import static
from static.programs import floats, fresh_static_mode, held, run

amp = static.amp
F = paddle.nn.functional
SCALING = {"init_loss_scaling": 1024.0, "incr_every_n_steps": 3, "decr_every_n_nan_or_inf": 1, "use_dynamic_loss_scaling": True}


@pytest.fixture(autouse=True)
def static_mode():
    with fresh_static_mode() as main:
        yield main


def half(name):
    return paddle.ParamAttr(name=name, initializer=paddle.nn.initializer.Constant(0.5))


def network(guard=False):
    """x -> (fc, relu, softmax * relu, mean): the loss."""
    x = static.data("x", [None, 3])
    with amp.fp16_guard() if guard else nullcontext():
        h = static.nn.fc(x, 2, weight_attr=half("w"), bias_attr=half("b"))
    h = F.relu(h)
    return paddle.mean(F.softmax(h) * h)


def trained(loss, optimizer, steps=6, bad=4):
    """(loss, scale, weights) of each step; step ``bad`` is fed an infinity."""
    found = []
    for k in range(steps):
        x = np.ones([4, 3], "float32") * 0.1 * (1 + np.arange(3, dtype="float32"))
        if k == bad:
            x[0, 0] = np.inf
        values = run([loss, optimizer.get_loss_scaling()], {"x": x}, start=k == 0)
        found.append((values[0], values[1].item(), float32(held("w"))))
    return found


def start():
    """Run the startup Program."""
    static.Executor().run(static.default_startup_program())


def float32(array):
    """Elements of a 16-bit array, whose bits stand for bfloat16."""
    return (array.astype("uint32") << 16).view("float32") if array.dtype == np.uint16 else array.astype("float32")


def dtypes(program=None):
    """The dtypes of the forward statements' results, by the statements' names."""
    block = (program or static.default_main_program()).global_block()
    return {op.type.removeprefix("op."): str(op.outputs[0].dtype) for op in block.ops if not op.op.role}


# ---------------------------------------------------------------------- levels and lists


def test_o1_casts_by_the_lists_of_auto_cast():
    loss = network()
    amp.decorate(paddle.optimizer.SGD(0.1)).minimize(loss)
    lowered = dtypes()
    with static.program_guard(static.Program(), static.Program()), paddle.utils.unique_name.guard():
        with paddle.amp.auto_cast():
            network()
        assert lowered == dtypes()
    assert (lowered["matmul"], lowered["softmax"], lowered["mean"]) == ("float16", "float32", "float32")


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_o2_makes_parameters_16_bits_and_keeps_float32_copies(dtype):
    loss = network()
    optimizer = amp.decorate(paddle.optimizer.Adam(0.1), level="O2", dtype=dtype)
    optimizer.minimize(loss)
    assert set(dtypes().values()) == {dtype}
    start()
    scope = static.global_scope()
    assert scope.get("w").dtype.name == dtype
    copy = scope.get("w_fp32_master_0")
    assert copy.dtype.name == "float32"
    assert copy.numpy().tolist() == np.full([3, 2], 0.5).tolist()
    assert scope.get("w_fp32_master_0_moment1_0").dtype.name == "float32"


def test_float32_copies_start_from_what_the_initializer_gave_not_from_its_rounding():
    x = static.data("x", [None, 3])
    weight = paddle.ParamAttr(name="w", initializer=paddle.nn.initializer.Constant(0.1))
    loss = static.nn.fc(x, 2, weight_attr=weight, bias_attr=False).mean()
    amp.decorate(paddle.optimizer.SGD(0.1), level="O2", dtype="bfloat16").minimize(loss)
    start()
    assert held("w_fp32_master_0")[0, 0] == np.float32(0.1)
    assert float32(held("w"))[0, 0] == np.float32(0.10009765625)


def test_o2_leaves_norms_and_embeddings_in_float32():
    ids = static.data("ids", [None, 4], "int64")
    h = static.nn.embedding(ids, [10, 8], param_attr=half("table"))
    h = static.nn.layer_norm(h, begin_norm_axis=2, param_attr=half("scale"), bias_attr=half("shift"))
    loss = static.nn.fc(h, 3, num_flatten_dims=2, weight_attr=half("w"), bias_attr=False).mean()
    amp.decorate(paddle.optimizer.SGD(0.1), level="O2", dtype="bfloat16").minimize(loss)
    main = static.default_main_program()
    assert {n: str(main.var(n).dtype) for n in ("table", "scale", "shift", "w")} == {
        "table": "float32", "scale": "float32", "shift": "float32", "w": "bfloat16",
    }  # fmt: skip
    values = run([loss], {"ids": np.zeros([2, 4], "int64")}, start=True)
    assert np.isfinite(float32(values[0])).all()


def test_running_statistics_keep_their_dtype_and_are_updated():
    x = static.data("x", [None, 3, 4, 4])
    h = static.nn.conv2d(x, 2, 3, bias_attr=False)
    h = static.nn.batch_norm(h, moving_mean_name="mean", moving_variance_name="variance")
    amp.decorate(paddle.optimizer.SGD(0.1), level="O2", dtype="bfloat16").minimize(h.mean())
    run([], {"x": floats(5, 3, 4, 4)}, start=True)
    run([], {"x": floats(5, 3, 4, 4)})
    assert held("mean").dtype == np.float32
    assert held("mean").any()


def test_custom_lists_move_operators_and_variables():
    x = static.data("x", [None, 3])
    y = paddle.exp(x)
    z = static.nn.fc(x, 2, weight_attr=half("w"), bias_attr=False)
    lists = amp.CustomOpLists(custom_white_list=["exp"], custom_black_varnames=["w"])
    amp.decorate(paddle.optimizer.SGD(0.1), lists).minimize(z.mean() + y.mean())
    found = dtypes()
    assert (found["exp"], found["matmul"]) == ("float16", "float32")
    with pytest.raises(ValueError, match="both lists"):
        amp.CustomOpLists(["exp"], ["exp"])


def test_only_what_the_guard_marks_is_lowered_where_it_is_asked_for():
    loss = network(guard=True)
    amp.decorate(paddle.optimizer.SGD(0.1), level="O2", use_amp_guard=True).minimize(loss)
    found = dtypes()
    assert (found["matmul"], found["add"]) == ("float16", "float16")
    assert {found[n] for n in ("relu", "softmax", "multiply", "mean")} == {"float32"}


def test_the_guard_alone_changes_nothing():
    loss = network(guard=True)
    assert set(dtypes().values()) == {"float32"}
    paddle.optimizer.SGD(0.1).minimize(loss)
    assert run([loss], {"x": np.ones([2, 3], "float32")}, start=True)[0].dtype == np.float32


def test_statements_that_were_recorded_under_auto_cast_keep_their_rule():
    x = static.data("x", [None, 3])
    with paddle.amp.auto_cast(dtype="bfloat16"):
        h = static.nn.fc(x, 2, weight_attr=half("w"), bias_attr=False)
    loss = static.nn.fc(h, 2, weight_attr=half("v"), bias_attr=False).mean()
    amp.decorate(paddle.optimizer.SGD(0.1)).minimize(loss)
    products = [str(op.outputs[0].dtype) for op in static.default_main_program().global_block().ops if op.type == "op.matmul"]
    assert products == ["bfloat16", "float16"]
    assert np.isfinite(run([loss], {"x": floats(4, 3)}, start=True)[0])


# ---------------------------------------------------------------------- training


@pytest.mark.parametrize("method", ["SGD", "Adam", "Momentum", "AdamW"])
@pytest.mark.parametrize("level", ["O1", "O2"])
def test_training_equals_eager_mode_with_auto_cast_and_grad_scaler(method, level):
    loss = network()
    optimizer = amp.decorate(getattr(paddle.optimizer, method)(0.1), level=level, dtype="bfloat16", **SCALING)
    optimizer.minimize(loss)
    found = trained(loss, optimizer)
    paddle.disable_static()
    layer = paddle.nn.Linear(3, 2, half(None), half(None))
    eager = getattr(paddle.optimizer, method)(0.1, parameters=layer.parameters())
    if level == "O2":
        layer, eager = paddle.amp.decorate(layer, eager, level="O2", dtype="bfloat16")
    scaler = paddle.amp.GradScaler(True, 1024.0, 2.0, 0.5, 3, 1)
    for k, (value, scale, weights) in enumerate(found):
        x = np.ones([4, 3], "float32") * 0.1 * (1 + np.arange(3, dtype="float32"))
        if k == 4:
            x[0, 0] = np.inf
        with paddle.amp.auto_cast(level=level, dtype="bfloat16"):
            h = F.relu(layer(paddle.to_tensor(x)))
            expected = paddle.mean(F.softmax(h) * h)
        scaler.scale(expected).backward()
        scaler.step(eager)
        scaler.update()
        eager.clear_grad()
        np.testing.assert_allclose(float32(value), expected.astype("float32").numpy(), rtol=0.02, atol=1e-3)
        assert scale == scaler.get_init_loss_scaling()
        np.testing.assert_allclose(weights, layer.weight.astype("float32").numpy(), rtol=0.02, atol=2e-3)
    paddle.enable_static()


def test_a_step_that_is_not_finite_leaves_parameters_states_and_the_optimizers_count(static_mode):
    loss = network()
    optimizer = amp.decorate(paddle.optimizer.Adam(0.1), **SCALING)
    optimizer.minimize(loss)
    good, bad = np.ones([4, 3], "float32"), np.full([4, 3], np.inf, "float32")
    run([], {"x": good}, start=True)
    names = [n for n in static_mode.state_dict() if "scal" not in n and "steps" not in n and "is_finite" not in n]
    before = {n: static_mode.state_dict()[n].numpy().copy() for n in names}
    powers = {k: np.asarray(v) for k, v in optimizer.state_dict().items() if "pow" in k}
    run([], {"x": bad})
    for name, value in before.items():
        np.testing.assert_array_equal(static_mode.state_dict()[name].numpy(), value)
    for name, value in powers.items():
        np.testing.assert_array_equal(np.asarray(optimizer.state_dict()[name]), value)
    assert held(optimizer.get_loss_scaling().name).item() == 512.0
    run([], {"x": good})
    assert (held("w") != before["w"]).all()


def test_the_scale_neither_falls_below_one_nor_becomes_infinite():
    loss = network()
    options = SCALING | {"incr_every_n_steps": 1, "incr_ratio": 1e30, "init_loss_scaling": 1e20}
    optimizer = amp.decorate(paddle.optimizer.SGD(0.0), dtype="bfloat16", **options)
    optimizer.minimize(loss)
    scale = optimizer.get_loss_scaling()
    good, bad = np.full([4, 3], 1e-30, "float32"), np.full([4, 3], np.inf, "float32")
    assert run([scale], {"x": good}, start=True)[0].item() == np.float32(1e20)
    static.global_scope().get(scale.name).set_value(np.ones([1], "float32"))
    assert run([scale], {"x": bad})[0].item() == 1.0


def test_without_dynamic_scaling_the_scale_stays_and_bad_steps_are_skipped():
    loss = network()
    optimizer = amp.decorate(paddle.optimizer.SGD(0.1), init_loss_scaling=8.0, use_dynamic_loss_scaling=False)
    optimizer.minimize(loss)
    found = trained(loss, optimizer)
    assert {scale for _, scale, _ in found} == {8.0}
    np.testing.assert_array_equal(found[4][2], found[3][2])
    assert np.isfinite(found[5][2]).all()


def test_gradients_are_clipped_after_they_are_unscaled():
    loss = network()
    clip = paddle.nn.ClipGradByGlobalNorm(1e-3)
    optimizer = amp.decorate(paddle.optimizer.SGD(1.0, grad_clip=clip), master_grad=True, level="O2", **SCALING)
    optimizer.minimize(loss)
    run([], {"x": np.ones([4, 3], "float32")}, start=True)
    moved = [held(f"{n}_fp32_master_0") - 0.5 for n in ("w", "b")]
    assert np.sqrt(sum((m**2).sum() for m in moved)) == pytest.approx(1e-3, rel=2e-2)


def test_control_flow_computes_low_inside_and_keeps_its_types():
    x = static.data("x", [4, 3])
    w = static.create_parameter([3, 3], "float32", attr=half("w"))
    h = static.nn.cond(x.sum() > 0, lambda: x @ w, lambda: (x @ w) * 2)
    _, h = static.nn.while_loop(lambda k, h: k < 2, lambda k, h: [k + 1, h @ w], [paddle.zeros([], "int64"), h])
    loss = h.mean()
    test = static.default_main_program().clone(for_test=True)
    amp.decorate(paddle.optimizer.SGD(0.01), level="O2", dtype="bfloat16").minimize(loss)
    main = static.default_main_program()
    inner = {str(op.outputs[0].dtype) for block in main.blocks[1:] for op in block.ops if op.type == "op.matmul"}
    assert inner == {"bfloat16"}
    assert str(main.var("w").dtype) == "float32"
    assert {str(op.outputs[0].dtype) for block in test.blocks[1:] for op in block.ops if op.type == "op.matmul"} == {"float32"}
    feed = {"x": floats(4, 3)}
    value = run([loss], feed, start=True)[0]
    exact = run([loss.name], feed, program=test)[0]
    np.testing.assert_allclose(float32(value), exact, rtol=0.1, atol=0.05)
    before = held("w").copy()
    run([loss], feed)
    assert (held("w") != before).any()


def test_a_gradient_penalty_that_the_program_holds_already_stays_in_float32():
    x = static.data("x", [4, 3])
    x.stop_gradient = False
    y = static.nn.fc(x, 1, weight_attr=half("w"), bias_attr=False)
    (slope,) = static.gradients(y, x)
    loss = y.mean() + slope.sum()
    lowered = static.nn.fc(loss.reshape([1, 1]), 1, weight_attr=half("v"), bias_attr=False).mean()
    amp.decorate(paddle.optimizer.SGD(0.1), dtype="bfloat16").minimize(lowered, parameter_list=["v"])
    assert run([slope], {"x": floats(4, 3)}, start=True)[0].tolist() == np.full([4, 3], 0.5).tolist()


def test_evaluation_clones_before_and_after(static_mode):
    loss = network()
    before = static_mode.clone(for_test=True)
    optimizer = amp.decorate(paddle.optimizer.SGD(0.1), level="O2", dtype="bfloat16")
    optimizer.minimize(loss)
    after = static_mode.clone(for_test=True)
    feed = {"x": floats(4, 3)}
    start()
    optimizer.amp_init(paddle.CPUPlace(), test_program=before, use_fp16_test=True)
    values = [run([loss.name], feed, program=p)[0] for p in (before, after)]
    assert dtypes(before) == dtypes(after)
    np.testing.assert_array_equal(*values)
    assert not [op for op in after.global_block().ops if op.op.role]


def test_saving_and_warm_start(tmp_path, static_mode):
    loss = network()
    optimizer = amp.decorate(paddle.optimizer.Adam(0.1), level="O2", dtype="bfloat16", **SCALING)
    optimizer.minimize(loss)
    feed = {"x": np.ones([4, 3], "float32")}
    for k in range(4):
        run([], feed, start=k == 0)
    static.save(static_mode, str(tmp_path / "model"))
    kept = {n: t.numpy().copy() for n, t in static_mode.state_dict().items()}
    expected = run([loss], feed)[0]
    start()
    assert held(optimizer.get_loss_scaling().name).item() == 1024.0
    static.load(static_mode, str(tmp_path / "model"))
    for name, value in kept.items():
        np.testing.assert_array_equal(static_mode.state_dict()[name].numpy(), value)
    np.testing.assert_array_equal(run([loss], feed)[0], expected)


def test_inference_models_of_lowered_programs(tmp_path, static_mode):
    x = static.data("x", [None, 3])
    y = static.nn.fc(x, 2, weight_attr=half("w"), bias_attr=half("b"))
    amp.decorate(paddle.optimizer.SGD(0.1), dtype="bfloat16").minimize(y.mean())
    exe, feed = static.Executor(), {"x": floats(4, 3)}
    exe.run(static.default_startup_program())
    expected = exe.run(static_mode.clone(for_test=True), feed, [y.name])[0]
    static.save_inference_model(str(tmp_path / "net"), [x], [y], exe)
    program, names, results = static.load_inference_model(str(tmp_path / "net"), exe)
    np.testing.assert_array_equal(exe.run(program, dict(zip(names, feed.values(), strict=True)), results)[0], expected)


def test_amp_init_casts_what_was_loaded_in_float32():
    loss = network()
    optimizer = amp.decorate(paddle.optimizer.SGD(0.1), level="O2")
    optimizer.minimize(loss)
    start()
    scope = static.global_scope()
    paddle.disable_static()
    scope.put("w", paddle.full([3, 2], 0.1))
    paddle.enable_static()
    optimizer.amp_init(paddle.CPUPlace(), rewrite_master_weight=True)
    assert held("w").dtype == np.float16
    assert held("w_fp32_master_0")[0, 0] == np.float32(0.1)


# ---------------------------------------------------------------------- the functions by themselves


def test_cast_model_and_parameters():
    loss = network()
    main = static.default_main_program()
    names = amp.cast_model_to_fp16(main, use_fp16_guard=False)
    assert names == {"w", "b"}
    start()
    amp.cast_parameters_to_fp16(paddle.CPUPlace(), main, to_fp16_var_names=names)
    assert held("w").dtype == np.float16
    assert run([loss], {"x": floats(4, 3)})[0].dtype == np.float16


def test_parameters_without_values_are_refused():
    network()
    main = static.default_main_program()
    amp.cast_model_to_fp16(main, use_fp16_guard=False)
    with pytest.raises(ValueError, match="no value in the scope"):
        amp.cast_parameters_to_fp16(paddle.CPUPlace(), main)


def test_bf16_functions():
    bf16 = amp.bf16
    loss = network()
    main, startup = static.default_main_program(), static.default_startup_program()
    bf16.rewrite_program_bf16(main)
    assert (dtypes()["matmul"], str(main.var("w").dtype)) == ("bfloat16", "float32")
    assert run([loss], {"x": floats(4, 3)}, start=True)[0].dtype == np.float32
    with static.program_guard(static.Program(), static.Program()):
        with bf16.bf16_guard():
            y = static.nn.fc(static.data("x", [None, 3]), 2, weight_attr=half("w2"), bias_attr=False)
        z = y * 2
        startup = static.default_startup_program()
        assert bf16.cast_model_to_bf16(static.default_main_program(), startup) == {"w2"}
        assert (str(y.dtype), str(z.dtype)) == ("bfloat16", "float32")
        start()
        bf16.cast_parameters_to_bf16(paddle.CPUPlace(), static.default_main_program())
        assert static.global_scope().get("w2").dtype.name == "bfloat16"
    assert bf16.convert_float_to_uint16([1.0, 2.5]).tolist() == [16256, 16416]


def test_bf16_decorated_optimizers_scale_nothing():
    loss = network()
    optimizer = amp.bf16.decorate_bf16(paddle.optimizer.SGD(0.1), amp.bf16.AutoMixedPrecisionListsBF16(), use_pure_bf16=False)
    optimizer.minimize(loss)
    assert {scale for _, scale, _ in trained(loss, optimizer)} == {1.0}


def test_operator_statistics_of_a_program(capsys):
    loss = network()
    amp.decorate(paddle.optimizer.SGD(0.1), dtype="bfloat16").minimize(loss)
    amp.debugging.collect_operator_stats(static.default_main_program(), print_subblocks=True)
    rows = {
        line.split("|")[0].strip(): line.split("|")[1:] for line in capsys.readouterr().out.splitlines() if line.startswith("  ")
    }
    assert [int(n) for n in rows["matmul"]] == [0, 1, 0, 0]
    assert [int(n) for n in rows["softmax"]] == [0, 0, 1, 0]
    with pytest.raises(TypeError, match="must be a Program"):
        amp.debugging.collect_operator_stats(3)


def test_amp_decorate_of_static_optimizers():
    loss = network()
    layer, optimizer = paddle.amp.decorate([], paddle.optimizer.SGD(0.1), level="O2", dtype="bfloat16")
    assert layer == []
    optimizer.minimize(loss)
    assert dtypes()["matmul"] == "bfloat16"


def test_the_form_of_earlier_versions():
    def settings(*args, **kwargs):
        made = amp.decorate(paddle.optimizer.SGD(0.1), *args, **kwargs)
        rule = made._rule
        return (
            made._level,
            made._dtype,
            made._first_scale,
            rule.incr_every_n_steps,
            rule.decr_ratio,
            made._only_guarded,
            made._is_dynamic,
        )

    assert settings() == ("O1", "float16", 65536.0, 2000, 0.5, False, True)
    assert settings(None, 8.0) == ("O1", "float16", 8.0, 1000, 0.8, False, True)
    assert settings(use_pure_fp16=True) == ("O2", "float16", 32768.0, 1000, 0.8, True, True)
    assert settings(use_pure_fp16=True, use_fp16_guard=False)[-2] is False
    assert settings(use_bf16=True) == ("O1", "bfloat16", 1.0, 1000, 0.8, False, False)
    assert settings(None, "O2", "bfloat16") == ("O2", "bfloat16", 65536.0, 2000, 0.5, False, False)


# ---------------------------------------------------------------------- wrong input


@pytest.mark.parametrize(
    ("options", "error", "words"),
    [
        ({"level": "O3"}, ValueError, "decorate.*level='O3'"),
        ({"dtype": "float64"}, ValueError, "dtype='float64'"),
        ({"init_loss_scaling": -1.0}, ValueError, "init_loss_scaling=-1.0"),
        ({"incr_ratio": 1.0}, ValueError, "incr_ratio=1.0"),
        ({"decr_ratio": 1.5}, ValueError, "decr_ratio=1.5"),
        ({"amp_lists": {"exp"}}, TypeError, "amp_lists is a set"),
        ({"use_pure_fp16": True, "level": "O2"}, TypeError, "earlier form"),
    ],
)
def test_wrong_settings_are_refused(options, error, words):
    with pytest.raises(error, match=words):
        amp.decorate(paddle.optimizer.SGD(0.1), **options)


def test_wrong_objects_and_orders_are_refused():
    with pytest.raises(TypeError, match="optimizer is a str"):
        amp.decorate("sgd")
    optimizer = amp.decorate(paddle.optimizer.SGD(0.1))
    with pytest.raises(RuntimeError, match="before minimize"):
        optimizer.get_loss_scaling()
    with pytest.raises(RuntimeError, match="before minimize"):
        optimizer.amp_init(paddle.CPUPlace())
    loss = network()
    optimizer.minimize(loss)
    with pytest.raises(RuntimeError, match="called before"):
        optimizer.minimize(loss)
    paddle.disable_static()
    with pytest.raises(TypeError, match="for Programs"):
        amp.decorate(paddle.optimizer.SGD(0.1, parameters=[paddle.ones([1])])).minimize(paddle.ones([1]))
    paddle.enable_static()


# ---------------------------------------------------------------------- against the real PaddlePaddle

_REFERENCE = """
import json, sys
import numpy as np, paddle
paddle.enable_static()
kind, options = sys.argv[1], json.loads(sys.argv[2])
main, startup = paddle.static.Program(), paddle.static.Program()
half = lambda name: paddle.ParamAttr(name=name, initializer=paddle.nn.initializer.Constant(0.5))
F = paddle.nn.functional
with paddle.static.program_guard(main, startup):
    x = paddle.static.data("x", [4, 3])
    h = F.relu(paddle.static.nn.fc(x, 2, weight_attr=half("w"), bias_attr=half("b")))
    loss = paddle.mean(F.softmax(h) * h)
    method = getattr(paddle.optimizer, options.pop("method"))(0.1)
    if kind == "bf16":
        optimizer = paddle.static.amp.bf16.decorate_bf16(method, **options)
    else:
        optimizer = paddle.static.amp.decorate(method, **options)
    optimizer.minimize(loss)
exe = paddle.static.Executor(paddle.CPUPlace())
exe.run(startup)
found = []
fetches = [loss] + ([optimizer.get_loss_scaling()] if kind == "scale" else [])
for k in range(6):
    x = np.ones([4, 3], "float32") * 0.1 * (1 + np.arange(3, dtype="float32"))
    if k == 4 and kind == "scale":
        x[0, 0] = np.inf
    values = exe.run(main, feed={"x": x}, fetch_list=fetches)
    weights = np.array(paddle.static.global_scope().find_var("w").get_tensor())
    found.append([float(values[0]), float(values[1][0]) if kind == "scale" else 1.0, weights.tolist()])
casts = {op.type: str(main.global_block().var(op.output_arg_names[0]).dtype).rpartition(".")[2].lower()
         for op in main.global_block().ops if not op.type.endswith("_grad")}
print(json.dumps([found, casts]))
"""


def ask(kind, **options):
    done = subprocess.run(
        [str(paddle_python()), "-c", _REFERENCE, kind, json.dumps(options)], capture_output=True, text=True, timeout=300, check=False,
        env={k: v for k, v in os.environ.items() if k != "PYTHONPATH"} | {"FLAGS_enable_pir_api": "0"},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-2000:]
    return json.loads(done.stdout.strip().splitlines()[-1])


@needs_paddle
@pytest.mark.parametrize("method", ["SGD", "Adam"])
def test_scales_and_trained_losses_are_those_of_paddlepaddle(method):
    # on the CPU its float16 Programs stay in float32
    expected, _ = ask("scale", method=method, **SCALING)
    loss = network()
    optimizer = amp.decorate(getattr(paddle.optimizer, method)(0.1), level="O1", **SCALING)
    optimizer.minimize(loss)
    for (value, scale, weights), (their_value, their_scale, their_weights) in zip(
        trained(loss, optimizer), expected, strict=True
    ):
        np.testing.assert_allclose(value, their_value, rtol=2e-3, atol=1e-5)
        assert scale == their_scale
        np.testing.assert_allclose(weights, their_weights, rtol=2e-3, atol=1e-5)


@needs_paddle
def test_bfloat16_casts_and_trained_losses_are_those_of_paddlepaddle():
    expected, casts = ask("bf16", method="SGD")
    loss = network()
    optimizer = amp.bf16.decorate_bf16(paddle.optimizer.SGD(0.1))
    optimizer.minimize(loss)
    found = dtypes()
    for theirs, ours in {"mul": "matmul", "softmax": "softmax", "reduce_mean": "mean"}.items():
        assert casts[theirs] == found[ours]
    for (value, _, weights), (their_value, _, their_weights) in zip(trained(loss, optimizer, bad=None), expected, strict=True):
        np.testing.assert_allclose(value, their_value, rtol=2e-2)
        np.testing.assert_allclose(weights, their_weights, rtol=2e-2)
