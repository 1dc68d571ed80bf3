"""``import paddle`` gives sampan's own module objects, only after install()."""

import textwrap

import pytest
from processes import run_python


def run(code, cwd=None):
    """The output of a fresh process; its own, since the alias changes what ``import paddle`` means."""
    done = run_python("-c", textwrap.dedent(code), cwd=cwd)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def test_modules_are_the_same_objects():
    out = run("""
        import sampan.paddle_alias
        sampan.paddle_alias.install()
        import paddle
        import paddle.nn.functional as F
        from paddle.nn import Layer
        from paddle import optimizer
        import sampan.nn.functional
        print(paddle is sampan, F is sampan.nn.functional, Layer is sampan.nn.Layer, optimizer is sampan.optimizer)
    """)
    assert out == "True True True True"


def test_an_aliased_module_keeps_its_own_name_and_spec():
    out = run("""
        import sampan.paddle_alias
        sampan.paddle_alias.install()
        import paddle.version
        print(paddle.version.__name__, paddle.version.__spec__.name, paddle.version.__package__)
    """)
    assert out == "sampan.version sampan.version sampan"


def test_a_module_is_loaded_once_whichever_name_comes_first():
    out = run("""
        import sampan.paddle_alias
        sampan.paddle_alias.install()
        import paddle.version as first
        import sampan.version as second
        print(first is second)
    """)
    assert out == "True"


def test_an_unknown_submodule_is_not_found():
    out = run("""
        import sampan.paddle_alias
        sampan.paddle_alias.install()
        try:
            import paddle.no_such_part
        except ModuleNotFoundError as error:
            print(error)
    """)
    assert out == "No module named 'paddle.no_such_part'"


def test_importing_the_alias_package_installs_nothing(tmp_path):
    (tmp_path / "paddle.py").write_text("who = 'the real one'\n")
    out = run(
        """
        import sys
        sys.path.insert(0, ".")
        import sampan.paddle_alias
        import paddle
        print(paddle.who, sampan.paddle_alias.is_installed())
        """,
        cwd=tmp_path,
    )
    assert out == "the real one False"


def test_install_refuses_when_another_paddle_is_loaded(tmp_path):
    (tmp_path / "paddle.py").write_text("")
    out = run(
        """
        import sys
        sys.path.insert(0, ".")
        import paddle
        import sampan.paddle_alias
        try:
            sampan.paddle_alias.install()
        except ImportError as error:
            print(error)
        """,
        cwd=tmp_path,
    )
    assert "already imported from" in out
    assert "before the first `import paddle`" in out


def test_uninstall_gives_the_name_back(tmp_path):
    (tmp_path / "paddle.py").write_text("who = 'the real one'\n")
    out = run(
        """
        import sys
        sys.path.insert(0, ".")
        import sampan.paddle_alias
        sampan.paddle_alias.install()
        sampan.paddle_alias.install()
        import paddle.version
        sampan.paddle_alias.uninstall()
        import paddle
        print(paddle.who, "paddle.version" in sys.modules, "sampan.version" in sys.modules)
        """,
        cwd=tmp_path,
    )
    assert out == "the real one False True"


@pytest.mark.parametrize("name", ["paddlex", "paddle_helper"])
def test_other_names_are_left_alone(name):
    out = run(f"""
        import importlib.util
        import sampan.paddle_alias
        sampan.paddle_alias.install()
        print(importlib.util.find_spec("{name}"))
    """)
    assert out == "None"
