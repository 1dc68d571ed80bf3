"""Config: which model a predictor runs, and how."""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import partial
from typing import Any, NoReturn

from ..base.errors import ArgumentError, ArgumentTypeError, UnsupportedError, message
from .kinds import PrecisionType

#: Switches that change nothing here: what they turn on is always on, or belongs to another engine.
_WITHOUT_EFFECT = """switch_ir_optim switch_use_feed_fetch_ops switch_specify_input_names enable_memory_optim enable_new_executor enable_new_ir enable_mkldnn
disable_mkldnn enable_onednn disable_onednn set_mkldnn_cache_capacity set_onednn_cache_capacity set_mkldnn_op set_onednn_op disable_gpu disable_glog_info
disable_onnxruntime disable_mkldnn_fc_passes disable_onednn_fc_passes enable_cinn switch_ir_debug set_optimization_level set_optim_cache_dir
enable_save_optim_model enable_profile enable_ort_optimization delete_pass set_bfloat16_op enable_custom_passes use_optimized_model
exp_disable_mixed_precision_ops exp_enable_mixed_precision_ops exp_sparse_conv_using_buffer exp_disable_tensorrt_ops exp_disable_tensorrt_subgraph
exp_specify_tensorrt_subgraph_precision exp_disable_tensorrt_dynamic_shape_ops exp_enable_use_cutlass mark_trt_engine_outputs""".split()
#: Engines and devices that this build does not have, by the methods that would use them.
_MISSING = {
    "GPU": "enable_use_gpu", "XPU": "enable_xpu set_xpu_device_id set_xpu_config", "IPU": "enable_ipu set_ipu_config set_ipu_custom_info load_ipu_config",
    "custom devices": "enable_custom_device", "ONNX Runtime": "enable_onnxruntime", "OpenVINO": "enable_openvino_engine",
    "TensorRT": """enable_tensorrt_engine enable_tensorrt_memory_optim set_trt_dynamic_shape_info enable_tensorrt_varseqlen collect_shape_range_info
    enable_tuned_tensorrt_dynamic_shape enable_tensorrt_dla enable_tensorrt_inspector enable_tensorrt_explicit_quantization
    set_tensorrt_optimization_level""",
    "8-bit inference": "enable_onednn_int8 enable_mkldnn_int8", "16-bit inputs of a float32 model": "enable_low_precision_io",
    "bfloat16 inference of a float32 model": "enable_mkldnn_bfloat16 enable_onednn_bfloat16",
    "other configurations": "to_native_config pass_builder",
}  # fmt: skip
#: What can be asked of a Config about those, and the answers.
_ANSWERS: list[tuple[Any, str]] = [
    (False, """use_xpu onnxruntime_enabled openvino_engine_enabled tensorrt_dynamic_shape_enabled tensorrt_varseqlen_enabled shape_range_info_collected
    tuned_tensorrt_dynamic_shape trt_allow_build_at_runtime tensorrt_dla_enabled tensorrt_inspector_enabled tensorrt_explicit_quantization_enabled
    tensorrt_engine_enabled mkldnn_int8_enabled onednn_int8_enabled glog_info_disabled"""),
    (True, "new_ir_enabled mkldnn_enabled onednn_enabled use_feed_fetch_ops_enabled specify_input_name"),
    (0, "gpu_device_id xpu_device_id memory_pool_init_size_mb tensorrt_optimization_level"), (0.0, "fraction_of_gpu_memory_for_pool"),
    ("", "shape_range_info_path"), (None, "xpu_config tensorrt_precision_mode"),
]  # fmt: skip


class Config:
    """Which model a predictor runs, and how.

    Args:
        prog_file: the model's file (``.pdmodel`` or ``.json``), or the folder that holds it as ``model`` or ``inference``.
        params_file: the file of its parameters (``.pdiparams``).

    Example:
        >>> import sampan as paddle
        >>> config = paddle.inference.Config("net.pdmodel", "net.pdiparams")
        >>> config.set_cpu_math_library_num_threads(1)
        >>> config.prog_file()
        'net.pdmodel'
    """

    Precision = PrecisionType
    Float32, Int8, Half, Bfloat16 = PrecisionType.Float32, PrecisionType.Int8, PrecisionType.Half, PrecisionType.Bfloat16

    def __init__(self, prog_file: str | None = None, params_file: str | None = None) -> None:
        self._program: str | bytes | None = None
        self._parameters: str | bytes | None = None
        self._threads = 0
        if prog_file is not None:
            self.set_model(prog_file, params_file)

    def set_model(self, prog_file: str, params_file: str | None = None) -> None:
        """Name the model's files, or the folder that holds them."""
        for what, path in (("prog_file", prog_file), ("params_file", params_file)):
            if path is not None and not isinstance(path, (str, os.PathLike)):
                raise ArgumentTypeError(message(f"Config(): {what} is a {type(path).__name__}", "it must be a path"))
        if params_file is None and os.path.isdir(prog_file):
            found = [
                os.path.join(prog_file, f"{stem}{suffix}")
                for stem in ("inference", "model", "__model__")
                for suffix in (".json", ".pdmodel")
            ]
            chosen = next((path for path in found if os.path.exists(path)), None)
            if chosen is None:
                raise ArgumentError(
                    message(
                        f"Config(): the folder {prog_file!r} holds no model",
                        "it was looked for as inference and model",
                        "pass the files",
                    )
                )
            prog_file, params_file = chosen, f"{os.path.splitext(chosen)[0]}.pdiparams"
        self._program, self._parameters = os.fspath(prog_file), None if params_file is None else os.fspath(params_file)

    def set_prog_file(self, path: str) -> None:
        """Name the model's file."""
        self._program = os.fspath(path)

    def set_params_file(self, path: str) -> None:
        """Name the file of its parameters."""
        self._parameters = os.fspath(path)

    def set_model_buffer(self, prog_buffer: bytes, prog_buffer_size: int, params_buffer: bytes, params_buffer_size: int) -> None:
        """Give the model and its parameters as bytes."""
        self._program, self._parameters = bytes(prog_buffer[:prog_buffer_size]), bytes(params_buffer[:params_buffer_size])

    def model_from_memory(self) -> bool:
        """Whether the model was given as bytes."""
        return isinstance(self._program, bytes)

    def prog_file(self) -> str:
        """The model's file."""
        return self._program if isinstance(self._program, str) else ""

    def params_file(self) -> str:
        """The file of its parameters."""
        return self._parameters if isinstance(self._parameters, str) else ""

    def model_dir(self) -> str:
        """The folder of the model's file."""
        return os.path.dirname(self.prog_file())

    def set_cpu_math_library_num_threads(self, num: int) -> None:
        """Run on this many threads; the number is the whole process's."""
        if isinstance(num, bool) or not isinstance(num, int) or num < 1:
            raise ArgumentError(message(f"set_cpu_math_library_num_threads(): num={num!r}", "it must be 1 or more"))
        self._threads = num

    def cpu_math_library_num_threads(self) -> int:
        """The number of threads that was asked for; 0: the process's own."""
        return self._threads

    def use_gpu(self) -> bool:
        """Whether it runs on a GPU: no."""
        return False

    def ir_optim(self) -> bool:
        """Whether Programs are optimised: always."""
        return True

    def summary(self) -> str:
        """The settings as text."""
        shown = "bytes" if self.model_from_memory() else self.prog_file()
        return f"model: {shown}\nparameters: {self.params_file() or '-'}\nthreads: {self._threads or 'of the process'}\n"


def _install(name: str, told: str, body: Callable[[], Any]) -> None:
    def method(self: Config, *args: Any, **kwargs: Any) -> Any:
        return body()

    method.__name__, method.__qualname__, method.__doc__ = name, f"Config.{name}", told
    setattr(Config, name, method)


def _refuse(name: str, what: str) -> NoReturn:
    raise UnsupportedError(message(f"Config.{name}(): this build has no {what}"))


for _name in _WITHOUT_EFFECT:
    _install(_name, "Accepted for compatibility: nothing changes.", lambda: None)
for _what, _names in _MISSING.items():
    for _name in _names.split():
        _install(_name, f"Raises UnsupportedError: this build has no {_what}.", partial(_refuse, _name, _what))
for _answer, _names in _ANSWERS:
    for _name in _names.split():
        _install(_name, f"{_answer!r}.", partial(lambda answer: answer, _answer))
