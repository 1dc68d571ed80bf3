"""paddle.profiler: schedules, what a recording holds, tables, files, throughput, and that nothing is left behind when it is off."""

from __future__ import annotations

import json
import re
import threading
import warnings

import numpy as np
import pytest

import sampan as paddle
from sampan import profiler
from sampan.base import spans
from sampan.profiler.events import Event, ProfilerResult, Spans, TracerEventType, links, merged_ns, nested
from sampan.profiler.flops import flops_of
from sampan.profiler.recording import current
from sampan.profiler.statistics import operator_rows, tables
from sampan.profiler.timer import Benchmark

Kind = TracerEventType
CLOSED, READY, RECORD, RETURN = profiler.ProfilerState


def ignore(prof):
    """An on_trace_ready that does nothing."""


@pytest.fixture
def training():
    """One training step of a small network."""
    paddle.seed(0)
    net = paddle.nn.Sequential(paddle.nn.Linear(8, 16), paddle.nn.ReLU(), paddle.nn.Linear(16, 2))
    optimizer = paddle.optimizer.SGD(0.1, parameters=net.parameters())
    x, y = paddle.rand([4, 8]), paddle.zeros([4], "int64")

    def step():
        loss = paddle.nn.functional.cross_entropy(net(x), y)
        loss.backward()
        optimizer.step()
        optimizer.clear_grad()

    step()
    return step


@pytest.fixture
def result(training):
    """A recording of two training steps, with memory and shapes."""
    with profiler.Profiler(on_trace_ready=ignore, profile_memory=True, record_shapes=True) as prof:
        for _ in range(2):
            with profiler.RecordEvent("mine"):
                training()
            prof.step()
    return prof.profiler_result


def names(result, kind):
    return [e.name for e in result.events if e.kind is kind]


class TestSchedules:
    @pytest.mark.parametrize(
        ("arguments", "wanted"),
        [
            ({"closed": 1, "ready": 1, "record": 2, "repeat": 1}, [CLOSED, READY, RECORD, RETURN, CLOSED, CLOSED]),
            ({"closed": 0, "ready": 0, "record": 1}, [RETURN] * 6),
            ({"closed": 0, "ready": 1, "record": 1, "skip_first": 2}, [CLOSED, CLOSED, READY, RETURN, READY, RETURN]),
            ({"closed": 0, "ready": 0, "record": 2, "repeat": 2}, [RECORD, RETURN, RECORD, RETURN, CLOSED, CLOSED]),
        ],
    )
    def test_a_schedule_goes_round(self, arguments, wanted):
        schedule = profiler.make_scheduler(**arguments)
        assert [schedule(step) for step in range(6)] == wanted

    @pytest.mark.parametrize("wrong", [{"closed": -1}, {"record": 0}, {"skip_first": -2}])
    def test_numbers_that_make_no_schedule_are_refused(self, wrong):
        with pytest.raises(ValueError, match=f"{next(iter(wrong))} is"):
            profiler.make_scheduler(**{"closed": 1, "ready": 1, "record": 1, **wrong})

    def test_numbers_must_be_ints(self):
        with pytest.raises(TypeError, match=r"ready is 1\.5"):
            profiler.make_scheduler(closed=0, ready=1.5, record=1)

    def test_a_negative_step_is_refused(self):
        with pytest.raises(ValueError, match="step -1"):
            profiler.make_scheduler(closed=0, ready=1, record=1)(-1)

    @pytest.mark.parametrize(("pair", "recorded"), [((0, 2), [0, 1]), ((2, 3), [2]), ((-1, 1), [0])])
    def test_a_pair_records_from_the_first_to_before_the_last(self, pair, recorded):
        with profiler.Profiler(scheduler=pair, on_trace_ready=ignore) as prof:
            for _ in range(5):
                prof.step()
        assert names(prof.profiler_result, Kind.ProfileStep) == [f"ProfileStep#{n}" for n in recorded]

    @pytest.mark.parametrize("wrong", [(3, 2), (2, 2)])
    def test_a_pair_without_steps_is_refused(self, wrong):
        with pytest.raises(ValueError, match="no step is recorded"):
            profiler.Profiler(scheduler=wrong)

    @pytest.mark.parametrize("wrong", [3, (1, 2, 3), ("a", "b")])
    def test_other_schedulers_are_refused(self, wrong):
        with pytest.raises(TypeError, match="scheduler is"):
            profiler.Profiler(scheduler=wrong)

    def test_a_scheduler_must_give_states(self):
        with pytest.raises(TypeError, match="gives 1 for step 0"):
            profiler.Profiler(scheduler=lambda step: 1).start()
        assert spans.watcher is None

    def test_every_round_is_handed_out(self):
        handed = []
        schedule = profiler.make_scheduler(closed=1, ready=0, record=2)
        with profiler.Profiler(scheduler=schedule, on_trace_ready=lambda p: handed.append(p.profiler_result)) as prof:
            for _ in range(6):
                prof.step()
        steps = [names(r, Kind.ProfileStep) for r in handed]
        assert steps == [["ProfileStep#1", "ProfileStep#2"], ["ProfileStep#4", "ProfileStep#5"]]
        assert [r.get_span_index() for r in handed] == [0, 1]


class TestRecording:
    def test_operators_backward_layers_and_phases_are_recorded(self, result):
        assert names(result, Kind.Forward) == ["Sequential", "Linear", "ReLU", "Linear"] * 2
        assert names(result, Kind.Backward) == ["Gradient Backward"] * 2
        assert names(result, Kind.Optimization) == ["Optimization Step"] * 2
        operators = names(result, Kind.Operator)
        assert [n for n in operators if n in ("linear", "relu", "linear_grad", "relu_grad")] == [
            *("linear", "relu", "linear"),
            *("linear_grad", "relu_grad", "linear_grad"),
        ] * 2
        assert "native matmul" in names(result, Kind.Kernel)

    def test_events_lie_within_those_that_contain_them(self, result):
        inside = {e.name: outer and outer.name for e, outer in nested(result.events)}
        assert inside["relu"] == "ReLU"
        assert inside["ReLU"] == "Sequential"
        assert inside["Sequential"] == "mine"
        assert inside["mine"] == "ProfileStep#1"
        assert inside["native matmul"] in ("linear", "linear_grad")
        assert all(e.begin_ns <= e.end_ns for e in result.events)

    def test_shapes_are_those_of_the_call(self, result):
        linear = next(e for e in result.events if e.name == "linear")
        assert linear.shapes == "x float32[4, 8], weight float32[8, 16], bias float32[16]"

    def test_memory_grows_where_results_are_made(self, result):
        relu = next(e for e in result.events if e.name == "relu")
        assert relu.end_bytes - relu.begin_bytes >= 4 * 16 * 4
        assert result.memory["peak_allocated_bytes"] >= relu.end_bytes

    def test_without_the_options_there_are_no_shapes_and_no_bytes(self, training):
        with profiler.Profiler(on_trace_ready=ignore) as prof:
            training()
        assert all(e.shapes == "" and e.end_bytes == 0 for e in prof.profiler_result.events)

    def test_a_call_of_many_tensors_is_told_by_the_first(self):
        with profiler.Profiler(on_trace_ready=ignore, record_shapes=True) as prof:
            paddle.concat([paddle.ones([2]), paddle.ones([3]), paddle.ones([4])], axis=0)
        concat = next(e for e in prof.profiler_result.events if e.name == "concat")
        assert concat.shapes == "x[0] float32[2], x[1] float32[3] and 1 more, axis=0"

    def test_data_loading_is_recorded(self):
        loader = paddle.io.DataLoader([(np.ones(3, "float32"), i) for i in range(4)], batch_size=2)
        with profiler.Profiler(on_trace_ready=ignore) as prof:
            for _ in loader:
                prof.step()
        assert names(prof.profiler_result, Kind.Dataloader) == ["DataLoader"] * 3

    def test_threads_are_told_apart(self):
        def work():
            with profiler.RecordEvent("elsewhere"):
                paddle.ones([2]) + 1

        with profiler.Profiler(on_trace_ready=ignore) as prof:
            thread = threading.Thread(target=work, name="helper")
            thread.start()
            thread.join()
            with profiler.RecordEvent("here"):
                pass
        by_name = {e.name: e.thread for e in prof.profiler_result.events}
        assert by_name["elsewhere"] != by_name["here"]
        assert by_name["add"] == by_name["elsewhere"]

    def test_nothing_is_left_when_it_stops(self, training):
        with profiler.Profiler(on_trace_ready=ignore) as prof:
            training()
        assert spans.watcher is None
        assert current() is None
        assert not profiler.utils.in_profiler_mode()
        count = len(prof.profiler_result.events)
        training()
        assert len(prof.profiler_result.events) == count
        assert prof.current_state is CLOSED

    def test_an_error_in_a_step_ends_the_recording(self):
        prof = profiler.Profiler(on_trace_ready=ignore)

        def work():
            with prof:
                paddle.ones([2]) + 1
                raise ZeroDivisionError

        with pytest.raises(ZeroDivisionError):
            work()
        assert "add" in names(prof.profiler_result, Kind.Operator)
        assert current() is None

    def test_it_cannot_start_twice(self):
        prof = profiler.Profiler(on_trace_ready=ignore)
        prof.start()
        try:
            with pytest.raises(ValueError, match="started already"):
                prof.start()
        finally:
            prof.stop()
        prof.stop()

    def test_the_compiled_step_shows_its_instructions(self):
        net = paddle.nn.Linear(4, 2)
        optimizer = paddle.optimizer.SGD(0.1, parameters=net.parameters())
        step = paddle.jit.TrainStep(lambda x: (net(x) ** 2).mean(), optimizer)
        x = paddle.ones([3, 4])
        step(x)
        with profiler.Profiler(on_trace_ready=ignore) as prof:
            step(x)
        rows = operator_rows(prof.profiler_result.events)
        assert any(name.startswith("native matmul") for name in rows["train_step"].inner)

    def test_arguments_are_checked(self):
        with pytest.raises(TypeError, match="on_trace_ready is 3"):
            profiler.Profiler(on_trace_ready=3)
        with pytest.raises(NotImplementedError, match="emit_nvtx"):
            profiler.Profiler(emit_nvtx=True)
        with pytest.warns(UserWarning, match="not recorded"):
            profiler.Profiler(targets=[profiler.ProfilerTarget.GPU])


class TestRecordEvent:
    def test_begin_and_end_nest(self):
        with profiler.Profiler(on_trace_ready=ignore) as prof:
            event = profiler.RecordEvent("twice")
            event.begin()
            event.begin()
            event.end()
            event.end()
            event.end()
        found = [e for e in prof.profiler_result.events if e.name == "twice"]
        assert len(found) == 2
        assert dict(nested(found))[found[1]] is found[0]

    def test_a_decorated_function_keeps_its_name_and_result(self):
        @profiler.RecordEvent("add one")
        def add_one(x):
            return x + 1

        with profiler.Profiler(on_trace_ready=ignore) as prof:
            assert add_one(2) == 3
        assert add_one.__name__ == "add_one"
        assert names(prof.profiler_result, Kind.PythonUserDefined) == ["add one"]

    def test_what_began_before_the_recording_is_not_of_it(self):
        event = profiler.RecordEvent("early")
        event.begin()
        with profiler.Profiler(on_trace_ready=ignore) as prof:
            event.end()
        assert names(prof.profiler_result, Kind.PythonUserDefined) == []

    def test_arguments_are_checked(self):
        with pytest.raises(TypeError, match="name is 3"):
            profiler.RecordEvent(3)
        with pytest.raises(TypeError, match="event_type is 'x'"):
            profiler.RecordEvent("a", "x")


class TestFiles:
    @pytest.mark.parametrize("form", ["json", "pb"])
    def test_a_recording_comes_back_from_its_file(self, tmp_path, result, form):
        prof = profiler.Profiler(on_trace_ready=ignore)
        prof.profiler_result = result
        prof.export(str(tmp_path / "deep" / f"trace.{form}"), form)
        assert profiler.load_profiler_result(str(tmp_path / "deep" / f"trace.{form}")) == result

    def test_the_chrome_trace_has_names_flows_and_counters(self, tmp_path, result):
        prof = profiler.Profiler(on_trace_ready=ignore)
        prof.profiler_result = result
        prof.export(str(tmp_path / "trace.json"))
        rows = json.loads((tmp_path / "trace.json").read_text())["traceEvents"]
        kinds = {row["ph"] for row in rows}
        assert kinds == {"M", "X", "s", "f", "C"}
        assert {"MainThread"} == {r["args"]["name"] for r in rows if r["name"] == "thread_name"}
        starts, ends = ([r["id"] for r in rows if r["ph"] == ph] for ph in "sf")
        assert sorted(starts) == sorted(ends)
        assert len(starts) == len(set(starts)) >= 4

    def test_events_of_a_thread_never_overlap_in_part(self, result):
        open_until = {}
        for e, outer in nested(result.events):
            assert outer is None or outer.begin_ns <= e.begin_ns <= e.end_ns <= outer.end_ns
            assert e.begin_ns >= open_until.get((e.thread, outer), 0)
            open_until[e.thread, outer] = e.end_ns

    def test_handlers_name_files_by_worker_and_time(self, tmp_path):
        for handler in (profiler.export_chrome_tracing, profiler.export_protobuf):
            with profiler.Profiler(on_trace_ready=handler(str(tmp_path), "w")):
                paddle.ones([2]) + 1
        found = sorted(path.suffix for path in tmp_path.iterdir())
        assert found == [".json", ".pb"]
        assert all(re.fullmatch(r"w_time_\d{4}(_\d\d){5}_\d{6}\.paddle_trace\.\w+", p.name) for p in tmp_path.iterdir())

    def test_a_file_in_the_folders_place_is_refused(self, tmp_path):
        (tmp_path / "taken").write_text("")
        with pytest.raises(ValueError, match="no folder"):
            profiler.export_chrome_tracing(str(tmp_path / "taken"))

    @pytest.mark.parametrize("content", [b"", b"{}", b"[1, 2]", b'{"traceEvents": 3}', b"\xff\xff\xff", b"nothing"])
    def test_other_files_are_refused(self, tmp_path, content):
        (tmp_path / "odd").write_bytes(content)
        with pytest.raises(ValueError, match="holds no recording"):
            profiler.load_profiler_result(str(tmp_path / "odd"))

    def test_a_missing_file_is_an_os_error(self, tmp_path):
        with pytest.raises(FileNotFoundError):
            profiler.load_profiler_result(str(tmp_path / "none"))

    def test_another_format_is_refused(self):
        with pytest.raises(ValueError, match="format is 'xml'"):
            profiler.Profiler(on_trace_ready=ignore).export("x", "xml")

    def test_without_a_recording_there_is_a_warning(self, tmp_path):
        prof = profiler.Profiler(on_trace_ready=ignore)
        with pytest.warns(UserWarning, match="no recorded step has ended"):
            prof.export(str(tmp_path / "none"))
        with pytest.warns(UserWarning, match="no recorded step has ended"):
            prof.summary()
        assert list(tmp_path.iterdir()) == []

    def test_a_profiler_comes_from_a_file(self, tmp_path):
        described = {
            "targets": ["cpu"],
            "scheduler": {"make_scheduler": {"args": {"closed": 1, "ready": 0, "record": 1}}},
            "on_trace_ready": {"export_chrome_tracing": {"args": [str(tmp_path / "log")]}},
            "profile_memory": True,
        }
        (tmp_path / "config.json").write_text(json.dumps(described))
        prof = profiler.get_profiler(str(tmp_path / "config.json"))
        assert [prof.scheduler(k) for k in range(3)] == [CLOSED, RETURN, CLOSED]
        assert prof.profile_memory
        (tmp_path / "config.json").write_text('{"no_such": 1}')
        with pytest.raises(ValueError, match="no_such"):
            profiler.get_profiler(str(tmp_path / "config.json"))


def event(name, begin, end, kind=Kind.Operator, thread=1, **more):
    return Event(name, kind, begin, end, thread, **more)


class TestTables:
    def test_times_are_summed_by_name(self):
        made = ProfilerResult([event("add", 0, 2000), event("add", 3000, 7000), event("mul", 8000, 9000)], {1: "Main"})
        text = tables(made, views=profiler.SummaryView.OperatorView, time_unit="us")
        assert re.search(r"add +2 +6\.000 / 3\.000 / 4\.000 / 2\.000 / 85\.71", text)
        assert re.search(r"mul +1 +1\.000 / 1\.000 / 1\.000 / 1\.000 / 14\.29", text)

    @pytest.mark.parametrize(
        ("key", "first"), [("CPUTotal", "many"), ("CPUAvg", "long"), ("CPUMax", "long"), ("CPUMin", "long"), ("GPUAvg", "long")]
    )
    def test_rows_are_sorted_by_the_key(self, key, first):
        made = ProfilerResult([*(event("many", k * 10, k * 10 + 3) for k in range(5)), event("long", 100, 110)], {1: "Main"})
        text = tables(made, profiler.SortedKeys[key], views=[profiler.SummaryView.OperatorView])
        assert min(("many", "long"), key=text.index) == first

    def test_instructions_stand_inside_their_operator(self):
        made = ProfilerResult([event("exp", 0, 10), event("kernel exp[4]", 2, 8, Kind.Kernel)], {1: "Main"})
        text = tables(made, views=profiler.SummaryView.OperatorView)
        assert "\n  kernel exp[4]" in text
        assert "kernel" not in tables(made, op_detail=False, views=profiler.SummaryView.OperatorView)

    def test_threads_have_tables_of_their_own_when_asked(self):
        made = ProfilerResult([event("a", 0, 1), event("a", 0, 1, thread=2)], {1: "Main", 2: "other"})
        text = tables(made, thread_sep=True, views=profiler.SummaryView.OperatorView)
        assert "Thread: 1 (Main)" in text
        assert "Thread: 2 (other)" in text
        assert "All threads merged" in tables(made, views=profiler.SummaryView.OperatorView)

    def test_phases_of_a_step_leave_the_rest(self):
        made = ProfilerResult(
            [
                event("ProfileStep#0", 0, 100, Kind.ProfileStep),
                event("Net", 10, 40, Kind.Forward),
                event("Linear", 12, 20, Kind.Forward),
                event("b", 40, 80, Kind.Backward),
            ],
            {1: "Main"},
        )
        text = tables(made, time_unit="ns", views=profiler.SummaryView.ModelView)
        assert re.search(r"Forward +1 +30\.000 .* 30\.00\n", text)
        assert re.search(r"Backward +1 +40\.000 .* 40\.00\n", text)
        assert re.search(r"Others +- +30\.000 .* 30\.00\n", text)

    def test_overlaps_count_once(self):
        assert merged_ns([event("a", 0, 10), event("b", 5, 12), event("c", 20, 21)]) == 13
        assert merged_ns([]) == 0

    def test_the_whole_summary_is_printed(self, result, capsys):
        prof = profiler.Profiler(on_trace_ready=ignore)
        prof.profiler_result = result
        prof.summary()
        text = capsys.readouterr().out
        for title in ("Overview", "Model", "Kernel", "Operator", "Memory", "UserDefined"):
            assert f"{title} Summary" in text
        assert "Distribution" not in text

    @pytest.mark.parametrize(
        ("arguments", "error", "text"),
        [
            ({"time_unit": "h"}, ValueError, "time_unit is 'h'"),
            ({"sorted_by": "CPUTotal"}, TypeError, "sorted_by"),
            ({"views": [3]}, TypeError, "views holds 3"),
        ],
    )
    def test_arguments_are_checked(self, arguments, error, text):
        with pytest.raises(error, match=text):
            tables(ProfilerResult(), **arguments)

    def test_backward_belongs_to_the_last_call_without_one(self):
        calls = [
            event("a", 0, 1),
            event("a", 2, 3),
            event("b", 4, 5),
            event("b_grad", 6, 7),
            event("a_grad", 8, 9),
            event("a_grad", 10, 11),
        ]
        pairs = [(f.begin_ns, b.begin_ns) for f, b in links(calls)]
        assert pairs == [(4, 6), (2, 8), (0, 10)]

    def test_a_backward_without_its_call_has_no_partner(self):
        assert links([event("a_grad", 0, 1)]) == []

    def test_spans_find_the_one_of_a_moment(self):
        found = Spans([event("a", 0, 10), event("b", 20, 30)])
        assert [e and e.name for e in map(found.at, (0, 10, 15, 25, 31))] == ["a", "a", None, "b", None]

    @pytest.mark.parametrize(
        ("name", "operands", "wanted"),
        [
            ("linear", "x float32[4, 8], weight float32[8, 16], bias float32[16]", 2 * 4 * 8 * 16),
            ("matmul", "x float32[2, 3, 4], y float32[5, 4], transpose_x=False, transpose_y=True", 2 * 2 * 3 * 4 * 5),
            ("matmul", "x float32[7], y float32[7]", 14),
            ("conv2d", "x float32[2, 3, 9, 8], weight float32[4, 3, 3, 3], stride=[2, 1], padding=1", 2 * 2 * 4 * 27 * 5 * 8),
            (
                "conv2d",
                "x float32[1, 5, 5, 2], weight float32[4, 1, 3, 3], padding=[0, 0], groups=2, data_format='NHWC'",
                2 * 4 * 9 * 9,
            ),
            ("conv2d", "x float32[2, 3, 9, 8], weight float32[4, 3, 3, 3], padding='SAME'", 0),
            ("add", "x float32[4], y float32[4]", 0),
        ],
    )
    def test_floating_point_operations(self, name, operands, wanted):
        assert flops_of(name, operands) == wanted

    def test_operations_of_a_convolution_match_a_count(self, capsys):
        conv = paddle.nn.Conv2D(3, 4, 3, stride=2, padding=1)
        with profiler.Profiler(on_trace_ready=ignore, with_flops=True) as prof:
            out = conv(paddle.ones([2, 3, 9, 8]))
        prof.summary(views=profiler.SummaryView.OperatorView)
        assert f" {2 * int(np.prod(out.shape)) * 27}\n" in capsys.readouterr().out


class TestThroughput:
    def test_the_averages_are_of_the_steps_since_the_last_time(self, monkeypatch):
        clock = iter([0.0, 1.0, 2.0, 4.0, 6.0, 8.0, 9.0])
        monkeypatch.setattr("sampan.profiler.timer.time.perf_counter", lambda: next(clock))
        timer = Benchmark()
        timer.begin()  # 0
        timer.before_reader()  # 1
        timer.after_reader()  # 2
        timer.step(num_samples=8)  # 4
        timer.step(num_samples=8)  # 6
        assert timer.step_info("images") == " reader_cost: 0.50000 s batch_cost: 3.00000 s ips: 2.667 images/s"
        assert timer.step_info("images") == ""
        timer.step(num_samples=4)  # 8
        assert timer.step_info() == " reader_cost: 0.00000 s batch_cost: 2.00000 s ips: 2.000 samples/s"
        summary = timer.current_event.get_summary()
        assert summary["batch"] == {"avg": 8 / 3, "max": 4.0, "min": 2.0}
        assert summary["ips"] == {"avg": 20 / 8, "max": 4.0, "min": 2.0}

    def test_without_samples_steps_are_counted(self):
        timer = Benchmark()
        timer.begin()
        timer.step()
        assert re.fullmatch(r" batch_cost: \d\.\d{5} s ips: [\d.]+ steps/s", timer.step_info("images"))

    def test_timer_only_records_nothing_and_prints_a_table(self, training, capsys):
        loader = paddle.io.DataLoader([np.ones(3, "float32")] * 4, batch_size=2)
        with profiler.Profiler(timer_only=True) as prof:
            for _ in loader:
                training()
                prof.step(num_samples=2)
            assert "reader_cost" in prof.step_info()
        assert prof.profiler_result is None
        lines = capsys.readouterr().out.splitlines()
        assert lines[0] == "Perf Summary".center(100, "=")
        assert lines[1].startswith("Reader Ratio: ")
        assert [line.split("|")[1].strip() for line in lines[3:]] == ["", "reader_cost", "batch_cost", "ips"]
        with pytest.warns(UserWarning, match="timer_only"):
            prof.summary()

    def test_before_the_start_there_is_nothing_to_tell(self):
        prof = profiler.Profiler(on_trace_ready=ignore)
        prof.step()
        assert prof.step_info() == ""

    def test_no_steps_no_table(self, capsys):
        with warnings.catch_warnings(), profiler.Profiler(timer_only=True):
            pass
        assert capsys.readouterr().out == ""
