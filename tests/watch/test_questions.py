import io
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from ag_ui.core import Interrupt

from statecast.watch.questions import ask, read_answer


@pytest.mark.parametrize(
    ("line", "schema", "value"),
    [
        ("yes", {"type": "boolean"}, True),
        ("N", {"type": "boolean"}, False),
        ("true", {"type": "boolean"}, True),
        (" as it is ", {"type": "string"}, " as it is "),
        ("5", {"type": "string"}, "5"),
        ("5", {"type": "integer"}, 5),
        ("5.5", {"type": "number"}, 5.5),
        ("red", {"enum": ["red", "green"]}, "red"),
        ("2", {"enum": [1, 2]}, 2),
        ('{"a": 1}', {"type": "object"}, {"a": 1}),
        ('{"a": 1}', None, {"a": 1}),
        ("free text", None, "free text"),
        ("free text", {}, "free text"),
        ("NaN", None, "NaN"),
        ("null", {"anyOf": [{"type": "null"}]}, None),
    ],
)
def test_a_line_is_read_by_the_schema(line, schema, value):
    answer = read_answer(line, schema)
    assert answer == value
    assert type(answer) is type(value)


@pytest.mark.parametrize(
    ("line", "schema", "said"),
    [
        ("perhaps", {"type": "boolean"}, "yes or no"),
        ("blue", {"enum": ["red", "green"]}, "red, green"),
        ("x", {"type": "integer"}, "whole number"),
        ("5.5", {"type": "integer"}, "whole number"),
        ("true", {"type": "integer"}, "whole number"),
        ("true", {"type": "number"}, "number"),
        ("{", {"type": "object"}, "JSON"),
        ("NaN", {"type": "number"}, "JSON"),
    ],
)
def test_what_cannot_be_read_says_how(line, schema, said):
    with pytest.raises(ValueError, match=said):
        read_answer(line, schema)


def answered(monkeypatch: pytest.MonkeyPatch, typed: str, *interrupts: Interrupt) -> Any:
    monkeypatch.setattr("sys.stdin", io.StringIO(typed))
    return ask(list(interrupts))


def test_all_questions_are_asked_and_a_wrong_answer_again(monkeypatch, capsys):
    one = Interrupt(id="a", reason="r", message="Go?", response_schema={"type": "boolean"})
    two = Interrupt(id="b", reason="name")
    assert answered(monkeypatch, "perhaps\ny\nAnn\n", one, two) == ({"a": True, "b": "Ann"}, [])
    said = capsys.readouterr().err
    assert "? Go?" in said
    assert "? name" in said
    assert said.count("yes or no") == 2


def test_an_empty_line_abandons_and_the_end_of_input_answers_nothing(monkeypatch):
    one, two = Interrupt(id="a", reason="r"), Interrupt(id="b", reason="r")
    assert answered(monkeypatch, "\nx\n", one, two) == ({"b": "x"}, ["a"])
    assert answered(monkeypatch, "x\n", one, two) is None


@pytest.mark.parametrize("text", ["%Y-%m-%dT%H:%M:%SZ", "%Y-%m-%dT%H:%M:%S"])
def test_P3_an_expired_question_is_abandoned_unasked(monkeypatch, text):
    past = (datetime.now(UTC) - timedelta(hours=1)).strftime(text)
    future = (datetime.now(UTC) + timedelta(hours=1)).strftime(text)
    late, open_ = Interrupt(id="a", reason="r", expires_at=past), Interrupt(id="b", reason="r", expires_at=future)
    assert answered(monkeypatch, "x\n", late, open_) == ({"b": "x"}, ["a"])


def test_a_message_cannot_steer_the_terminal(monkeypatch, capsys):
    answered(monkeypatch, "\n", Interrupt(id="a", reason="r", message="\x1b[2J", response_schema={"title": "\x1b"}))
    assert "\x1b" not in capsys.readouterr().err
