from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from statecast.loading import LoadError, load_agent, read_env_file

FILES = {
    "good.py": """
from statecast import Agent, Run

class Planner(Agent):
    async def run(self, run: Run) -> None: ...

class Needy(Agent):
    def __init__(self, key: str) -> None:
        self.key = key
    async def run(self, run: Run) -> None: ...

planner = Planner()
def make() -> Planner:
    return Planner()
def make_text() -> str:
    return "planner"
class Box:
    inner = planner
app = planner.app()
number = 5
""",
    "missing.py": "import os\nimport not_installed_anywhere\n",
    "broken.py": "def helper():\n    return 1 / 0\n\nvalue = helper()\n",
    "syntax.py": "x = 1\nclass :\n",
    "exits.py": "import sys\nsys.exit('no key')\n",
    "deep.py": "import json\nsettings = json.loads('{')\n",
    "wrong.py": "from statecast import Agent\n\nclass Wrong(Agent):\n    def run(self, run):\n        pass\n",
    "package/__init__.py": "",
    "package/agents.py": "from good import Planner\n",
}


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    for name, text in FILES.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    monkeypatch.chdir(tmp_path)
    before, modules = list(sys.path), set(sys.modules)
    yield tmp_path
    sys.path[:] = before
    for name in set(sys.modules) - modules:
        if name.split(".")[0] in {Path(file).parts[0].removesuffix(".py") for file in FILES}:
            del sys.modules[name]


@pytest.mark.parametrize("name", ["Planner", "planner", "make", "Box.inner"])
def test_a_class_an_instance_and_a_function_are_agents(name: str) -> None:
    assert type(load_agent(f"good:{name}")).__name__ == "Planner"


def test_a_module_in_a_package_finds_its_neighbours(folder: Path) -> None:
    assert load_agent("package.agents:Planner").name == "Planner"
    assert sys.path[0] == str(folder)


@pytest.mark.parametrize(
    ("target", "said"),
    [
        ("good", "MODULE:AGENT"),
        ("good:", "MODULE:AGENT"),
        (":Planner", "MODULE:AGENT"),
        ("nowhere:Planner", "there is no module 'nowhere'"),
        ("package.nowhere:Planner", "there is no module 'package.nowhere'"),
        ("good:Plannner", "no 'Plannner'; its agents: Needy, Planner, planner"),
        ("package:x", "its agents: none"),
        ("good:number", "of type int"),
        ("good:app", "is an app: serve it with `uvicorn good:app`"),
        ("good:Box", "the class Box"),
        ("good:make_text", "returned of type str"),
        ("good:Needy", r"without arguments: TypeError: .*'key'"),
        ("missing:Planner", r"No module named 'not_installed_anywhere' \(missing.py, line 2: import not_installed_anywhere\)"),
        ("broken:Planner", r"ZeroDivisionError: division by zero \(broken.py, line 2: return 1 / 0\)"),
        ("syntax:Planner", r"SyntaxError: .* \(syntax.py, line 2: class :\)"),
        ("exits:Planner", r"SystemExit: no key \(exits.py, line 2: sys.exit\('no key'\)\)"),
        ("deep:Planner", r"JSONDecodeError: .* \(deep.py, line 2: settings = json.loads\('{'\)\)"),
        ("wrong:Wrong", r"TypeError: Wrong.run must be an `async def` \(wrong.py, line 3: class Wrong\(Agent\):\)"),
    ],
)  # fmt: skip
def test_what_is_wrong_is_said_in_one_line_with_the_line_of_the_author(target: str, said: str) -> None:
    with pytest.raises(LoadError, match=said) as raised:
        load_agent(target)
    assert "\n" not in str(raised.value)


def test_an_env_file_fills_what_is_not_set(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (folder / ".env").write_text(
        "# comment\n\nNEW_ONE=1\nexport NEW_TWO = 'two words' \nNEW_THREE=\"a=b\"\nSET_ALREADY=no\nNEW_EMPTY=\n",
        "utf-8",
    )
    monkeypatch.setenv("SET_ALREADY", "yes")
    for name in ("NEW_ONE", "NEW_TWO", "NEW_THREE", "NEW_EMPTY"):
        # So that the fixture removes what the file sets.
        monkeypatch.setenv(name, "")
        monkeypatch.delenv(name)
    read_env_file(str(folder / ".env"))
    names = ("NEW_ONE", "NEW_TWO", "NEW_THREE", "SET_ALREADY", "NEW_EMPTY")
    assert [os.environ[name] for name in names] == ["1", "two words", "a=b", "yes", ""]


@pytest.mark.parametrize("line", ["just words", "=value", "2X=1", "a-b=c"])
def test_a_line_that_says_nothing_is_named(folder: Path, line: str) -> None:
    (folder / ".env").write_text(f"A_FINE_ONE=1\n{line}\n")
    os.environ.pop("A_FINE_ONE", None)
    with pytest.raises(LoadError, match="line 2"):
        read_env_file(str(folder / ".env"))
    os.environ.pop("A_FINE_ONE", None)
