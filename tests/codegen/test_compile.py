"""The compiler's promises: how much is fused, what outputs share memory with, and in-place results."""

from __future__ import annotations

import numpy as np
import pytest
from codegen.compiling import assert_same, build, check, run_compiled, to_tensor

from sampan.base import flags
from sampan.base.dtypes import numpy_dtype
from sampan.base.errors import IRError
from sampan.codegen.compile import compile_program
from sampan.ir import interpreter
from sampan.ops import primitives as p
from sampan.ops.catalog import TABLE

DTYPES = (
    "bool",
    "int8",
    "uint8",
    "int16",
    "int32",
    "int64",
    "float16",
    "bfloat16",
    "float32",
    "float64",
    "complex64",
    "complex128",
)


def real(*shape: int, dtype: str = "float32"):
    rng = np.random.default_rng(sum(shape) + len(shape))
    return (rng.standard_normal(shape) * 3).astype(numpy_dtype(dtype))


def channels_last(*shape: int):
    order = (0, *range(2, len(shape)), 1)
    back = (0, len(shape) - 1, *range(1, len(shape) - 1))
    return np.ascontiguousarray(real(*shape).transpose(order)).transpose(back)


def softmax(x, axis):
    e = p.exp(p.sub(x, p.broadcast_to(p.reduce_max(x, (axis,)), x.shape)))
    return p.div(e, p.broadcast_to(p.reduce_sum(e, (axis,)), x.shape))


def normalized(x, axes):
    count = 1
    for axis in axes:
        count *= x.shape[axis]
    mean = p.mul(p.reduce_sum(x, axes), 1 / count)
    centered = p.sub(x, mean)
    variance = p.mul(p.reduce_sum(p.mul(centered, centered), axes), 1 / count)
    return p.mul(centered, p.rsqrt(p.add(variance, 1e-5))), mean, variance


def layer_norm(x, weight, bias):
    return p.add(p.mul(normalized(x, (x.ndim - 1,))[0], weight), bias)


def cross_entropy(x, label):
    rows = (x.shape[0], 1)
    shifted = p.sub(x, p.reduce_max(x, (1,)))
    log_probabilities = p.sub(shifted, p.log(p.reduce_sum(p.exp(shifted), (1,))))
    return p.neg(p.gather_elements(log_probabilities, p.reshape(label, rows), 1))


# ------------------------------------------------------------------ fusion


def test_a_chain_with_broadcasts_is_one_kernel():
    plan = check(lambda x, y: p.tanh(p.add(p.mul(p.exp(x), 2), y)), real(30, 40), real(40))
    assert plan.instruction_count == 1


@pytest.mark.parametrize("axis", [0, 1])
def test_softmax_is_one_kernel_whatever_the_layout(axis):
    assert check(lambda x: softmax(x, axis), real(37, 53)).instruction_count == 1
    assert check(lambda x: softmax(x, axis), real(53, 37).T).instruction_count == 1


def test_layer_norm_is_one_kernel():
    assert check(layer_norm, real(4, 5, 33), real(33), real(33)).instruction_count == 1


@pytest.mark.parametrize("array", [real(32, 20, 8, 8), channels_last(32, 20, 8, 8)])
def test_batch_statistics_and_normalisation_are_one_kernel(array):
    assert check(lambda x: normalized(x, (0, 2, 3)), array).instruction_count == 1


@pytest.mark.parametrize("array", [real(64, 3, 64, 64), channels_last(32, 20, 16, 16)])
def test_statistics_of_few_channels_are_reduced_in_parts(array):
    assert check(lambda x: normalized(x, (0, 2, 3)), array).instruction_count > 3


def test_cross_entropy_is_one_kernel_after_the_index_check():
    label = np.array([3, 0, -1, 16, 5])
    assert check(cross_entropy, real(5, 17), label).instruction_count == 2


def test_cross_entropy_of_a_label_outside_the_classes_raises():
    with pytest.raises(IndexError):
        check(cross_entropy, real(5, 17), np.array([3, 0, 17, 16, 5]))


def test_results_and_reductions_of_one_input_share_a_kernel():
    plan = check(lambda x, y: (p.mul(x, y), p.add(x, y), p.reduce_sum(p.mul(x, y), (1,))), real(30, 40), real(30, 40))
    assert plan.instruction_count == 1


def test_numbers_computed_from_numbers_are_computed_where_they_are_used():
    assert check(lambda x, s: p.mul(x, p.div(s, p.exp(s))), real(30, 40), real()).instruction_count == 1


def test_a_value_and_its_transpose_do_not_share_a_domain():
    check(lambda x: p.add(p.exp(x), p.transpose(p.exp(x), (1, 0))), real(30, 30))


def test_a_joined_kernel_reads_each_reductions_operand_by_its_own_axes():
    def centred(x, y):
        columns = p.sub(y, p.broadcast_to(p.reduce_sum(y, (0,)), y.shape))
        return p.add(p.sub(x, p.broadcast_to(p.reduce_sum(x, (1,)), x.shape)), p.transpose(columns, (1, 0)))

    check(centred, real(40, 40), real(40, 40)[::-1])

    def in_other_ranks(x, y):
        part = p.slice_(p.reshape(x, (6, 1, 8)), (0, 0, 4), (6, 1, 4), (1, 1, 1))
        part = p.sub(part, p.broadcast_to(p.reduce_max(part, (2,)), part.shape))
        return p.mul(p.reshape(part, (6, 4)), p.sub(y, p.broadcast_to(p.reduce_max(y, (1,)), y.shape)))

    check(in_other_ranks, real(6, 8), real(6, 4))


def test_kernels_that_read_each_others_values_along_other_axes_are_not_joined():
    def function(x):
        first = p.tanh(p.sub(x, p.broadcast_to(p.reduce_max(x, (1,)), x.shape)))
        turned = p.add(p.transpose(first, (1, 0)), x)
        return p.mul(p.sub(turned, p.broadcast_to(p.reduce_max(turned, (1,)), x.shape)), first)

    check(function, real(5, 5))


def test_two_reductions_along_different_axes():
    check(lambda x: p.reduce_max(p.reduce_sum(p.mul(x, x), (1,)), (0,)), real(50, 60))


def test_a_reduction_repeated_along_an_axis_of_the_same_length():
    check(lambda x: p.broadcast_to(p.reshape(p.reduce_sum(x, (1,)), (1, 30)), (30, 30)), real(30, 30))
    check(lambda x: p.broadcast_to(p.exp(x), (7, 30, 7)), real(30, 7))


@pytest.mark.parametrize("axes", [(0,), (1,), (2,), (0, 1), (1, 2), (0, 2), (0, 1, 2)])
@pytest.mark.parametrize("dtype", ["float32", "float64", "int32", "float16"])
def test_reductions_over_every_set_of_axes(axes, dtype):
    def body(x):
        return p.reduce_sum(x, axes), p.reduce_max(p.neg(x), axes), p.reduce_argmax(x, axes), p.reduce_argmin(x, axes)

    check(body, real(6, 7, 9, dtype=dtype), scale=4)
    check(body, real(6, 7, 9, dtype=dtype).transpose(2, 0, 1), scale=4)


@pytest.mark.parametrize("axes", [(0,), (1,), (0, 1)])
@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "int64"])
def test_large_reductions_in_two_stages(axes, dtype):
    x = (real(300, 700, dtype="float32") + 1).astype(numpy_dtype(dtype))
    check(lambda x: (p.reduce_sum(x, axes), p.reduce_min(x, axes)), x, scale=10)
    check(lambda x: (p.reduce_sum(x, axes), p.neg(x)), x.T, scale=10)


@pytest.mark.parametrize("rows", [49152, 49155])
@pytest.mark.parametrize("channels", [2, 3, 6, 12, 20])
def test_sums_over_many_rows_of_few_channels(channels, rows):
    """Rows that lie behind one another are folded into wider ones where their number allows it."""
    x, y = real(rows, channels), real(rows, channels)[::-1]

    def body(x, y):
        masked = p.select(p.gt(x, 0.0), y, 0.0)
        return masked, p.reduce_sum(masked, (0,)), p.reduce_max(x, (0,))

    check(body, x, np.ascontiguousarray(y), scale=10)
    check(body, x, y, scale=10)


@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "int32"])
def test_sums_of_few_channels_for_each_outer_row(dtype):
    x = real(3, 40000, 6, dtype=dtype)
    check(lambda x: (p.reduce_sum(x, (1,)), p.neg(x)), x, scale=10)
    check(lambda x: p.reduce_argmax(x, (1,)), x)


# ------------------------------------------------------------------ dtypes, empty, 0-d


@pytest.mark.parametrize("dtype", DTYPES)
def test_moves_of_every_dtype(dtype):
    x = real(6, 7, dtype=dtype)
    check(lambda x: (p.transpose(x, (1, 0)), p.reshape(p.transpose(x, (1, 0)), (42,)), p.concat([x, x], 0)), x)
    check(lambda x: (p.pad(x, (1, 0), (2, 3)), p.select(p.eq(x, x), x, x), p.slice_(x, (5, 0), (3, 7), (-2, 1))), x)


@pytest.mark.parametrize("source", DTYPES)
def test_casts_from_and_to_every_dtype(source):
    wanted = [d for d in DTYPES if not (source.startswith("complex") and not d.startswith("complex"))]
    check(lambda x: tuple(p.cast(x, d) for d in wanted if d != source), real(5, 7, dtype=source))


def test_empty_tensors():
    check(lambda x: (p.exp(x), p.reduce_sum(x, (1,)), p.reduce_sum(x, (0,)), p.reduce_sum(x, (0, 1))), real(0, 4))
    check(lambda x: (p.pad(p.exp(x), (1, 2), (0, 3)), p.concat([x, x], 0)), real(0, 4))


def test_numbers():
    check(lambda x: (p.exp(x), p.reshape(p.add(x, 1), (1, 1))), real())


def test_sources_as_results():
    check(lambda x: (p.iota((3, 4), 0), p.full((2, 3), 1.5, "float32"), p.slice_(p.iota((7,), 0), (6,), (3,), (-2,))), real(2))


# ------------------------------------------------------------------ outputs


def outputs_of(function, *arrays, **options):
    program = build(function, *arrays)
    wanted = interpreter.run(program, arrays, TABLE)
    tensors = [to_tensor(a) for a in arrays]
    plan = compile_program(program, [t.layout for t in tensors], **options)
    results = plan.run(tensors)
    for g, w in zip(results, wanted, strict=True):
        assert_same(g.numpy_view(), w)
    return results, tensors, plan


def test_a_view_output_shares_its_inputs_memory():
    (y,), (x,), plan = outputs_of(
        lambda x: p.slice_(p.transpose(x, (1, 0)), (1, 0), (3, 6), (1, 1)), real(6, 4), view_outputs={0: 0}
    )
    assert plan.instruction_count == 0
    assert np.shares_memory(y.numpy_view(), x.numpy_view())


def test_a_reshape_that_strides_cannot_express_is_a_copy():
    (y,), (x,), _ = outputs_of(lambda x: p.reshape(p.transpose(x, (1, 0)), (24,)), real(6, 4), view_outputs={0: 0})
    assert not np.shares_memory(y.numpy_view(), x.numpy_view())


def test_outputs_that_are_no_views_are_fresh():
    (a, b, c), (x,), _ = outputs_of(lambda x: (x, p.neg(x), p.reshape(p.neg(x), (24,))), real(6, 4))
    assert not np.shares_memory(a.numpy_view(), x.numpy_view())
    assert not np.shares_memory(b.numpy_view(), c.numpy_view())


def test_results_follow_the_inputs_layout():
    (y,), (x,), _ = (
        outputs_of(lambda x, w: p.mul(x, p.reshape(w, (1, 5, 1, 1))), channels_last(2, 5, 3, 4), real(5))[0],
        [to_tensor(channels_last(2, 5, 3, 4))],
        None,
    )
    assert y.layout == x.layout


def test_an_output_has_the_layout_that_is_asked_for():
    x = to_tensor(real(6, 4).T)
    (y,), _, plan = outputs_of(lambda x: p.exp(x), real(4, 6), output_layouts={0: x.layout})
    assert y.layout == x.layout
    assert plan.instruction_count == 1


def check_inplace(function, arrays, pairs):
    program = build(function, *arrays)
    wanted = interpreter.run(program, arrays, TABLE)
    got, plan, tensors = run_compiled(program, list(arrays), inplace=pairs)
    for j, (g, w) in enumerate(zip(got, wanted, strict=True)):
        assert_same(g, w)
        if j in pairs:
            assert_same(tensors[pairs[j]].numpy_view(), w)
            assert np.shares_memory(g, tensors[pairs[j]].numpy_view())
    return plan.instruction_count


def test_elementwise_results_are_written_in_place_at_once():
    x, y = real(30, 30), real(30, 31)[:, :30]
    assert check_inplace(lambda x, y: p.add(x, y), [x, y], {0: 0}) == 1
    assert check_inplace(lambda x: softmax(x, 1), [x], {0: 0}) == 1
    assert check_inplace(lambda x, y: (p.add(x, y), p.sub(x, y)), [x, y], {0: 0, 1: 1}) == 1


def test_what_reads_an_input_elsewhere_is_computed_before_it_is_overwritten():
    x, y = real(30, 30), real(30, 31)[:, :30]
    check_inplace(lambda x: p.add(x, p.transpose(x, (1, 0))), [x], {0: 0})
    check_inplace(lambda x: p.insert_slice(x, p.slice_(x, (0, 0), (29, 30), (1, 1)), (1, 0), (1, 1)), [x], {0: 0})
    check_inplace(lambda x: (p.mul(x, 2.0), x), [x], {0: 0})
    check_inplace(lambda x: (p.mul(x, 2.0), p.reduce_sum(x, (0,))), [x], {0: 0})
    check_inplace(lambda x, y: (y, x), [x, y], {0: 0, 1: 1})
    check_inplace(lambda x: p.matmul(x, p.mul(x, 2.0)), [x], {0: 0})


def test_an_input_written_in_place_may_be_passed_twice():
    program = build(lambda x, y: p.add(x, p.transpose(y, (1, 0))), real(8, 8), real(8, 8))
    x = to_tensor(real(8, 8))
    plan = compile_program(program, [x.layout, x.layout], inplace={0: 0})
    plan.run([x, x])
    assert_same(x.numpy_view(), real(8, 8) + real(8, 8).T)


# ------------------------------------------------------------------ the interpreter, errors


def test_the_interpreters_plan_gives_the_same():
    flags.set_flags({"interpret": True})
    try:
        plan = check(layer_norm, real(4, 33), real(33), real(33))
        assert plan.instruction_count > 5
        check(lambda x: (p.reshape(p.transpose(x, (1, 0)), (24,)), p.iota((3,), 0), x), real(6, 4))
    finally:
        flags.set_flags({"interpret": False})


def test_a_layout_that_is_not_the_programs_input_is_refused():
    program = build(lambda x: p.neg(x), real(3))
    with pytest.raises(IRError, match="input 0"):
        compile_program(program, [to_tensor(real(4)).layout])


def test_stages_are_printed_when_asked_for(capsys):
    flags.set_flags({"dump": "program,passes,loops,plans"})
    try:
        compile_program(build(lambda x: p.mul(p.exp(x), 1), real(3)), [to_tensor(real(3)).layout])
    finally:
        flags.set_flags({"dump": ""})
    printed = capsys.readouterr().err
    for part in ("# program", "# after simplify_algebra", "kernel outer=0", "# plan", "return result0: float32[3]"):
        assert part in printed


# ------------------------------------------------------------------ natives and their epilogues


def relu(x):
    return p.maximum(x, 0)


def silu(x):
    return p.mul(x, p.sigmoid(x))


@pytest.mark.parametrize(
    ("activation", "instructions"),
    [
        (relu, 1), (p.neg, 1), (lambda x: p.mul(x, x), 1), (lambda x: p.add(p.mul(x, 0.5), 2), 1),
        (silu, 2), (p.gelu, 2), (p.tanh, 2), (p.sigmoid, 2),
    ],
)  # fmt: skip
def test_a_native_finishes_a_linear_layer_and_kernels_compute_functions(activation, instructions):
    plan = check(lambda x, w, b: activation(p.add(p.matmul(x, w), b)), real(5, 6), real(6, 7), real(7))
    assert plan.instruction_count == instructions


def test_results_do_not_depend_on_what_a_kernel_computes_besides():
    """Alone and beside others: products that feed sums, sums along rows after much or little work."""

    def body(x, y):
        product = p.mul(x, y)
        total = p.add(product, y)
        sums = p.reduce_sum(p.mul(p.exp(total), x), (1,))
        return product, total, sums

    arrays = [real(37, 300) / 8, real(37, 300) / 8]
    together = run_compiled(build(body, *arrays), list(arrays))[0]
    for k, found in enumerate(together):
        (alone,) = run_compiled(build(lambda x, y, k=k: body(x, y)[k], *arrays), list(arrays))[0]
        np.testing.assert_array_equal(alone, found)
    (sums,) = run_compiled(build(lambda z, x: p.reduce_sum(p.mul(z, x), (1,)), *arrays), [np.exp(together[1]), arrays[0]])[0]
    (plain,) = run_compiled(build(lambda v: p.reduce_sum(v, (1,)), arrays[0]), [np.exp(together[1]) * arrays[0]])[0]
    np.testing.assert_array_equal(sums, plain)


def test_a_residual_is_added_by_the_native():
    plan = check(lambda x, w, b, r: p.add(relu(p.add(p.matmul(x, w), b)), r), real(5, 6), real(6, 7), real(7), real(5, 7))
    assert plan.instruction_count == 1


def test_a_product_that_is_used_again_is_finished_by_a_kernel():
    def body(x, w):
        y = p.matmul(x, w)
        return relu(y), p.reduce_sum(y, (1,))

    assert check(body, real(5, 6), real(6, 7)).instruction_count > 1
    assert check(lambda x, w: (p.matmul(x, w), relu(p.matmul(x, w))), real(5, 6), real(6, 7)).instruction_count > 1


def test_epilogues_that_natives_do_not_know_stay_kernels():
    check(lambda x, w: p.exp(p.sub(p.matmul(x, w), p.mul(p.matmul(x, w), 0.5))), real(5, 6), real(6, 7))
    check(lambda x, w: p.tanh(p.matmul(x, w)), real(5, 6, dtype="float64"), real(6, 7, dtype="float64"))


def test_matmul_reads_transposed_operands_as_they_are():
    plan = check(lambda x, w: p.matmul(x, p.transpose(w, (0, 2, 1))), real(3, 5, 6), real(3, 7, 6))
    assert plan.instruction_count == 1


def conv(x, w, **changes):
    rank = x.ndim - 2
    attributes = {
        "strides": (1,) * rank,
        "low": (1,) * rank,
        "high": (1,) * rank,
        "dilations": (1,) * rank,
        "groups": 1,
    } | changes
    return p.conv(x, w, *attributes.values())


@pytest.mark.parametrize("make", [real, channels_last])
def test_convolution_with_bias_and_activation_runs_channels_last(make):
    (y,), _, plan = outputs_of(
        lambda x, w, b: relu(p.add(conv(x, w), p.reshape(b, (1, 4, 1, 1)))), make(2, 3, 6, 5), real(4, 3, 3, 3), real(4)
    )
    assert plan.instruction_count == 1
    assert y.numpy_view().transpose(0, 2, 3, 1).flags.c_contiguous


def test_elementwise_after_convolution_stays_channels_last():
    (y,), _, _ = outputs_of(lambda x, w: p.add(p.exp(p.neg(conv(x, w))), 1), real(2, 3, 6, 5), real(4, 3, 3, 3))
    assert y.numpy_view().transpose(0, 2, 3, 1).flags.c_contiguous


def test_gather_and_scatter():
    index = np.array([[0, -1], [3, 3]])
    check(lambda x, i: p.gather(x, i, 1), real(4, 5), index)
    check(lambda x, i: p.scatter(p.full((4, 5), 0, "float32"), i, x, 0, "add"), real(2, 2, 5), index)


def test_random_bits_are_the_interpreters():
    key = np.array(0x123456789ABCDEF, np.int64)
    plan = check(lambda k: (p.random_bits(k, (5, 33)), p.random_bits(k, (7,), 1, 2)), key)
    assert plan.instruction_count == 2


WINDOW = {"sizes": (3, 3), "kernel": (3, 2), "strides": (2, 2), "padding_low": (1, 0), "padding_high": (1, 0)}


@pytest.mark.parametrize("make", [real, channels_last])
def test_pooling_and_its_gradients(make):
    x = make(2, 3, 6, 7)
    check(lambda x: p.max_pool(x, **WINDOW, dilations=(1, 1)), x)
    check(lambda x: p.max_unpool(*p.max_pool(x, **WINDOW, dilations=(1, 1)), x.shape), x)
    check(lambda x: (p.avg_pool(x, **WINDOW), p.avg_pool(x, **WINDOW, count_include_pad=0)), x)
    check(lambda x: p.append("avg_pool_backward", p.avg_pool(x, **WINDOW), input_shape=x.shape, **WINDOW), x)
    check(lambda x: (p.avg_pool(x, sizes=(4, 3)), *p.max_pool(x, sizes=(2, 5))), x)
    check(lambda x: p.max_pool(x, **WINDOW, dilations=(1, 1))[0], x)


def test_positions_of_maxima_that_nobody_reads_are_not_computed():
    x = real(2, 3, 6, 7)
    one = run_compiled(build(lambda x: p.max_pool(x, **WINDOW, dilations=(1, 1))[0], x), [x])[1]
    both = run_compiled(build(lambda x: p.max_pool(x, **WINDOW, dilations=(1, 1)), x), [x])[1]
    assert [len(slots) for _, slots in one.instructions] == [2]
    assert [len(slots) for _, slots in both.instructions] == [3]


def test_sorting_and_scans():
    x = real(5, 9, 4)
    check(lambda x: (*p.sort(x, 1), *p.sort(x, 0, True), *p.topk(x, 3, 1)), x)
    check(lambda x: (p.scan(x, "sum", 1), p.scan(x, "prod", 0, True), *p.scan(x, "max", 2)), x)


def test_known_numbers_are_part_of_the_plan():
    plan = check(lambda x: p.add(x, p.array([1.0, 2.0, 3.0], "float32")), real(2, 3))
    assert plan.instruction_count == 1


def test_a_condition_is_required_at_run_time():
    def body(x):
        return p.require(x, p.gt(x, -100), "x must not be that small")

    check(body, real(3))
    with pytest.raises(ValueError, match="that small"):
        check(body, real(3) - 1000)


def test_large_operands_that_cross_the_loops_are_copied_first():
    x, y = real(160, 170), real(170, 160)
    assert check(lambda x, y: p.add(p.transpose(x, (1, 0)), y), x, y).instruction_count == 2
    assert check(lambda x: p.reshape(p.transpose(x, (1, 0)), (160 * 170,)), x).instruction_count == 1
    check(lambda x, y: p.reduce_sum(p.mul(p.transpose(x, (1, 0)), y), (1,)), x, y)
    check_inplace(lambda x, y: p.add(x, p.transpose(y, (1, 0))), [x, y], {0: 0})


def test_short_rows_are_walked_many_at_once():
    assert check(lambda x, w: p.mul(p.exp(x), w), real(200, 3), real(3)).instruction_count == 1
    check(lambda x: (p.reduce_sum(x, (1,)), p.reduce_argmax(x, (1,)), softmax(x, 1)), real(200, 3))
    check(lambda x: (p.reduce_sum(x, (1, 2)), p.reduce_argmax(x, (1, 2))), real(100, 2, 5).transpose(0, 2, 1))
    check(lambda x: (p.add(x, p.cast(p.iota(x.shape, 1), "float32")), p.reduce_max(x, (0,))), real(200, 3))


@pytest.mark.parametrize("dtype", ["int32", "int64"])
def test_checked_indices_count_from_the_start(dtype):
    index = np.arange(-6, 6, dtype=dtype).reshape(3, 4)
    check(lambda i: p.checked_index(i, 6), index)
    check(lambda i: p.checked_index(i, 7), index.T[::-1])
    for size in (5, 0):
        with pytest.raises(IndexError, match="index"):
            run_compiled(build(lambda i, n=size: p.checked_index(i, n), index), [index])
