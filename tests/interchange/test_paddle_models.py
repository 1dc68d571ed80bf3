"""Models and single operators that the real PaddlePaddle saved, in both of its formats, loaded here and compared with its results."""

from __future__ import annotations

import json
import pickle

import numpy as np
import pytest
from front.reference import needs_paddle
from ops.test_definitions import sample_arguments

import sampan
from sampan.framework.interchange.saved import read_saved
from sampan.ops import OPERATORS
from sampan.tensor import to_tensor

from .paddle_runs import FORMATS, difference, run_paddle

pytestmark = [needs_paddle, pytest.mark.slow]

#: What differs by intent, by nature or by the saved file, and why.
EXCEPTIONS = {
    "argmax": "NaN wins here", "argmin": "NaN wins here", "heaviside": "NaN stays", "logsumexp": "infinities", "logcumsumexp": "infinities",
    "logit": "outside of (0, 1)", "erfinv": "outside of [-1, 1]", "empty": "any content", "empty_like": "any content",
    "eig": "eigenvectors are free up to a factor", "svd_lowrank": "random", "pca_lowrank": "random",
    "increment": "PaddlePaddle's file lost the write in place", "multi_label_margin_loss": "PaddlePaddle's file lost a write in place",
    "lstsq": "PaddlePaddle's file lacks results", "hsigmoid_loss": "PaddlePaddle adds log(2) for each node that a short path lacks",
}  # fmt: skip

#: Single calls that the real one's .pdmodel cannot hold.
LOST_IN_PDMODEL = {"nanmedian.3": "the positions are not among the operator's results", "nanmedian.4": "the same"}


def results_of(saved, arrays):
    with sampan.no_grad():
        return [t.numpy() for t in saved.runner()(*[to_tensor(arrays[name]) for name in saved.model.feeds()])]


@pytest.fixture(scope="module", params=FORMATS)
def models(request, tmp_path_factory):
    """(the folder, what make_models.py reports) for a format."""
    folder = tmp_path_factory.mktemp(request.param)
    return folder, json.loads(run_paddle("make_models.py", request.param, str(folder)))


NAMES = (
    "mlp", "lenet", "resnet18", "mobilenet_v1", "mobilenet_v2", "encoder", "lstm", "lstm_both", "gru", "simple_rnn", "deepfm", "branch",
    "branch_other", "loop", "mixed",
)  # fmt: skip


@pytest.mark.parametrize("name", NAMES)
def test_a_model_of_the_real_one_gives_its_results(models, name):
    folder, report = models
    assert name in report["done"], report["failed"]
    arrays = dict(np.load(folder / f"{name}.npz"))
    found = results_of(read_saved(str(folder / name)), arrays)
    differences = [difference(value, arrays[f"out{k}"]) for k, value in enumerate(found)]
    assert not any(differences), differences


def cases():
    for name, definition in OPERATORS.items():
        for k, sample in enumerate(definition.samples if definition.api and name not in EXCEPTIONS else ()):
            yield (f"{name}.{k}", definition.api[0], *sample_arguments(definition, sample, "float32"))


@pytest.mark.parametrize("suffix", FORMATS)
def test_every_operator_that_the_real_one_saves_gives_its_results(suffix, tmp_path):
    with open(tmp_path / "cases.pkl", "wb") as file:
        pickle.dump(list(cases()), file)
    saved = int(run_paddle("make_operators.py", suffix, str(tmp_path / "cases.pkl"), str(tmp_path)))
    assert saved > (950 if suffix == "json" else 580)
    with open(tmp_path / "results.pkl", "rb") as file:
        results = pickle.load(file)
    wrong = {}
    for name, (fed, expected, why_not) in results.items():
        if why_not is not None or (suffix == "pdmodel" and name.removesuffix(".pdmodel") in LOST_IN_PDMODEL):
            continue
        found = results_of(read_saved(str(tmp_path / name)), fed)
        differences = [d for d in map(difference, found, expected) if d]
        if differences or len(found) != len(expected):
            wrong[name] = differences
    assert not wrong
