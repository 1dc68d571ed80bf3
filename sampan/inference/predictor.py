"""Predictor: a saved model, ready to run."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NoReturn

import numpy as np

from .. import _rt, jit, static
from ..base import dtypes, nest
from ..base.errors import ArgumentError, ArgumentTypeError, ShapeError, UnsupportedError, message
from ..base.flags import set_flags
from ..base.locks import new_lock
from ..jit.saving import FUNCTIONS_SUFFIX
from ..tensor import Tensor as CoreTensor
from ..tensor import to_tensor
from ..tensor.convert.recorded import tracing
from ..tensor.executor import Prepared, checked_feed
from ..tensor.program import Program, running_at_once
from ..tensor.scope import Scope, scope_guard
from ..tensor.variable import Variable
from ..version import full_version
from .config import Config
from .kinds import DataType


class Tensor:
    """An input or output of a predictor, as ``get_input_handle`` and ``get_output_handle`` give it."""

    def __init__(self, name: str, held: dict[str, Any], dtype: str) -> None:
        self._name, self._held, self._dtype = name, held, dtype
        self._array_dtype = dtypes.numpy_dtype(dtype)
        self._shape: list[int] | None = None

    def name(self) -> str:
        """Its name."""
        return self._name

    def reshape(self, shape: Sequence[int]) -> None:
        """Say which shape the data has that ``copy_from_cpu`` will give."""
        self._shape = [int(n) for n in shape]

    def copy_from_cpu(self, data: Any) -> None:
        """Feed a copy of this array."""
        array = data if type(data) is np.ndarray else np.asarray(data)
        if self._shape is not None and list(array.shape) != self._shape:
            raise ShapeError(message(f"copy_from_cpu(): the data has shape {list(array.shape)}", f"reshape() said {self._shape}"))
        self._held[self._name] = _rt.from_numpy(array, True) if array.dtype == self._array_dtype else to_tensor(array)

    def share_external_data(self, data: Any) -> None:
        """Feed this tensor or array, without a copy where that can be."""
        self._held[self._name] = data if isinstance(data, CoreTensor) else to_tensor(np.asarray(data))

    def share_external_data_by_ptr_name(self, *args: Any) -> None:
        """Raises UnsupportedError: memory is shared by tensors and arrays only, whose sizes are known."""
        raise UnsupportedError(
            message(
                "share_external_data_by_ptr_name()", "an address says nothing of what lies there", "use share_external_data()"
            )
        )

    def lod(self) -> list[list[int]]:
        """No levels of detail: sizes say where sequences end."""
        return []

    def set_lod(self, lod: Sequence[Sequence[int]]) -> None:
        """Takes no levels. Raises UnsupportedError for any."""
        if len(lod):
            raise UnsupportedError(
                message(
                    f"set_lod({lod!r})", "tensors carry no levels of detail that say where sequences end", "pad the sequences"
                )
            )

    def copy_to_cpu(self) -> np.ndarray[Any, Any]:
        """The last run's result, as an array."""
        return self._value().numpy()  # type: ignore[no-any-return]

    def shape(self) -> list[int]:
        """Its shape."""
        return list(self._value().shape)

    def type(self) -> DataType:
        """The type of its elements."""
        return DataType(self._dtype)

    def _value(self) -> Any:
        found = self._held.get(self._name)
        if found is None:
            raise ArgumentError(message(f"{self._name!r} has no value yet", "", "feed the inputs and call run() first"))
        return found


class Predictor:
    """A saved model, ready to run. Its weights are part of the compiled pieces; runs of several threads at once need a ``clone()`` each.

    Args:
        config: which model, and how.

    Example:
        >>> import numpy as np, tempfile, os
        >>> import sampan as paddle
        >>> net = paddle.nn.Linear(4, 2)
        >>> path = os.path.join(tempfile.mkdtemp(), "net")
        >>> paddle.jit.save(net, path, input_spec=[paddle.static.InputSpec([None, 4], "float32", "x")])
        >>> predictor = paddle.inference.create_predictor(paddle.inference.Config(path + ".pdmodel", path + ".pdiparams"))
        >>> predictor.get_input_handle(predictor.get_input_names()[0]).copy_from_cpu(np.ones([3, 4], "float32"))
        >>> _ = predictor.run()
        >>> predictor.get_output_handle(predictor.get_output_names()[0]).copy_to_cpu().shape
        (3, 2)
    """

    def __init__(self, config: Config) -> None:
        if not isinstance(config, Config):
            raise ArgumentTypeError(message(f"create_predictor(): config is a {type(config).__name__}", "it must be a Config"))
        self._config, self._scope = config, Scope()
        with scope_guard(self._scope):
            self._program, self._feeds, self._fetches = _loaded(config)
            self._prepared = Prepared(self._program, self._feeds, self._fetches, is_frozen=True)
        if config.cpu_math_library_num_threads():
            set_flags({"FLAGS_num_threads": config.cpu_math_library_num_threads()})
        self._inputs: dict[str, Any] = {}
        self._outputs: dict[str, Any] = {}
        self._output_names = [v.name for v in self._fetches]
        self._last_layouts: list[Any] = [None] * len(self._feeds)
        self._lock = new_lock()

    def get_input_names(self) -> list[str]:
        """The names of its inputs."""
        return list(self._feeds)

    def get_output_names(self) -> list[str]:
        """The names of its outputs."""
        return list(self._output_names)

    def get_input_handle(self, name: str) -> Tensor:
        """The input of this name."""
        if name not in self._feeds:
            raise ArgumentError(message(f"the model has no input {name!r}", f"it has {', '.join(self._feeds)}"))
        return Tensor(name, self._inputs, str(self._program.var(name).dtype))

    def get_output_handle(self, name: str) -> Tensor:
        """The output of this name."""
        found = next((v for v in self._fetches if v.name == name), None)
        if found is None:
            raise ArgumentError(message(f"the model has no output {name!r}", f"it has {', '.join(self.get_output_names())}"))
        return Tensor(name, self._outputs, str(found.dtype))

    def run(self, inputs: Sequence[Any] | None = None) -> Any:
        """Run the model.

        Args:
            inputs: arrays or tensors in the order of ``get_input_names()``; None: what the handles were given.

        Returns:
            The outputs as tensors when ``inputs`` was given, else True; the handles have them too.

        Raises:
            ArgumentError: an input is missing.
            ShapeError, DTypeError: an input does not fit.
        """
        given: Mapping[str, Any] = self._inputs
        if inputs is not None:
            if not isinstance(inputs, (list, tuple)):
                raise ArgumentTypeError(
                    message(f"run(): inputs is a {type(inputs).__name__}", "it must be a list of arrays or tensors")
                )
            if len(inputs) != len(self._feeds):
                raise ArgumentError(
                    message(f"run(): {len(inputs)} inputs", f"the model takes {len(self._feeds)}: {', '.join(self._feeds)}")
                )
            given = dict(zip(self._feeds, inputs, strict=True))
        feed = self._checked(given)
        was_recording = _rt.set_grad_enabled(False)
        try:
            with self._lock:
                if _rt.tracing():
                    with running_at_once():
                        results = self._prepared.run(feed, self._scope)
                else:
                    results = self._prepared.run(feed, self._scope)
                self._outputs.update(zip(self._output_names, results, strict=True))
        finally:
            _rt.set_grad_enabled(was_recording)
        return results if inputs is not None else True

    def _checked(self, given: Mapping[str, Any]) -> Mapping[str, Any]:
        """The inputs as tensors that fit; what lies as the last inputs did was checked then."""
        layouts = [getattr(given.get(name), "layout", None) for name in self._feeds]
        if None not in layouts and layouts == self._last_layouts:
            return given
        missing = [name for name in self._feeds if name not in given]
        if missing:
            raise ArgumentError(
                message(f"run(): no value for {', '.join(missing)}", "", "use get_input_handle(name).copy_from_cpu(array)")
            )
        feed = checked_feed(self._program, {name: given[name] for name in self._feeds})
        self._last_layouts = [feed[name].layout for name in self._feeds]
        return feed

    def clone(self) -> Predictor:
        """Another predictor of the same model, for another thread."""
        return Predictor(self._config)

    def register_output_hook(self, hookfunc: Callable[..., Any]) -> None:
        """Raises UnsupportedError: the model runs as one Program, whose inner results are not tensors."""
        _refuse_hook("register_output_hook")

    def register_input_hook(self, hookfunc: Callable[..., Any]) -> None:
        """Raises UnsupportedError: the model runs as one Program, whose inner results are not tensors."""
        _refuse_hook("register_input_hook")

    def clear_intermediate_tensor(self) -> None:
        """Forget the last run's outputs."""
        self._outputs.clear()

    def try_shrink_memory(self) -> int:
        """Nothing to give back: temporaries live for a run only. Gives 0."""
        return 0


def _refuse_hook(name: str) -> NoReturn:
    raise UnsupportedError(
        message(
            f"Predictor.{name}()",
            "the model runs as one Program, whose inner results are not tensors",
            "fetch them as outputs of the model",
        )
    )


def _loaded(config: Config) -> list[Any]:
    if config.model_from_memory():
        return static.load_inference_model(None, None, model_filename=config._program, params_filename=config._parameters)
    path = config.prog_file()
    if not path:
        raise ArgumentError(message("create_predictor(): the Config names no model", "", "pass its files to Config()"))
    prefix = path.removesuffix(FUNCTIONS_SUFFIX) if path.endswith(FUNCTIONS_SUFFIX) else os.path.splitext(path)[0]
    if not (os.path.exists(path) and path != f"{prefix}{FUNCTIONS_SUFFIX}") and os.path.exists(f"{prefix}{FUNCTIONS_SUFFIX}"):
        return _of_layer(jit.load(prefix))
    return static.load_inference_model(prefix, None, model_filename=path, params_filename=config.params_file() or None)


def _of_layer(layer: jit.TranslatedLayer) -> list[Any]:
    """The Program of a layer that ``jit.save`` wrote, its inputs' names, and its results."""
    layer.eval()
    program = Program()
    inputs = [program.add(Variable(v.dtype, v.sizes, v.name)) for v in layer.input_variables()]
    with tracing(program.recorder):
        results = [v for v in nest.flatten(layer(*inputs)) if isinstance(v, Variable)]
    return [program, [v.name for v in inputs], results]


class PredictorPool:
    """Predictors of one model, one for each thread.

    Args:
        config: which model, and how.
        size: how many.
    """

    def __init__(self, config: Config, size: int = 1) -> None:
        if isinstance(size, bool) or not isinstance(size, int) or size < 1:
            raise ArgumentError(message(f"PredictorPool(): size={size!r}", "it must be 1 or more"))
        self._predictors = [Predictor(config) for _ in range(size)]

    def retrieve(self, idx: int) -> Predictor:
        """The predictor of this number."""
        if not 0 <= idx < len(self._predictors):
            raise ArgumentError(message(f"retrieve(): idx={idx}", f"the pool holds {len(self._predictors)}"))
        return self._predictors[idx]

    retrive = retrieve


def create_predictor(config: Config) -> Predictor:
    """The predictor of a saved model; see Predictor."""
    return Predictor(config)


def get_version() -> str:
    """The version as text."""
    return f"version: {full_version}"
