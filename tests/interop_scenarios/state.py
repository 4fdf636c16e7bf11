"""State: what Python can do to it, and what the client makes of it."""

from __future__ import annotations

import asyncio
from typing import Any

from pydantic import Field

from interop_recording import Recorded
from statecast import Run, State
from statecast.demo import Planner, Trip

from .scenario import Results, contents, scenario


@scenario(thread={"state": {"items": [{"n": 1}, {"n": 2}], "keep": None, "gone": 1, "ü": "é"}})
class ThreadWithState(Recorded):
    """A thread that has a state already, when this agent sees it first."""

    async def run(self, run: Run[Any]) -> None:
        run.state["items"].insert(0, {"n": 0})
        del run.state["gone"]
        await run.say("one")
        run.state["items"][1]["n"] = 1.5
        await run.say("two")

    @staticmethod
    def check(results: Results, client: str) -> None:
        assert results[0]["state"] == {"items": [{"n": 0}, {"n": 1.5}, {"n": 2}], "keep": None, "ü": "é"}
        assert results[0]["events"].count("STATE_SNAPSHOT") == 1
        assert results[0]["events"].count("STATE_DELTA") == 1


@scenario(
    runs=[{"say": "a"}, {"say": "b"}, {"say": "c", "state": {"log": ["edited by the user"], "n": 5}}],
    endings=["success"] * 3,
)
class TwiceOnOneThread(Recorded):
    """State and messages come back with the next run, also when the application changed the state meanwhile."""

    async def run(self, run: Run[Any]) -> None:
        log = run.state.setdefault("log", [])
        log.append({"heard": run.user_text, "messages": len(run.messages)})
        await run.say(f"heard {run.user_text}")
        run.state["n"] = run.state.get("n", 0) + 1

    @staticmethod
    def check(results: Results, client: str) -> None:
        assert [run["state"]["n"] for run in results] == [1, 2, 6]
        assert results[1]["state"]["log"] == [{"heard": "a", "messages": 1}, {"heard": "b", "messages": 3}]
        assert contents(results[2], "assistant") == ["heard a", "heard b", "heard c"]


@scenario(
    runs=[{"say": "Plan a day in Lisbon"}, {"say": "One more day, please"}, {"say": "I would rather go to Kyoto"}],
    endings=["success"] * 3,
)
class Demo(Planner, Recorded[Trip]):
    """The demo agent, three times on one thread."""

    def __init__(self) -> None:
        Recorded.__init__(self)
        Planner.__init__(self, pace=0.001)

    @staticmethod
    def check(results: Results, client: str) -> None:
        assert [len(run["state"]["days"]) for run in results] == [1, 2, 1]
        assert [run["state"]["city"] for run in results] == ["Lisbon", "Lisbon", "Kyoto"]
        assert "STATE_DELTA" in results[0]["events"]
        assert "STATE_SNAPSHOT" in results[0]["events"]


OLD_TRIP = {
    "city": "Kyoto",
    "status": "ready",
    "days": [{"title": "Day 1", "stops": [{"hour": 7, "place": "Fushimi Inari", "why": "gates", "booked": True}]}],
}


@scenario(
    runs=[{"say": "One more day, please"}, {"say": "And another"}],
    thread={"state": OLD_TRIP, "messages": [{"id": "a1", "role": "assistant", "content": "Day 1 in Kyoto."}]},
    endings=["success"] * 2,
)
class DemoOnAnOldThread(Demo):
    """The demo agent on a thread that has state and messages already."""

    @staticmethod
    def check(results: Results, client: str) -> None:
        assert [day["title"] for day in results[1]["state"]["days"]] == ["Day 1", "Day 2", "Day 3"]
        assert results[1]["state"]["days"][0] == OLD_TRIP["days"][0]


class Order(State):
    customer: str
    lines: list[dict[str, int]] = []
    total_count: int = Field(default=0, alias="totalCount")
    note: str | None = None


@scenario(runs=[{"say": "a"}, {"say": "b"}], endings=["success"] * 2)
class TypedWithRequiredField(Recorded[Order]):
    """A state with a required field, on the first run of a client, which sends `{}`."""

    async def run(self, run: Run[Order]) -> None:
        order = run.state
        order.lines.append({"count": 2})
        order.total_count += 2
        await run.say(order.customer)
        order.note = None if order.note else "checked"

    def initial_state(self) -> Order:
        return Order(customer="Ada")

    @staticmethod
    def check(results: Results, client: str) -> None:
        assert results[0]["state"] == {"customer": "Ada", "lines": [{"count": 2}], "totalCount": 2, "note": "checked"}
        assert results[1]["state"] == {
            "customer": "Ada",
            "lines": [{"count": 2}, {"count": 2}],
            "totalCount": 4,
            "note": None,
        }


@scenario(runs=[{"say": "a"}, {"say": "b"}], endings=["success"] * 2)
class ListAtTheRoot(Recorded[list[int]]):
    """A list as the whole state; the client sends `{}` first."""

    async def run(self, run: Run[list[int]]) -> None:
        run.state += [len(run.state), 7]
        await run.say("a")
        run.state.insert(0, 3)

    @staticmethod
    def check(results: Results, client: str) -> None:
        assert [run["state"] for run in results] == [[3, 0, 7], [3, 3, 0, 7, 3, 7]]


@scenario(same_state=("1.0.0",))
class FalsyRoots(Recorded[Any]):
    """Roots that JavaScript takes for false: a client of the 0.0.x line ignores them, which the framework warns of."""

    async def run(self, run: Run[Any]) -> None:
        for value in (0, "", False, None):
            run.state = value
            await run.custom("com.example.root", value)

    @staticmethod
    def check(results: Results, client: str) -> None:
        if client == "1.0.0":
            assert results[0]["state"] is None


@scenario(thread={"state": {"list": [1, 2, 3, 4, 5], "dict": {"a": 1, "b": 2}, "same": 1}})
class EveryKindOfEdit(Recorded):
    """What Python can do to a dict and a list, one event after each."""

    async def run(self, run: Run) -> None:
        state = run.state
        numbers = state["list"]
        for number, edit in enumerate(
            (
                lambda: numbers.insert(0, 0),
                lambda: numbers.pop(),
                lambda: numbers.reverse(),
                lambda: numbers.sort(),
                lambda: numbers.__setitem__(slice(1, 3), ["a", None, {"deep": []}]),
                lambda: numbers.__delitem__(slice(None, None, 2)),
                lambda: numbers.extend([[], {}, ""]),
                lambda: state.__setitem__("dict", {"a": 1.0, "b": True}),
                lambda: state["dict"].update(c=None, d=-0.5, e=10**15),
                lambda: state["dict"].pop("a"),
                lambda: state.__ior__({"x": {"y": {"z": [1, [2, [3]]]}}}),
                lambda: state["x"]["y"]["z"][1][1].append("leaf"),
                lambda: state.__setitem__("moved", state.pop("x")),
                lambda: state.setdefault("same", 2),
                lambda: numbers.clear(),
                lambda: state.__setitem__("list", []),
                lambda: state.popitem(),
            )
        ):
            edit()
            await run.custom("com.example.edit", number)
        run.state = {"whole": "new", "list": [1]}
        await run.custom("com.example.edit", "root")
        run.state.clear()
        await run.custom("com.example.edit", "clear")
        run.state["end"] = None

    @staticmethod
    def check(results: Results, client: str) -> None:
        assert results[0]["state"] == {"end": None}
        assert results[0]["events"].count("STATE_DELTA") >= 15


KEYS = ["a/b", "m~n", "~1", "", " ", "%41", "é", "e\u0301", "🎉", "0", "-", "10", "length", "toString", "a.b", "\u2028"]


@scenario()
class StrangeKeysAndTexts(Recorded):
    """Keys that a JSON pointer must escape, characters beyond the basic plane, half a surrogate pair."""

    async def run(self, run: Run) -> None:
        run.state["at"] = dict.fromkeys(KEYS, 0)
        await run.flush()
        for number, key in enumerate(KEYS):
            run.state["at"][key] = number
            run.state["at"][key * 2] = [key]
            await run.custom("com.example.key", key)
        run.state["half"] = "\ud83d"
        await run.say("a half: \ude00, and \x00 \u2029 \x7f 👩‍🚀")
        run.state["half"] += "\ude00"
        for key in KEYS[::2]:
            del run.state["at"][key]

    @staticmethod
    def check(results: Results, client: str) -> None:
        assert results[0]["state"]["at"]["m~n"] == 1
        assert contents(results[0], "assistant") == ["a half: \ude00, and \x00 \u2029 \x7f 👩‍🚀"]


@scenario()
class KeysThatClientsRefuse(Recorded):
    """Paths that the client's patch library refuses go out in a snapshot."""

    async def run(self, run: Run) -> None:
        run.state["a"] = {}
        await run.flush()
        run.state["a"]["__proto__"] = {"x": 1}
        await run.flush()
        run.state["a"]["__proto__"]["x"] = 2
        await run.flush()
        run.state["a"]["constructor"] = {"prototype": 1}
        await run.flush()
        run.state["a"]["constructor"]["prototype"] = 2

    @staticmethod
    def check(results: Results, client: str) -> None:
        assert results[0]["state"]["a"]["constructor"] == {"prototype": 2}


@scenario()
class GrowingState(Recorded):
    """A state of many records: deltas for small edits, a snapshot where it is shorter."""

    async def run(self, run: Run) -> None:
        run.state["rows"] = [{"id": number, "name": f"row {number}", "done": False} for number in range(300)]
        await run.flush()
        for number in range(0, 300, 10):
            run.state["rows"][number]["done"] = True
            await run.flush()
        for row in run.state["rows"]:
            row["name"] = row["name"].upper()
        await run.flush()
        run.state["rows"].sort(key=lambda row: -row["id"])

    @staticmethod
    def check(results: Results, client: str) -> None:
        assert results[0]["events"].count("STATE_DELTA") >= 30
        assert results[0]["events"].count("STATE_SNAPSHOT") <= 3


@scenario(options={"state_interval": 0})
class ManyTasks(Recorded):
    """Tasks and a worker thread change the state while text streams."""

    async def run(self, run: Run) -> None:
        run.state.update(counts={str(number): 0 for number in range(5)}, log=[])

        async def count(name: str) -> None:
            for _ in range(10):
                run.state["counts"][name] += 1
                run.state["log"].append(name)
                await asyncio.sleep(0.001)

        def in_thread() -> None:
            for number in range(50):
                run.state["log"].append({"thread": number})

        async with run.text() as text, asyncio.TaskGroup() as group:
            for number in range(5):
                group.create_task(count(str(number)))
            group.create_task(asyncio.to_thread(in_thread))
            for word in range(30):
                await text.write(f"{word} ")
                await asyncio.sleep(0.0005)

    @staticmethod
    def check(results: Results, client: str) -> None:
        assert set(results[0]["state"]["counts"].values()) == {10}
        assert len(results[0]["state"]["log"]) == 100


@scenario()
class Batches(Recorded):
    """A batch is one event, or none if it fails."""

    async def run(self, run: Run) -> None:
        run.state["n"] = 0
        await run.flush()
        with run.batch():
            for number in range(10):
                run.state["n"] = number
                run.state[f"k{number}"] = number
                await run.custom("com.example.inside", number)
        try:
            with run.batch():
                run.state.clear()
                raise ValueError("undone")
        except ValueError:
            run.state["undone"] = True

    @staticmethod
    def check(results: Results, client: str) -> None:
        assert results[0]["state"] == {"n": 9, **{f"k{number}": number for number in range(10)}, "undone": True}
        events = results[0]["events"]
        assert "STATE_DELTA" not in events[events.index("CUSTOM") : events.index("CUSTOM") + 10]
