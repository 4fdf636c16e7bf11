"""Debug mode: every take is checked against a copy of what the consumer holds."""

import heapq
import logging
from typing import Any

import pytest

from state_support import Consumer, plain, text
from statecast.state import Delta, Document, Snapshot, splices


def errors(caplog: pytest.LogCaptureFixture) -> list[str]:
    found = [record.getMessage() for record in caplog.records if record.levelno >= logging.ERROR]
    caplog.clear()
    return found


@pytest.mark.parametrize(
    ("write", "place"),
    [
        (lambda s: heapq.heapify(s["heap"]), "'/heap/0'"),
        (lambda s: heapq.heappush(s["heap"], 0), "'/heap'"),
        (lambda s: heapq.heappop(s["heap"]), "'/heap'"),
        (lambda s: list.append(s["rows"], {"n": 1}), "'/rows'"),
        (lambda s: dict.__setitem__(s["rows"][0], "n", 9), "'/rows/0/n'"),
        (lambda s: dict.update(s, new={"a": 1}), "''"),
        (lambda s: dict.pop(s, "heap"), "''"),
    ],
)
def test_what_was_written_past_the_methods_is_found_at_the_next_take(
    write: Any, place: str, caplog: pytest.LogCaptureFixture
) -> None:
    consumer = Consumer({"heap": [3, 2, 1], "rows": [{"n": 1}]}, debug=True)
    assert consumer.document.compares
    write(consumer.value)
    taken = consumer.take()
    assert isinstance(taken, Snapshot)
    (error,) = errors(caplog)
    assert place in error
    assert consumer.take() is None
    # What came in that way is tracked from now on.
    for rows in (consumer.value["rows"], consumer.value.get("new")):
        for row in rows if isinstance(rows, list) else [rows] if rows else []:
            row["later"] = 1
    assert isinstance(consumer.take(), Delta)
    assert not errors(caplog)


def test_a_wrong_patch_is_found_and_answered_with_a_snapshot(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    consumer = Consumer({"rows": [1, 2, 3, 4]}, debug=True)
    monkeypatch.setattr(splices, "splice", lambda hunks, lo, hi, count, removed: hunks.append([0, 0, []]))
    consumer.value["rows"].insert(1, 9)
    consumer.value["rows"].append(5)
    assert isinstance(consumer.take(), Snapshot)
    assert "would differ" in errors(caplog)[0]


def test_a_later_change_of_an_original_is_reported_once_with_its_pointer(caplog: pytest.LogCaptureFixture) -> None:
    consumer = Consumer({"rows": [], "d": {}}, debug=True)
    row: dict[str, Any] = {"n": 1, "tags": []}
    consumer.value["rows"].extend([0, row])
    consumer.take()
    assert not errors(caplog)
    row["n"] = 2
    row["tags"].append("t")
    assert consumer.take() is None
    found = errors(caplog)
    assert sorted("/rows/1/tags" in error for error in found) == [False, True]
    assert all("'/rows/1" in error for error in found)
    row["n"] = 3
    assert consumer.take() is None
    assert not errors(caplog)
    assert consumer.value["rows"][1] == {"n": 1, "tags": []}


def test_no_more_than_a_thousand_originals_are_kept(caplog: pytest.LogCaptureFixture) -> None:
    consumer = Consumer({"rows": []}, debug=True)
    originals: list[dict[str, int]] = [{} for _ in range(1500)]
    for original in originals:
        consumer.value["rows"].append(original)
    consumer.take()
    for original in originals:
        original["n"] = 1
    consumer.take()
    assert len(errors(caplog)) == 1000


def test_without_debug_nothing_is_kept() -> None:
    document: Document[Any] = Document({})
    assert not document.compares
    assert document._shadow is None
    assert document._tracker.original is None


def test_debug_says_nothing_when_all_is_well(caplog: pytest.LogCaptureFixture) -> None:
    consumer = Consumer({"rows": [{"n": number} for number in range(20)], "set": {1}}, baseline={"x": 1}, debug=True)
    consumer.take()
    rows = consumer.value["rows"]
    rows.reverse()
    rows[3]["n"] = -1
    consumer.take()
    consumer.value["set"].add(2)
    assert consumer.take(compare=False) is None
    assert consumer.paths() == [("add", "/set/1")]
    consumer.value = {"rows": rows[:3], "f": 1.0}
    consumer.take()
    consumer.document.resync()
    consumer.take()
    assert consumer.take() is None
    assert text(consumer.state) == text(plain(consumer.value))
    assert not errors(caplog)
