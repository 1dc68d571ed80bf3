"""The command ``sampan``."""

import json

import pytest
from processes import run_python

from sampan import cli
from sampan.cli import info
from sampan.version import full_version


def sampan(*arguments, cwd=None):
    return run_python("-m", "sampan", *arguments, cwd=cwd)


def test_version():
    done = sampan("--version")
    assert (done.returncode, done.stdout.strip()) == (0, f"sampan {full_version}")


def test_help_lists_every_command():
    done = sampan("--help")
    assert done.returncode == 0
    assert all(command.name in done.stdout for command in cli.COMMANDS)


def test_no_command_is_a_usage_error():
    done = sampan()
    assert done.returncode == 2
    assert "usage: sampan" in done.stderr


def test_command_names_are_unique():
    names = [command.name for command in cli.COMMANDS]
    assert len(names) == len(set(names))


def test_info_prints_every_section(capsys):
    assert cli.main(["info"]) == 0
    out = capsys.readouterr().out
    for title in ("versions", "cpu", "runtime", "kernel cache", "optional parts"):
        assert f"\n{title}\n" in "\n" + out
    assert full_version in out


def test_info_json_parses(capsys):
    assert cli.main(["info", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["versions"]["sampan"] == full_version


def test_info_measures_the_kernel_cache(tmp_path, monkeypatch):
    monkeypatch.setattr(info.flags.KERNEL_CACHE, "value", str(tmp_path))
    (tmp_path / "a").write_bytes(b"x" * 2**20)
    assert info.kernel_cache() == {"location": str(tmp_path), "files": "1", "size": "1.0 MiB"}


@pytest.fixture
def script(tmp_path):
    path = tmp_path / "train.py"
    path.write_text(
        "import sys\nimport helper\nimport paddle.version\nprint(__name__, sys.argv[1:], paddle.version.full_version)\n"
    )
    (tmp_path / "helper.py").write_text("")
    return path


def test_run_gives_the_script_paddle_its_arguments_and_its_folder(script):
    done = sampan("run", str(script), "--epochs", "3")
    assert done.stdout.strip() == f"__main__ ['--epochs', '3'] {full_version}", done.stderr


def test_run_m_runs_a_module_of_the_current_folder(script):
    done = sampan("run", "-m", "train", "--epochs", "3", cwd=script.parent)
    assert done.stdout.strip() == f"__main__ ['--epochs', '3'] {full_version}", done.stderr


def test_run_passes_on_the_scripts_exit_status(tmp_path):
    path = tmp_path / "exits.py"
    path.write_text("raise SystemExit(7)\n")
    assert sampan("run", str(path)).returncode == 7


def test_run_shows_the_scripts_own_traceback(tmp_path):
    path = tmp_path / "fails.py"
    path.write_text("\n1 / 0\n")
    done = sampan("run", str(path))
    assert done.returncode == 1
    assert 'fails.py", line 2' in done.stderr


def test_run_says_when_there_is_no_such_script():
    done = sampan("run", "no_such_script.py")
    assert done.returncode == 2
    assert "there is no file 'no_such_script.py'" in done.stderr


def test_example_refuses_unknown_names():
    done = sampan("example", "no_such_example")
    assert done.returncode == 2
    assert "digits" in done.stderr


class TestDraw:
    MODEL = "import sampan as paddle\n\ndef net():\n    return paddle.nn.Sequential(paddle.nn.Linear(4, 2), paddle.nn.ReLU())\n\nother = 3\n"

    def draw(self, tmp_path, model, *arguments):
        (tmp_path / "model.py").write_text(self.MODEL)
        return cli.main(["draw", f"{tmp_path / 'model.py'}:{model}", *arguments])

    def test_a_model_of_a_file_becomes_a_picture(self, tmp_path):
        path = tmp_path / "net.html"
        assert self.draw(tmp_path, "net", str(path), "--input", "3,4", "--times") == 0
        text = path.read_text()
        assert "→ float32[3, 2]" in text
        assert "0: Linear" in text

    @pytest.mark.parametrize(
        ("model", "arguments", "told"),
        [
            ("nothing", ["a.svg"], "defines no 'nothing'; it defines paddle, net, other"),
            ("other", ["a.svg"], "thing is 3"),
            ("net", ["a.svg"], "no inputs"),
            ("net", ["a.svg", "--input", "3x4"], "--input is '3x4'"),
            ("net", ["a.gif", "--input", "3,4"], ".svg or an .html"),
            ("", ["a.svg"], "write FILE.py:NAME"),
        ],
    )
    def test_errors_are_told(self, tmp_path, capsys, monkeypatch, model, arguments, told):
        monkeypatch.chdir(tmp_path)
        assert self.draw(tmp_path, model, *arguments) == 1
        assert told in capsys.readouterr().err
        assert not list(tmp_path.glob("a.*"))
