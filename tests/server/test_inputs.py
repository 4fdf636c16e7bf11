"""From a request's JSON to the state that a run starts with."""

from __future__ import annotations

import asyncio
import json
import threading
from typing import Annotated, Any

import pytest
from pydantic import BaseModel, computed_field
from starlette.applications import Starlette

from live_server import run_input, serve
from statecast import Agent, ReadOnly, Run, State
from statecast.server.endpoint import IN_THREAD
from statecast.server.inputs import Prepared, prepare
from statecast.server.problem import Problem
from statecast.state import Delta, Snapshot


class Trip(State):
    city: str
    days: int = 1


class Typed(Agent[Trip]):
    async def run(self, run: Run[Trip]) -> None: ...

    def initial_state(self) -> Trip:
        return Trip(city="Lisbon")


class Untyped(Agent): ...


class Listed(Agent[list[int]]): ...


class Nullable(Agent[int | None]): ...


class Anything(Agent[Any]): ...


def start(agent: Agent[Any], *state: Any, debug: bool = False) -> Prepared:
    return prepare(agent, run_input(**({"state": state[0]} if state else {})), debug=debug)


def plain(value: Any) -> Any:
    return value.model_dump(by_alias=True) if isinstance(value, State) else json.loads(json.dumps(value))


def pointers(agent: Agent[Any], state: Any, *, debug: bool = False) -> dict[str, str]:
    with pytest.raises(Problem) as refused:
        start(agent, state, debug=debug)
    assert refused.value.status == 422
    assert refused.value.errors is not None
    return {error["pointer"]: error["message"] for error in refused.value.errors}


# An input that carries no state


@pytest.mark.parametrize(
    ("agent", "state", "value", "baseline"),
    [
        (Typed(), (), {"city": "Lisbon", "days": 1}, {}),
        (Typed(), ({},), {"city": "Lisbon", "days": 1}, {}),
        (Typed(), (None,), {"city": "Lisbon", "days": 1}, None),
        (Untyped(), (), {}, {}),
        (Untyped(), (None,), {}, None),
        (Listed(), (), [], {}),
        (Listed(), ({},), [], {}),
        (Listed(), (None,), [], None),
        (Listed(), ([],), [], []),
        (Nullable(), (), None, {}),
        (Nullable(), ({},), None, {}),
        (Nullable(), (None,), None, None),
        (Nullable(), (5,), 5, 5),
        (Anything(), (None,), None, None),
        (Anything(), (0,), 0, 0),
        (Anything(), (False,), False, False),
        (Anything(), ("",), "", ""),
        (Anything(), ([],), [], []),
        (Typed(), ({"city": "Porto"},), {"city": "Porto", "days": 1}, {"city": "Porto"}),
    ],
    ids=str,
)
def test_the_value_and_what_the_client_holds(agent: Agent[Any], state: Any, value: Any, baseline: Any) -> None:
    document = start(agent, *state).document
    assert plain(document.value) == value
    taken = document.take()
    if json.dumps(value) == json.dumps(baseline):
        assert taken is None
    else:
        assert isinstance(taken, (Delta, Snapshot))
        if isinstance(taken, Snapshot):
            assert taken.value == value
        else:
            # Only a client that holds exactly what arrived can take it.
            assert isinstance(baseline, dict)
            assert {op["path"] for op in taken.ops} == {f"/{key}" for key in value if key not in baseline}


def test_an_initial_state_that_runs_share_is_copied() -> None:
    class Sharing(Agent):
        shared: dict[str, Any] = {"list": []}

        def initial_state(self) -> dict[str, Any]:
            return self.shared

    one, two = start(Sharing()).document.value, start(Sharing()).document.value
    one["list"].append(1)
    assert two["list"] == []
    assert Sharing.shared == {"list": []}


def test_a_typed_initial_state_that_runs_share_is_copied_too() -> None:
    class Sharing(Agent[Trip]):
        shared = Trip(city="Lisbon")

        def initial_state(self) -> Trip:
            return self.shared

    one, two = start(Sharing()).document, start(Sharing()).document
    one.value.city = "Porto"
    assert two.value.city == Sharing.shared.city == "Lisbon"


def test_an_initial_state_that_is_none_is_the_authors_fault() -> None:
    class Wrong(Agent):
        async def run(self, run: Run[Any]) -> None: ...

        def initial_state(self) -> dict[str, Any]:
            return {"a": float("nan")}

    with pytest.raises(ValueError, match="/a"):
        start(Wrong())
    with serve(Wrong().app(), log_level="critical") as server:
        assert server.post().problem()["status"] == 500


# load_state


class Migrating(Typed):
    def load_state(self, data: Any) -> Any:
        if "town" in data:
            data["city"] = data.pop("town")
        if data.get("broken"):
            raise ValueError("hunter2 is broken")
        return data if data.get("keep", True) else {}


def test_an_old_state_is_migrated_and_the_client_is_told() -> None:
    prepared = start(Migrating(), {"town": "Porto", "days": 2})
    assert prepared.document.value == Trip(city="Porto", days=2)
    taken = prepared.document.take()
    # The baseline is what arrived, however load_state treated what it was given.
    assert isinstance(taken, Delta)
    assert {(op["op"], op["path"]) for op in taken.ops} == {("remove", "/town"), ("add", "/city")}
    assert prepared.input.state == {"town": "Porto", "days": 2}


def test_a_state_that_is_dropped_gives_the_initial_one() -> None:
    document = start(Migrating(), {"keep": False}).document
    assert document.value == Trip(city="Lisbon")
    assert document.take() is not None


def test_an_exception_of_load_state_is_422_and_its_text_is_not_told() -> None:
    assert pointers(Migrating(), {"broken": True}) == {"/state": "this state cannot be loaded"}
    assert "hunter2" in pointers(Migrating(), {"broken": True}, debug=True)["/state"]


def test_what_load_state_returns_is_validated() -> None:
    assert set(pointers(Migrating(), {"town": 5})) == {"/state/city"}
    with serve(Migrating().app()) as server:
        assert server.post(run_input(state={"broken": True})).problem()["status"] == 422
        assert server.events(run_input(state={"town": "Porto"}))[-1]["type"] == "RUN_FINISHED"


# What the server owns


class Account(State):
    name: str = ""
    credit: Annotated[int, ReadOnly] = 0


class Bank(Agent[Account]):
    def initial_state(self) -> Account:
        return Account(name="new", credit=10)


class LoadingBank(Bank):
    def load_state(self, data: Any) -> Any:
        assert "credit" not in data
        return {**data, "credit": 77}


def test_what_a_client_says_of_the_servers_own_is_ignored() -> None:
    assert start(Bank(), {"name": "ann", "credit": 1_000_000}).document.value == Account(name="ann", credit=10)
    assert start(LoadingBank(), {"name": "ann", "credit": 1_000_000}).document.value == Account(name="ann", credit=77)
    taken = start(Bank(), {"name": "ann", "credit": 1_000_000}).document.take()
    assert isinstance(taken, Delta)
    assert taken.ops == [{"op": "replace", "path": "/credit", "value": 10}]


# What is not valid


class Share(BaseModel):
    parts: int = 1

    @computed_field
    def each(self) -> float:
        if not self.parts:
            raise ZeroDivisionError("of the server alone")
        return 1 / self.parts


@pytest.mark.parametrize(
    ("kind", "state", "pointer"),
    [
        (list[Share], [{"parts": 0}], "/state/0"),
        (dict[str, Share], {"a/b": {"parts": 0}}, "/state/a~1b"),
        (Share, {"parts": 0}, "/state"),
    ],
)
def test_what_the_authors_code_says_of_a_state_that_it_cannot_write_is_not_told(
    kind: Any, state: Any, pointer: str
) -> None:
    class Shares(Agent[kind]): ...  # type: ignore[valid-type]

    assert pointers(Shares(), state) == {pointer: "This cannot be written as JSON"}
    assert "of the server alone" in pointers(Shares(), state, debug=True)[pointer]


def test_pointers_are_places_in_the_body() -> None:
    class Person(State):
        name: str

    class Group(State):
        people: list[Person | None] = []
        by_name: dict[str, Person | list[int]] = {}

    class Grouped(Agent[Group]): ...

    found = pointers(Grouped(), {"people": [{"name": "a"}, {"name": 1}], "by_name": {"a/b~c": {"name": []}}})
    assert set(found) == {"/state/people/1/name", "/state/by_name/a~1b~0c/name"} or all(
        pointer.startswith(("/state/people/1", "/state/by_name/a~1b~0c")) for pointer in found
    )
    assert not any("Person" in pointer or "list[" in pointer for pointer in found)


def test_a_state_too_deep_for_a_state_is_422() -> None:
    deep: Any = 0
    for _ in range(150):
        deep = [deep]
    found = pointers(Untyped(), {"deep": deep})
    assert len(found) == 1
    assert next(iter(found)).startswith("/state/deep/0/0")


# Large bodies


def test_a_large_body_is_read_in_a_thread_and_a_small_one_is_not() -> None:
    class Where(Agent):
        threads: list[int] = []

        def load_state(self, data: Any) -> Any:
            self.threads.append(threading.get_ident())
            return data

        async def run(self, run: Run) -> int:
            return threading.get_ident()

    with serve(Starlette(routes=Where().routes("/"))) as server:
        for size, elsewhere in ((100, False), (IN_THREAD + 100, True)):
            loop_thread = server.events(run_input(state={"text": "x" * size}))[-1]["result"]
            assert (Where.threads[-1] != loop_thread) is elsewhere


def test_a_refusal_in_a_thread_is_a_refusal() -> None:
    with serve(Typed().app()) as server:
        problem = server.post(run_input(state={"city": ["x" * IN_THREAD]})).problem()
        assert [error["pointer"] for error in problem["errors"]] == ["/state/city"]


def test_without_http_the_agents_lifespan_is_open_when_its_state_is_made() -> None:
    from collections.abc import AsyncIterator
    from contextlib import asynccontextmanager

    class Pooled(Agent):
        pool: dict[str, int] | None = None

        @asynccontextmanager
        async def lifespan(self) -> AsyncIterator[None]:
            self.pool = {"size": 3}
            yield

        def initial_state(self) -> dict[str, Any]:
            assert self.pool is not None
            return dict(self.pool)

        async def run(self, run: Run) -> Any:
            return run.state["size"]

    async def main() -> Any:
        from ag_ui.core import RunAgentInput

        given = RunAgentInput.model_validate(run_input())
        return [event async for event in Pooled().stream(given)]

    assert asyncio.run(main())[-1].result == 3


def test_a_problem_may_name_half_a_surrogate_pair() -> None:
    response = Problem(422, errors=[{"pointer": "/\ud83d", "message": "wrong", "type": "value_error"}]).response()
    assert json.loads(bytes(response.body))["errors"][0]["pointer"] == "/\ud83d"
