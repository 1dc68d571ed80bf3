"""CompiledProgram: a Program with its own choice of passes, and over several places at once."""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from enum import Enum
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

from ..base.errors import ArgumentError, ArgumentTypeError, message
from ..base.places import CPUPlace
from ..tensor.executor import Prepared, checked_feed, checked_fetches, run_program
from ..tensor.graph_runner import PASSES, GraphRunner, compiling
from ..tensor.program import Program
from ..tensor.replicate import replicate
from ..tensor.scope import Scope, global_scope
from ..tensor.variable import UNKNOWN, Variable
from .places import cpu_places


class ReduceStrategy(Enum):
    """How replicas share the work of updates. In one process they share parameters, so that updates run once in either case."""

    AllReduce = 0
    Reduce = 1
    _NoReduce = 2


class GradientScaleStrategy(Enum):
    """What gradients are aggregated to: means over all rows, or sums over the places."""

    CoeffNumDevice = 0
    One = 1


class _Settings:
    """Attributes that are declared with a first value; others are refused."""

    _first: Mapping[str, Any] = {}

    def __init_subclass__(cls) -> None:
        for name, value in cls._first.items():
            setattr(cls, name, value)

    def __init__(self) -> None:
        for name, value in self._first.items():
            object.__setattr__(self, name, copy.copy(value))

    def __setattr__(self, name: str, value: Any) -> None:
        if name not in self._first:
            raise AttributeError(f"{type(self).__name__} has no setting {name!r}; it has {', '.join(sorted(self._first))}")
        wanted = type(self._first[name])
        if wanted is bool and not isinstance(value, bool):
            raise ArgumentTypeError(message(f"{type(self).__name__}.{name} = {value!r}", "it must be True or False"))
        if name == "memory_budget" and (isinstance(value, bool) or not isinstance(value, int) or value < 0):
            raise ArgumentTypeError(
                message(f"{type(self).__name__}.{name} = {value!r}", "it must be a number of bytes, 0 for any")
            )
        if issubclass(wanted, Enum) and not isinstance(value, wanted):
            raise ArgumentTypeError(message(f"{type(self).__name__}.{name} = {value!r}", f"it must be a {wanted.__name__}"))
        object.__setattr__(self, name, value)

    def __repr__(self) -> str:
        changed = {k: getattr(self, k) for k, v in self._first.items() if getattr(self, k) != v}
        return f"{type(self).__name__}({', '.join(f'{k}={v!r}' for k, v in changed.items())})"


class BuildStrategy(_Settings):
    """How a Program is compiled. Each pass of the compiler is a setting of its name; False leaves it out.

    Beside passes: ``reduce_strategy``, ``gradient_scale_strategy``, ``fuse_all_reduce_ops`` (aggregate what is ready in one node),
    ``memory_budget`` (bytes that temporaries may take, shared by the places; where they would take more, the pass ``recompute`` lets cheap values be
    computed again in backward; 0: any number) and ``debug_graphviz_path`` (write the graph of replicas there). PaddlePaddle's other
    settings choose among its own passes and kernels; they are accepted, and what they ask for is decided by the compiler.

    Example:
        >>> import sampan as paddle
        >>> strategy = paddle.static.BuildStrategy()
        >>> strategy.fold_constants = False
        >>> strategy
        BuildStrategy(fold_constants=False)
    """

    ReduceStrategy = ReduceStrategy
    GradientScaleStrategy = GradientScaleStrategy
    _first = {
        **dict.fromkeys(PASSES, True),
        "reduce_strategy": ReduceStrategy.AllReduce,
        "gradient_scale_strategy": GradientScaleStrategy.CoeffNumDevice,
        "fuse_all_reduce_ops": True,
        "memory_budget": 0,
        "debug_graphviz_path": "",
        **dict.fromkeys(
            """build_cinn_pass fuse_elewise_add_act_ops fuse_gemm_epilogue fuse_dot_product_attention fuse_adamw fused_attention fused_feedforward
            sequential_run fuse_resunit fuse_bn_act_ops fuse_bn_add_act_ops enable_auto_fusion fuse_relu_depthwise_conv fuse_broadcast_ops
            fuse_all_optimizer_ops sync_batch_norm memory_optimize async_mode enable_inplace enable_addto enable_backward_optimizer_op_deps
            cache_runtime_context allow_cuda_graph_capture use_hierarchical_allreduce""".split(),
            False,
        ),
        "num_trainers": 1, "trainer_id": 0, "trainers_endpoints": [], "nccl_comm_num": 1, "bkcl_comm_num": 1,
        "hierarchical_allreduce_inter_nranks": 0, "mkldnn_enabled_op_types": set(), "onednn_enabled_op_types": set(),
    }  # fmt: skip

    def skipped(self) -> list[str]:
        """The passes that are turned off."""
        return [name for name in PASSES if not getattr(self, name)]


class ExecutionStrategy(_Settings):
    """How the graph of replicas runs. ``num_threads``: nodes that run at a time; 0: one for each place."""

    _first = {
        "num_threads": 0, "num_iteration_per_drop_scope": 10, "num_iteration_per_run": 1, "use_thread_barrier": False, "allow_op_delay": False,
    }  # fmt: skip


class CompiledProgram:
    """A Program that an Executor runs by a BuildStrategy, and over several places.

    Args:
        program_or_graph: the Program.
        build_strategy: which passes it is compiled with.

    Example:
        >>> import numpy as np
        >>> import sampan as paddle
        >>> paddle.enable_static()
        >>> main = paddle.static.Program()
        >>> with paddle.static.program_guard(main):
        ...     x = paddle.static.data("x", [None, 1])
        ...     loss = (x * x).mean()
        >>> parallel = paddle.static.CompiledProgram(main).with_data_parallel(loss.name, places=paddle.static.cpu_places(2))
        >>> paddle.static.Executor().run(parallel, feed={"x": np.array([[1], [2], [3]], "float32")}, fetch_list=[loss])
        [array(4.6666665, dtype=float32)]
        >>> paddle.disable_static()
    """

    def __init__(self, program_or_graph: Any, build_strategy: BuildStrategy | None = None) -> None:
        if not isinstance(program_or_graph, Program):
            raise ArgumentTypeError(message(f"CompiledProgram(): got a {type(program_or_graph).__name__}", "it takes a Program"))
        self._program = program_or_graph
        self._build = _checked("build_strategy", build_strategy, BuildStrategy)
        self._execution = ExecutionStrategy()
        self._places: list[Any] = []
        self._runners: dict[Any, Any] = {}

    def with_data_parallel(
        self,
        loss_name: str | None = None,
        build_strategy: BuildStrategy | None = None,
        exec_strategy: ExecutionStrategy | None = None,
        share_vars_from: Any = None,
        places: Any = None,
    ) -> CompiledProgram:
        """Replicate the Program over places: each takes its part of the rows that are fed, gradients are aggregated, and one update is made.

        Results equal those of the whole batch at one place where the loss is a mean over rows. Fetched Variables with rows come whole; other
        floating ones are means over all rows. Batch norm sees the rows of its own place.

        Args:
            loss_name: accepted for compatibility; what updates use is aggregated.
            build_strategy: in place of the one given before.
            exec_strategy: how many nodes run at a time.
            share_vars_from: accepted for compatibility; parameters are those of the scope.
            places: CPU places, or how many; by default one for each core.

        Returns:
            This CompiledProgram.
        """
        found = _cpu_places(places)
        if build_strategy is not None:
            self._build = _checked("build_strategy", build_strategy, BuildStrategy)
        self._execution = _checked("exec_strategy", exec_strategy, ExecutionStrategy)
        self._places, self._runners = found, {}
        return self

    def run_with(self, executor: Any, feed: Any, fetch_list: Any, scope: Scope | None, return_numpy: bool) -> list[Any]:
        """One run; ``Executor.run`` calls it."""
        program, held = self._program, scope or global_scope()
        fetches = checked_fetches(program, fetch_list)
        count = len(self._places)
        if count < 2:
            with compiling(self._build.skipped(), self._build.memory_budget or None):
                results = run_program(program, checked_feed(program, feed), fetches, held, runners=self._runners)
        else:
            given = _joined(feed, count) if isinstance(feed, (list, tuple)) else feed
            fed = checked_feed(program, given)

            def make(program: Program, feeds: Sequence[str], fetches: Sequence[Variable]) -> Prepared:
                return _Replicated(program, feeds, fetches, count, self._build, self._execution)

            results = run_program(program, fed, fetches, held, make, self._runners)
        return [t.numpy() for t in results] if return_numpy else results


def _checked(name: str, value: Any, kind: Any) -> Any:
    if value is not None and not isinstance(value, kind):
        raise ArgumentTypeError(message(f"CompiledProgram: {name} is a {type(value).__name__}", f"it must be a {kind.__name__}"))
    return kind() if value is None else value


def _cpu_places(places: Any) -> list[Any]:
    """The CPU places of a list of them, or of their number."""
    found = cpu_places(places) if places is None or isinstance(places, int) else list(places)
    if not found or not all(isinstance(place, CPUPlace) for place in found):
        raise ArgumentTypeError(
            message(f"with_data_parallel(): places is {places!r}", "it must hold CPU places", "pass static.cpu_places(n)")
        )
    return found


def _joined(feeds: Sequence[Any], count: int) -> dict[str, Any]:
    """One feed of a feed for each place."""
    if len(feeds) not in (1, count) or not all(isinstance(f, Mapping) and f.keys() == feeds[0].keys() for f in feeds):
        raise ArgumentError(
            message(f"feed holds {len(feeds)} items for {count} places", "it must hold a dict of the same names for each")
        )
    return {name: np.concatenate([np.asarray(f[name]) for f in feeds]) for name in feeds[0]} if feeds else {}


class _Replicated(Prepared):
    """A Program made ready to run over several places."""

    def __init__(
        self,
        program: Program,
        feeds: Sequence[str],
        fetches: Sequence[Variable],
        count: int,
        build: BuildStrategy,
        execution: ExecutionStrategy,
    ) -> None:
        super().__init__(program, feeds, fetches)
        single = self.runner
        self.count, self.is_mean = count, build.gradient_scale_strategy is GradientScaleStrategy.CoeffNumDevice
        self.divided = [kind == "feed" and bool(v.sizes) and v.sizes[0] == UNKNOWN for kind, _, v in self.sources]
        batches = {id(v) for v, is_divided in zip(single.block.arguments, self.divided, strict=True) if is_divided}
        graph = replicate(single.block, single.updates, batches, count)
        threads = execution.num_threads or count
        runner = GraphRunner(graph, threads, build.skipped(), build.fuse_all_reduce_ops, build.memory_budget // count or None)
        self.runner = runner
        self.path = build.debug_graphviz_path

    def run(self, feed: Mapping[str, Any], scope: Scope) -> list[Any]:
        """The fetched tensors."""
        inputs: list[Any] = []
        bounds: list[int] = []
        for value, is_divided in zip(self.gather(feed, scope), self.divided, strict=True):
            if not is_divided:
                inputs.append(value)
                continue
            rows = value.shape[0]
            if not bounds:
                if rows < self.count:
                    raise ArgumentError(
                        message(
                            f"{rows} rows are fed for {self.count} places",
                            "each takes at least one",
                            "feed more, or use fewer places",
                        )
                    )
                bounds = [rows * k // self.count for k in range(self.count + 1)]
            if rows != bounds[-1]:
                raise ArgumentError(
                    message(f"{rows} and {bounds[-1]} rows are fed", "all that is divided must have as many rows")
                )
            inputs += [value[a:b] for a, b in pairwise(bounds)]
        if not bounds:
            raise ArgumentError(
                message(
                    "nothing that is fed can be divided among places",
                    "some Variable's first size must be -1",
                    "declare data with None",
                )
            )
        shares = [(b - a) / bounds[-1] if self.is_mean else 1.0 for a, b in pairwise(bounds)]
        results = self.finish(self.runner([*inputs, *shares]), scope)
        if self.path:
            Path(self.path).write_text(self.runner.to_dot(), encoding="utf-8")  # type: ignore[attr-defined]
            self.path = ""
        return results
