from typing import Any

import pytest

from kit_agents import Planner
from statecast import Agent, Run
from statecast.testing import RunResult, run_agent_sync
from statecast.watch.story import Line, Story


def told(result: RunResult) -> tuple[Story, list[Line]]:
    story = Story()
    return story, [line for event in result.events for line in story.tell(event)]


def lines(agent: Any, *kinds: str, **arguments: Any) -> list[str]:
    _, found = told(run_agent_sync(agent, **arguments))
    return [line.text for line in found if line.kind in kinds]


def test_a_run_is_told_in_lines():
    _, found = told(run_agent_sync(Planner, "Faro", thread_id="t", run_id="r"))
    assert found == [
        Line("run", "run r of thread t"),
        Line("state", '= {"city": "Faro", "stops": []}'),
        Line("step", "search …"),
        Line("state", 'add /stops/0 "Belem"'),
        Line("state", 'add /stops/1 "Alfama"'),
        Line("step", "search ✓"),
        Line("tool", 'book({"city":"Faro"})'),
        Line("tool", 'book → {"ok":true}'),
        Line("text", "assistant: Here is your plan."),
    ]


def test_what_is_going_on_is_kept_until_it_is_done():
    story = Story()
    speech: list[str] = []
    steps: list[list[str]] = []
    for event in run_agent_sync(Planner).events:
        story.tell(event)
        speech += [one.text for one in story.speaking.values() if one.kind == "text"]
        steps.append(list(story.open_steps))
    assert speech == ["", "Here ", "Here is ", "Here is your plan."]
    assert ["search"] in steps
    assert story.open_steps == []
    assert story.speaking == {}


def test_every_kind_of_event_has_its_line():
    class Everything(Agent):
        async def run(self, run: Run) -> None:
            async with run.reasoning() as thought:
                await thought.write("hm")
            activity = run.activity("plan", {"n": 1})
            await run.flush()
            activity.content["n"] = 2
            async with run.subagent("helper") as sub:
                await sub.say("mine")
            await run.custom("com.example.cart", {"a": 1})
            run.messages.restate()
            await run.say("named", name="Ann")

    found = lines(Everything, "thought", "activity", "subagent", "custom", "run", "text", text="x")
    assert found[1:] == [
        "thinks: hm",
        'plan {"n": 1}',
        "plan changed /n",
        "helper …",
        "helper: assistant: mine",
        "helper ✓",
        'com.example.cart {"a": 1}',
        "the conversation was restated: 2 messages",
        "Ann: named",
    ]


def test_the_changed_places_are_pointers_that_exist():
    class Editor(Agent):
        async def run(self, run: Run) -> None:
            run.state["a"] = {"b": [1, 2], "c": 3}
            await run.flush()
            run.state["a"]["b"].append(3)
            await run.flush()
            del run.state["a"]["c"]

    story, changed = Story(), []
    for event in run_agent_sync(Editor).events:
        story.tell(event)
        if event.type.value.startswith("STATE_"):
            changed.append(story.changed)
    assert changed == [None, ["/a/b/2"], ["/a"]]


@pytest.mark.parametrize("name", ["\x1b[31mred", "two\nlines\x07"])
def test_nothing_that_an_agent_says_reaches_the_terminal_raw(name):
    class Evil(Agent):
        async def run(self, run: Run) -> None:
            run.state[name] = name
            async with run.step(name), run.subagent(name) as sub:
                async with sub.tool_call(name, {"x": name}) as call:
                    await call.result(name)
                await sub.say(name, name=name)
            await run.custom(name, name)
            run.activity(name, {name: name})

    _, found = told(run_agent_sync(Evil, thread_id=name))
    assert len(found) > 8
    assert not any("\x1b" in line.text or "\x07" in line.text for line in found)
