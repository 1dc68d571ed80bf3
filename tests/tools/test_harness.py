"""benchmarks/: cases are well formed, outcomes are computed and shown right, a worker answers over its pipe."""

import json
import sys

import cases
import growth
import harness
import peers
import pytest
import report


def outcome(**samples):
    made = harness.Outcome("a case", "group", target=2.0, against=("torch", "paddle"), flops=4e9)
    made.samples = samples
    return made


def test_case_names_are_unique():
    assert len(cases.BY_NAME) == len(cases.CASES)


def test_the_ratio_is_the_fastest_peer_over_sampan():
    made = outcome(sampan=[2.0, 1.0, 9.0], torch=[6.0], paddle=[5.0])
    assert made.ratio() == pytest.approx(2.5)
    assert made.is_reached()


def test_a_missed_target_says_so():
    made = outcome(sampan=[4.0], torch=[6.0])
    assert made.is_reached() is False
    assert "1.50 x; MISSED, at least 2 x" in report.verdict(made)


def test_a_library_called_directly_has_a_target_of_its_own():
    made = outcome(sampan=[2.0], torch=[6.0], onednn=[1.7])
    made.library_target = 0.9
    assert made.ratio() == pytest.approx(3.0)  # the library is no peer
    assert report.verdict(made) == "3.00 x; 0.85 x of oneDNN; MISSED, at least 0.9 x of oneDNN"
    made.samples["onednn"] = [1.9]
    assert made.is_reached()
    made.samples["torch"] = [3.0]
    assert made.missed() == ["at least 2 x"]


def test_a_limit_in_seconds_is_held_without_peers():
    made = harness.Outcome("import", "start", most=0.5)
    made.samples = {"sampan": [0.4]}
    assert made.is_reached()


def test_nothing_is_claimed_without_sampan():
    made = outcome(torch=[1.0], paddle=[2.0])
    assert made.ratio() is None
    assert made.is_reached() is None


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(2.0, "2 s"), (0.0123, "12.3 ms"), (1.5e-5, "15 µs"), (9.4e-7, "940 ns"), (None, "-"), (0.9996, "1000 ms")],
)
def test_seconds_are_shown_in_a_fitting_unit(seconds, text):
    assert report.quantity(seconds, "s") == text


def test_results_within_the_tolerance_agree():
    assert harness.differing_peers({"a": [[1.0, 2.0]], "b": [[1.001, 2.001]]}, 1e-3) == []


def test_results_beyond_the_tolerance_differ():
    assert harness.differing_peers({"a": [[1.0, 2.0]], "b": [[1.1, 2.0]]}, 1e-3) == ["b"]


def test_nan_differs_from_a_number():
    assert harness.differing_peers({"a": [[1.0, 2.0]], "b": [[float("nan"), 2.0]]}, 1e-3) == ["b"]


def test_other_numbers_of_results_differ():
    assert harness.differing_peers({"a": [[1.0, 2.0]], "b": [[1.0, 2.0, 3.0, 3.0]]}, 1e-3) == ["b"]


def test_a_peer_without_results_is_not_compared():
    assert harness.differing_peers({"onednn": [[]], "a": [[1.0, 2.0]], "b": [[1.0, 2.0]]}, 1e-3) == []


def test_the_table_has_a_row_a_case_and_the_rate():
    text = report.table([outcome(sampan=[2.0], torch=[6.0])], ["sampan", "torch"])
    assert "a case" in text
    assert "2 GFLOP/s" in text
    assert "3.00 x; ok" in text


def test_the_summary_counts_targets():
    text = report.summary([outcome(sampan=[2.0], torch=[6.0])], ["sampan", "torch"], 2, 7)
    assert "group: torch 3.00 x; 1 of 1 targets reached" in text


def test_a_peer_comes_from_the_argument_then_the_environment(monkeypatch):
    monkeypatch.setenv("SAMPAN_BENCH_TORCH", "/from/environment")
    assert peers.find("torch", "/given") == peers.Peer("torch", "/given")
    assert peers.find("torch", None) == peers.Peer("torch", "/from/environment")


def test_a_peer_that_is_not_set_is_left_out(monkeypatch):
    monkeypatch.delenv("SAMPAN_BENCH_JAX", raising=False)
    assert peers.find("jax", None) is None
    assert peers.find("sampan", None) == peers.Peer("sampan", sys.executable)


def test_a_worker_measures_onednn_and_answers_errors():
    worker = harness.WorkerProcess(peers.Peer("onednn", sys.executable), threads=1, verbose=False)
    try:
        assert worker.ask("prepare", name="matmul 64 x 64 x 64") == {"digests": [[], [], []]}
        assert 0 < worker.ask("run")["seconds"] < 1
        assert worker.ask("prepare", name="x + y, 4 elements") == {"absent": True}
        assert "KeyError" in worker.ask("prepare", name="no such case")["error"]
    finally:
        worker.close()


def test_a_dead_worker_is_an_error_not_a_hang():
    worker = harness.WorkerProcess(peers.Peer("onednn", sys.executable), threads=1, verbose=False)
    worker.process.kill()
    worker.process.wait()
    assert "ended with status" in worker.ask("run")["error"]
    worker.close()


def test_list_prints_the_chosen_cases(capsys):
    assert harness.main(["--list", "--groups", "eager"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 3
    assert all(line.startswith("eager ") for line in lines)


def test_growth_reports_an_example_and_trains_it(capsys):
    assert growth.main(["--only", "sparse embedding", "--steps", "20"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["before_kib"] > 10_000
    assert found["after_kib"] >= found["before_kib"] * 0.5
    assert 0 < found["loss"] < 5


def test_compilation_is_measured_in_fresh_processes():
    case = next(c for c in harness.select("programs", "MLP"))
    cold, warm, memory = harness.measure_compilation(case, [peers.Peer("sampan", sys.executable)], 1, 1, False)
    assert cold.errors == warm.errors == memory.errors == {}
    assert [len(outcome.samples["sampan"]) for outcome in (cold, warm, memory)] == [1, 1, 1]
    assert memory.median("sampan") > 30
