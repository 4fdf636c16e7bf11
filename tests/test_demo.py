from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
from ag_ui.core import AssistantMessage, Message, UserMessage

from live_server import ThreadServer, run_input, serve
from statecast.demo import PLACES, STOPS_A_DAY, Planner, choose_city
from statecast.replica import Replica


@pytest.fixture(scope="module")
def server() -> Iterator[ThreadServer]:
    with serve(Planner(pace=0.001).app()) as live:
        yield live


class Thread:
    """A client that keeps its state and its messages from run to run."""

    def __init__(self, server: ThreadServer) -> None:
        self.server = server
        self.state: Any = {}
        self.messages: list[Message] = []
        self.events: list[dict[str, Any]] = []

    @property
    def answer(self) -> str:
        """The text of the last message."""
        message = self.messages[-1]
        assert isinstance(message, AssistantMessage)
        assert message.content is not None
        return message.content

    def say(self, text: str) -> Any:
        self.messages.append(UserMessage(id=f"user-{len(self.messages)}", content=text))
        sent = [message.model_dump(mode="json", by_alias=True, exclude_none=True) for message in self.messages]
        self.events = self.server.events(run_input(state=self.state, messages=sent))
        replica = Replica(state=self.state, messages=self.messages)
        for event in self.events:
            replica.apply(event)
        replica.close()
        assert replica.outcome == "success"
        assert replica.warnings == []
        self.state = replica.state
        self.messages = list(replica.messages)
        return self.state


def test_a_day_is_planned_in_steps_while_text_streams(server: ThreadServer) -> None:
    thread = Thread(server)
    state = thread.say("Plan a day in Lisbon")
    assert state["city"] == "Lisbon"
    assert state["status"] == "ready"
    hours = [stop["hour"] for stop in state["days"][0]["stops"]]
    assert len(hours) == STOPS_A_DAY
    assert hours == sorted(hours)
    assert all(stop["booked"] for stop in state["days"][0]["stops"])
    types = [event["type"] for event in thread.events]
    assert types.count("STEP_STARTED") == 3
    start, end = types.index("TEXT_MESSAGE_START"), types.index("TEXT_MESSAGE_END")
    assert types[start:end].count("STATE_DELTA") >= STOPS_A_DAY - 1
    assert types[start:end].count("TEXT_MESSAGE_CONTENT") > 20
    assert thread.answer.startswith("Day 1 in Lisbon. At 9:00 Jerónimos cloister: ")
    assert "  " not in thread.answer


def test_the_stream_shows_snapshots_and_deltas(server: ThreadServer) -> None:
    thread = Thread(server)
    state = thread.say("Plan a day in Lisbon")
    assert len(json.dumps(state, ensure_ascii=False)) > 512
    types = [event["type"] for event in thread.events]
    assert "STATE_SNAPSHOT" in types
    assert types.count("STATE_DELTA") >= 5


def test_a_thread_goes_on_where_it_was(server: ThreadServer) -> None:
    thread = Thread(server)
    first = thread.say("Kyoto please")
    second = thread.say("One more day, please")
    assert second["city"] == "Kyoto"
    assert second["days"][0] == first["days"][0]
    assert [day["title"] for day in second["days"]] == ["Day 1", "Day 2"]
    places = [stop["place"] for day in second["days"] for stop in day["stops"]]
    assert len(set(places)) == len(places) == 2 * STOPS_A_DAY
    third = thread.say("And one more")
    assert third["days"] == second["days"]
    assert "seen the best of Kyoto" in thread.answer
    other = thread.say("I would rather go to oaxaca")
    assert other["city"] == "Oaxaca"
    assert len(other["days"]) == 1


def test_a_state_that_a_client_made_up_is_replaced(server: ThreadServer) -> None:
    thread = Thread(server)
    thread.state = {"city": "Atlantis", "days": [{"title": "Day 7", "stops": []}]}
    state = thread.say("go on")
    assert state["city"] == "Lisbon"
    assert [day["title"] for day in state["days"]] == ["Day 1"]


def test_the_city_is_the_one_that_is_named_or_was() -> None:
    assert choose_city("a day in kyoto", "Lisbon") == "Kyoto"
    assert choose_city("one more", "Oaxaca") == "Oaxaca"
    assert choose_city("", "") == next(iter(PLACES))


@pytest.mark.parametrize("city", PLACES)
def test_every_city_has_places_for_whole_days_and_their_hours_differ(city: str) -> None:
    assert len(PLACES[city]) % STOPS_A_DAY == 0
    for day in range(0, len(PLACES[city]), STOPS_A_DAY):
        assert len({hour for hour, _, _ in PLACES[city][day : day + STOPS_A_DAY]}) == STOPS_A_DAY
