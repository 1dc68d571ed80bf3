"""Optimizers whose ``minimize`` lets a Program compute in mixed precision, scales its loss and skips steps by gradients that are not finite."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..base import names
from ..base.errors import ArgumentError, ArgumentTypeError, AutogradError, message
from ..nn.initializer import Constant
from ..optimizer import Optimizer
from ..optimizer.recorded import append_update
from ..static.backward import append_backward
from ..tensor import OPS
from ..tensor.functions import dtype_name, no_grad
from ..tensor.program import Program, declare, default_startup_program, program_guard
from ..tensor.program_block import Operator
from ..tensor.recording import Recorder
from ..tensor.runs import unscale
from ..tensor.scope import Scope
from ..tensor.variable import Variable
from ..tensor.variable_methods import write
from .grad_scaler import ScaleRule
from .program_casts import cast_parameters_to_fp16, checked_lists, lower, lower_first_values
from .program_lists import AutoMixedPrecisionLists


class OptimizerWithMixedPrecision:
    """An optimizer of Programs in mixed precision; made by ``static.amp.decorate``. What it does not define is the optimizer's own."""

    def __init__(
        self,
        optimizer: Optimizer,
        amp_lists: AutoMixedPrecisionLists,
        level: str,
        dtype: str,
        init_loss_scaling: float,
        use_dynamic_loss_scaling: bool,
        incr_every_n_steps: int,
        decr_every_n_nan_or_inf: int,
        incr_ratio: float,
        decr_ratio: float,
        use_amp_guard: bool = False,
        use_master_grad: bool = False,
        use_promote: bool = False,
    ) -> None:
        self._optimizer, self._amp_lists, self._level, self._dtype = optimizer, amp_lists, level, dtype
        self._first_scale, self._is_dynamic = float(init_loss_scaling), use_dynamic_loss_scaling
        self._rule = ScaleRule(float(incr_ratio), float(decr_ratio), int(incr_every_n_steps), int(decr_every_n_nan_or_inf))
        self._only_guarded, self._master_grad = use_amp_guard, use_master_grad
        self._program: Program | None = None
        self._lowered: list[Any] = []
        self._loss_scaling: Variable | None = None
        self._scaled_loss: Variable | None = None
        self._counts: tuple[Variable, Variable] | None = None

    def __getattr__(self, name: str) -> Any:
        return getattr(self.__dict__["_optimizer"], name)

    def get_loss_scaling(self) -> Variable:
        """The Variable of the scale, one float32.

        Raises:
            AutogradError: before ``minimize``.
        """
        if self._loss_scaling is None:
            raise AutogradError(
                message("get_loss_scaling() before minimize()", "the scale is made there", "call minimize(loss) first")
            )
        return self._loss_scaling

    def get_scaled_loss(self) -> Variable | None:
        """The Variable of the loss times the scale; None before ``minimize``."""
        return self._scaled_loss

    def minimize(
        self, loss: Variable, startup_program: Any = None, parameter_list: Any = None, no_grad_set: Any = None
    ) -> tuple[list[Operator], list[tuple[Any, Any]]]:
        """Lower the Program, and append the gradients of the scaled loss and the update.

        Args:
            loss: a Variable of one element.
            startup_program: where 16-bit parameters, the scale and states get their first values; the default one by default.
            parameter_list: the parameters to update; all by default.
            no_grad_set: Variables or names that no gradient flows to.

        Returns:
            The statements of the update, and the (parameter, gradient) pairs.
        """
        pairs = self.backward(loss, startup_program, parameter_list, no_grad_set)
        return self.apply_optimize(loss, startup_program, pairs), pairs

    def backward(
        self,
        loss: Variable,
        startup_program: Any = None,
        parameter_list: Any = None,
        no_grad_set: Any = None,
        callbacks: Any = None,
    ) -> list[tuple[Any, Any]]:
        """Lower the Program, and append the gradients of the scaled loss; the (parameter, gradient) pairs, of scaled gradients."""
        if not isinstance(loss, Variable):
            raise ArgumentTypeError(
                message(
                    f"minimize(): loss is a {type(loss).__name__}",
                    "static.amp is for Programs",
                    "in eager mode use amp.auto_cast and amp.GradScaler",
                )
            )
        if self._program is not None:
            raise AutogradError(
                message("minimize() was called before", "the Program is lowered already", "decorate another optimizer")
            )
        program = self._program = loss.recorder.root.program
        startup = startup_program or default_startup_program()
        self._lowered = lower("minimize", program, self._amp_lists, self._level, self._dtype, self._only_guarded)
        with program_guard(program, startup):
            self._loss_scaling = declare(
                Variable("float32", [1], names.generate("loss_scaling"), persistable=True), Constant(self._first_scale)
            )
            if self._is_dynamic:
                good, bad = (
                    declare(Variable("int32", [1], names.generate(name), persistable=True), Constant(0))
                    for name in ("num_good_steps", "num_bad_steps")
                )
                self._counts = good, bad
            recorder = program.recorder
            role, recorder.role = recorder.role, "backward"
            try:
                with recorder.active():
                    wide = OPS["cast"](loss, "float32") if loss.dtype != "float32" else loss
                    self._scaled_loss = OPS["multiply"](wide, OPS["reshape"](self._loss_scaling, list(loss.shape)))
            finally:
                recorder.role = role
            return append_backward(self._scaled_loss, parameter_list or self._optimizer._parameter_list or None, no_grad_set)

    def apply_optimize(self, loss: Variable, startup_program: Any, params_grads: Sequence[tuple[Any, Any]]) -> list[Operator]:
        """Append the update by scaled gradients; its statements."""
        if self._program is None:
            raise AutogradError(message("apply_optimize() before backward()", "there are no scaled gradients yet"))
        startup = startup_program or default_startup_program()
        with program_guard(self._program, startup):
            is_finite = self._append_scaling(self._program.recorder, [g for _, g in params_grads])
            if self._master_grad:
                with self._program.recorder.active():
                    params_grads = [
                        (p, OPS["cast"](g, "float32") if getattr(g, "dtype", None) == self._dtype else g) for p, g in params_grads
                    ]
            made = append_update(self._optimizer, params_grads, startup, is_finite)
            lower_first_values(startup, self._lowered)
        return made

    def apply_gradients(self, params_grads: Sequence[tuple[Any, Any]]) -> list[Operator]:
        """Append the update by the scaled gradients that ``backward`` gave; its statements."""
        return self.apply_optimize(None, None, params_grads)  # type: ignore[arg-type]

    def _append_scaling(self, recorder: Recorder, gradients: Sequence[Any]) -> Any:
        """Divide the gradients by the scale and move it on; whether they are finite."""
        scale = self.get_loss_scaling()
        role, recorder.role = recorder.role, "optimize"
        try:
            with recorder.active(), no_grad():
                is_finite = unscale(gradients, OPS["reshape"](OPS["reciprocal"](scale), []))
                if self._counts is not None:
                    targets = (scale, *self._counts)
                    moved = self._rule.next(*targets, is_finite)
                    for target, value in zip(targets, moved, strict=True):
                        write(target, value, "minimize")
        finally:
            recorder.role = role
        return is_finite

    def amp_init(
        self,
        place: Any,
        scope: Scope | None = None,
        test_program: Program | None = None,
        use_fp16_test: bool = False,
        rewrite_master_weight: bool = False,
    ) -> None:
        """Give 16-bit parameters that were loaded in float32 16-bit values. What the startup Program made needs none of it.

        Args:
            place: accepted for compatibility.
            scope: where the parameters are; the global scope by default.
            test_program: a Program for evaluation that shares the parameters.
            use_fp16_test: let ``test_program`` compute in 16 bits.
            rewrite_master_weight: give the float32 copies the parameters' values.

        Raises:
            AutogradError: before ``minimize``.
        """
        if self._program is None:
            raise AutogradError(
                message("amp_init() before minimize()", "the Program is lowered there", "call minimize(loss) first")
            )
        masters = {
            v.name: state.master
            for v in self._lowered
            if (state := self._optimizer._states.get(id(v))) is not None and state.master is not None
        }
        lowered = {v.name for v in self._lowered}
        cast_parameters_to_fp16(place, self._program, scope, lowered, self._dtype, rewrite_master_weight, masters)
        if test_program is not None and use_fp16_test:
            lower("amp_init", test_program, self._amp_lists, self._level, self._dtype, self._only_guarded)


def decorate_for_programs(
    what: str,
    optimizer: Any,
    amp_lists: Any = None,
    level: str = "O1",
    dtype: Any = "float16",
    master_weight: bool | None = None,
    master_grad: bool = False,
    init_loss_scaling: float = 65536,
    incr_every_n_steps: int = 2000,
    decr_every_n_nan_or_inf: int = 1,
    incr_ratio: float = 2.0,
    decr_ratio: float = 0.5,
    use_dynamic_loss_scaling: bool | None = None,
    use_amp_guard: bool | None = False,
    use_promote: bool = False,
) -> OptimizerWithMixedPrecision:
    """The optimizer for Programs in mixed precision."""
    if not isinstance(optimizer, Optimizer):
        raise ArgumentTypeError(message(f"{what}(): optimizer is a {type(optimizer).__name__}", "it must be an Optimizer"))
    if isinstance(init_loss_scaling, bool) or not isinstance(init_loss_scaling, (int, float)) or not init_loss_scaling > 0:
        raise ArgumentError(message(f"{what}(): init_loss_scaling={init_loss_scaling!r}", "it must be a positive number"))
    name = dtype_name(what, dtype)
    lists = checked_lists(what, amp_lists, name)
    lists.precision(level, name, what)  # an unknown level is refused here
    optimizer._multi_precision = master_weight is not False
    return OptimizerWithMixedPrecision(
        optimizer,
        lists,
        level,
        name,
        init_loss_scaling,
        name == "float16" if use_dynamic_loss_scaling is None else bool(use_dynamic_loss_scaling),
        incr_every_n_steps,
        decr_every_n_nan_or_inf,
        incr_ratio,
        decr_ratio,
        bool(use_amp_guard),
        bool(master_grad),
        use_promote,
    )


#: Arguments of ``decorate`` as it was before it had levels.
_EARLIER = (
    "init_loss_scaling", "incr_every_n_steps", "decr_every_n_nan_or_inf", "incr_ratio", "decr_ratio", "use_dynamic_loss_scaling",
    "use_pure_fp16", "use_fp16_guard", "use_bf16", "use_promote",
)  # fmt: skip


def decorate(optimizer: Any, amp_lists: Any = None, *args: Any, **kwargs: Any) -> OptimizerWithMixedPrecision:
    """The optimizer for Programs in mixed precision: its ``minimize`` lets the Program compute in 16 bits by lists, scales the loss, and skips steps by
    gradients that are not finite.

    ``decorate(optimizer, amp_lists=None, level="O1", dtype="float16", master_weight=None, master_grad=False, init_loss_scaling=65536,
    incr_every_n_steps=2000, decr_every_n_nan_or_inf=1, incr_ratio=2.0, decr_ratio=0.5, use_dynamic_loss_scaling=None, use_amp_guard=False,
    use_promote=False)``, or in the form of earlier versions ``decorate(optimizer, amp_lists=None, init_loss_scaling=32768, incr_every_n_steps=1000,
    decr_every_n_nan_or_inf=2, incr_ratio=2.0, decr_ratio=0.8, use_dynamic_loss_scaling=True, use_pure_fp16=False, use_fp16_guard=None,
    use_bf16=False, use_promote=False)``.

    Args:
        optimizer: an Optimizer.
        amp_lists: a CustomOpLists.
        *args: in the order of either form.
        **kwargs: ``level``: O0, OD, O1 or O2. ``dtype``: float16 or bfloat16. ``master_weight``: float32 copies of 16-bit parameters; True by
            default. ``master_grad``: gradients in float32 for clipping and update. ``use_dynamic_loss_scaling``: True for float16 by default.
            ``use_amp_guard``: only what was built inside ``fp16_guard()``. ``use_pure_fp16``: O2, without float32 copies unless the optimizer was made
            with ``multi_precision=True``. ``use_bf16``: bfloat16.

    Raises:
        ArgumentError: an unknown level or dtype, a scale or ratio out of its range.
        ArgumentTypeError: no Optimizer; arguments of both forms.

    Example:
        >>> import numpy as np
        >>> import sampan as paddle
        >>> paddle.enable_static()
        >>> main, startup = paddle.static.Program(), paddle.static.Program()
        >>> with paddle.static.program_guard(main, startup):
        ...     x = paddle.static.data("x", [None, 2])
        ...     loss = paddle.static.nn.fc(x, 3).mean()
        ...     optimizer = paddle.static.amp.decorate(paddle.optimizer.SGD(0.1), level="O2", init_loss_scaling=128.0)
        ...     _ = optimizer.minimize(loss)
        >>> exe = paddle.static.Executor()
        >>> _ = exe.run(startup)
        >>> optimizer.amp_init(paddle.CPUPlace())
        >>> exe.run(main, feed={"x": np.ones([4, 2], "float32")}, fetch_list=[optimizer.get_loss_scaling()])
        [array([128.], dtype=float32)]
        >>> paddle.disable_static()
    """
    is_earlier = {"use_pure_fp16", "use_fp16_guard", "use_bf16"} & kwargs.keys() or (args and isinstance(args[0], (int, float)))
    if not is_earlier:
        return decorate_for_programs("decorate", optimizer, amp_lists, *args, **kwargs)
    given: dict[str, Any] = dict(zip(_EARLIER, args, strict=False))
    unknown = sorted((kwargs.keys() - set(_EARLIER)) | (kwargs.keys() & given.keys()))
    if unknown or len(args) > len(_EARLIER):
        raise ArgumentTypeError(
            message(
                f"decorate(): {unknown or args[len(_EARLIER) :]}",
                "use_pure_fp16, use_fp16_guard and use_bf16 belong to the earlier form, which has no levels",
                "use level, dtype and use_amp_guard in their place",
            )
        )
    given |= kwargs
    is_pure, is_bf16 = bool(given.pop("use_pure_fp16", False)), bool(given.pop("use_bf16", False))
    is_guarded = given.pop("use_fp16_guard", None)
    defaults: dict[str, Any] = {
        "init_loss_scaling": 32768,
        "incr_every_n_steps": 1000,
        "decr_every_n_nan_or_inf": 2,
        "decr_ratio": 0.8,
    }
    if is_bf16:
        given |= {"init_loss_scaling": 1.0, "use_dynamic_loss_scaling": False}
    return decorate_for_programs(
        "decorate",
        optimizer,
        amp_lists,
        "O2" if is_pure else "O1",
        "bfloat16" if is_bf16 else "float16",
        getattr(optimizer, "_multi_precision", False),
        use_amp_guard=is_pure if is_guarded is None else is_guarded,
        **{"use_dynamic_loss_scaling": True} | defaults | given,
    )
