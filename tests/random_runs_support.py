"""Programs of random actions, as data that hypothesis draws and shrinks, and what plays them as an agent.

An action is a tuple: the name of a method of `Player`, and its arguments. Actions nest.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from ag_ui.core import ActivityMessage, AssistantMessage, ReasoningMessage, TextPart, ToolMessage, UserMessage
from hypothesis import strategies as st

from statecast import Agent, AgentError, Ending, Question, Run, SequenceError, StateError
from statecast.author import Author
from statecast.state import MISSING

Action = tuple[Any, ...]
Program = list[Action]


class Bug(Exception):
    """What an author did not expect."""


@dataclass
class Note:
    """A value whose changes Python does not show."""

    text: Any = ""


# What is drawn. Few names, so that they meet.

KEYS = st.sampled_from(["a", "list", "x/y", "~", ""])
LEAVES = st.sampled_from([None, True, 0, 1, 1.0, "", "text", "é🎉"])
VALUES = st.recursive(
    LEAVES, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=3), max_leaves=6
)
NUMBERS = st.sampled_from([0, 0, 0, 1, 1, 2, 3, 5, 7])
TEXTS = st.sampled_from(["", "word ", "é🎉", "two words "])
ROLES = st.sampled_from(["assistant", "assistant", "user", "developer"])
MESSAGE_IDS = st.sampled_from([None, None, None, "m1", "m2", "u1", "call1", "unknown"])
CALL_IDS = st.sampled_from([None, None, "call1", "call2"])
SUBAGENT_IDS = st.sampled_from([None, None, "sub1", "sub2"])
METADATA = st.none() | st.dictionaries(KEYS, LEAVES, max_size=2)
QUESTION_IDS = ["q1", "q2", "q3"]


def emitted(*templates: dict[str, Any]) -> st.SearchStrategy[dict[str, Any]]:
    """One of these events, perhaps tagged with a subagent."""
    tags = st.sampled_from([{}, {}, {"subagentRunId": "sub1"}])
    return st.builds(lambda event, tag: event | tag, st.sampled_from(templates), tags)


EMITTED = emitted(
    {"type": "TEXT_MESSAGE_START", "messageId": "m1", "role": "assistant"},
    {"type": "TEXT_MESSAGE_CONTENT", "messageId": "m1", "delta": "emitted"},
    {"type": "TEXT_MESSAGE_END", "messageId": "m1"},
    {"type": "TEXT_MESSAGE_CHUNK", "messageId": "m1", "delta": "chunk"},
    {"type": "TEXT_MESSAGE_CHUNK", "messageId": "m2", "role": "user", "delta": "chunk"},
    {"type": "TEXT_MESSAGE_CHUNK", "delta": "more"},
    {"type": "TOOL_CALL_START", "toolCallId": "call1", "toolCallName": "tool", "parentMessageId": "m1"},
    {"type": "TOOL_CALL_END", "toolCallId": "call1"},
    {"type": "TOOL_CALL_CHUNK", "toolCallId": "call2", "toolCallName": "tool", "delta": "{}"},
    {"type": "TOOL_CALL_CHUNK", "delta": "{}"},
    {"type": "TOOL_CALL_RESULT", "messageId": "r1", "toolCallId": "call1", "content": "result", "role": "tool"},
    {"type": "REASONING_START", "messageId": "span"},
    {"type": "REASONING_END", "messageId": "span"},
    {"type": "REASONING_MESSAGE_START", "messageId": "thought", "role": "reasoning"},
    {"type": "REASONING_MESSAGE_CHUNK", "messageId": "thought", "delta": "hm"},
    {"type": "REASONING_MESSAGE_END", "messageId": "thought"},
    {"type": "REASONING_ENCRYPTED_VALUE", "subtype": "message", "entityId": "thought", "encryptedValue": "="},
    {"type": "REASONING_ENCRYPTED_VALUE", "subtype": "tool-call", "entityId": "call1", "encryptedValue": "="},
    {"type": "STEP_STARTED", "stepName": "one"},
    {"type": "STEP_FINISHED", "stepName": "one"},
    {"type": "SUBAGENT_STARTED", "subagentRunId": "sub2", "name": "emitted"},
    {"type": "SUBAGENT_FINISHED", "subagentRunId": "sub2"},
    {"type": "SUBAGENT_ERROR", "subagentRunId": "sub2", "message": "no"},
    {"type": "ACTIVITY_SNAPSHOT", "messageId": "act1", "activityType": "plan", "content": {"n": 1}},
    {"type": "ACTIVITY_SNAPSHOT", "messageId": "act1", "activityType": "map", "content": {}, "replace": False},
    {
        "type": "ACTIVITY_DELTA",
        "messageId": "act1",
        "activityType": "plan",
        "patch": [{"op": "add", "path": "/n", "value": 2}],
    },
    {"type": "STATE_SNAPSHOT", "snapshot": {"emitted": [1]}},
    {"type": "STATE_DELTA", "delta": [{"op": "add", "path": "/a", "value": {"b": 1}}]},
    {"type": "STATE_DELTA", "delta": [{"op": "move", "from": "/a", "path": "/list"}]},
    {"type": "STATE_DELTA", "delta": [{"op": "add", "path": "/n", "value": 1}, {"op": "remove", "path": "/gone"}]},
    {"type": "MESSAGES_SNAPSHOT", "messages": [{"id": "u1", "role": "user", "content": "emitted"}]},
    {"type": "CUSTOM", "name": "com.example.x", "value": None},
    {"type": "RUN_FINISHED", "threadId": "t", "runId": "r"},
    {"type": "RUN_ERROR", "message": "no"},
)

EDITS = st.tuples(NUMBERS, NUMBERS, st.integers(0, 11), KEYS, VALUES)

LEAF_ACTIONS: st.SearchStrategy[Action] = st.one_of(
    st.tuples(st.just("say"), TEXTS, ROLES, MESSAGE_IDS, METADATA),
    st.tuples(st.just("edit"), EDITS),
    st.tuples(st.just("edit"), EDITS),
    st.tuples(st.just("edit_activity"), NUMBERS, EDITS),
    st.tuples(st.just("edit_activity"), st.just(0), EDITS),
    st.tuples(st.just("edit_in_thread"), EDITS),
    st.tuples(st.just("replace_state"), st.dictionaries(KEYS, VALUES, max_size=3)),
    st.tuples(st.just("hide"), VALUES),
    st.tuples(st.just("append_message"), st.sampled_from(["user", "assistant", "tool"]), MESSAGE_IDS),
    st.tuples(st.just("replace_message"), NUMBERS),
    st.tuples(st.just("remove_message"), NUMBERS),
    st.tuples(st.just("disorder_messages"), NUMBERS),
    st.tuples(st.just("restate")),
    st.tuples(st.just("start_activity"), st.sampled_from([None, "act1", "m1"]), METADATA),
    st.tuples(st.just("custom"), VALUES),
    st.tuples(st.just("raw"), VALUES),
    st.tuples(st.just("emit"), EMITTED),
    st.tuples(st.just("emit"), EMITTED),
    st.tuples(st.just("call_frontend"), CALL_IDS),
    st.tuples(st.just("flush")),
    st.tuples(st.just("resync")),
    st.tuples(st.just("turn")),
    st.tuples(st.just("edited_activity"), EDITS),
    st.tuples(st.just("wait")),
    st.tuples(st.just("ask"), st.lists(st.sampled_from(QUESTION_IDS), min_size=1, max_size=2)),
    st.tuples(st.just("fail"), st.sampled_from(["bug", "agent error", "sequence error", "cancelled"])),
    st.tuples(st.just("leave_open"), st.sampled_from(["text", "tool_call", "reasoning", "step", "subagent"])),
)


def nesting(inner: st.SearchStrategy[Action]) -> st.SearchStrategy[Action]:
    blocks = st.lists(inner, max_size=4)
    return st.one_of(
        st.tuples(st.just("text"), MESSAGE_IDS, ROLES, st.lists(TEXTS, max_size=3), blocks),
        st.tuples(st.just("reasoning"), MESSAGE_IDS, TEXTS, st.booleans(), blocks),
        st.tuples(st.just("tool_call"), CALL_IDS, MESSAGE_IDS, st.booleans(), VALUES, st.integers(0, 4), blocks),
        st.tuples(st.just("step"), st.sampled_from(["one", "two"]), blocks),
        st.tuples(st.just("subagent"), SUBAGENT_IDS, blocks),
        st.tuples(st.just("parallel"), st.lists(st.tuples(SUBAGENT_IDS, blocks), min_size=1, max_size=3)),
        st.tuples(st.just("gathered"), st.lists(blocks, min_size=1, max_size=2)),
        st.tuples(st.just("cancelled_task"), NUMBERS, blocks),
        st.tuples(st.just("batch"), st.booleans(), blocks),
        st.tuples(st.just("caught"), blocks),
        st.tuples(st.just("cleaned_up"), blocks, blocks),
    )


ACTIONS = st.recursive(LEAF_ACTIONS, nesting, max_leaves=14)
PROGRAMS = st.lists(ACTIONS, min_size=1, max_size=8)


class Player:
    """Plays a program in a run."""

    def __init__(self, run: Run, *, patient: bool) -> None:
        self.run = run
        self.patient = patient
        self.activities: list[Any] = []
        self.notes: list[Note] = []

    async def play(self, author: Author, program: Program) -> None:
        for name, *arguments in program:
            with suppress(SequenceError, StateError):  # as a careful author would
                await getattr(self, name)(author, *arguments)

    # State

    async def edit(self, author: Author, edit: Action) -> None:
        change(self.run.state, *edit)

    async def edit_in_thread(self, author: Author, edit: Action) -> None:
        await asyncio.to_thread(change, self.run.state, *edit)

    async def edit_activity(self, author: Author, which: int, edit: Action) -> None:
        if self.activities:
            change(self.activities[-1 - which % len(self.activities)].content, *edit)

    async def edited_activity(self, author: Author, edit: Action) -> None:
        """The message of an activity is edited before its content is."""
        await self.start_activity(author, None, None)
        await self.run.flush()
        await self.replace_message(author, 0)
        await self.edit_activity(author, 0, edit)

    async def replace_state(self, author: Author, value: dict[str, Any]) -> None:
        self.run.state = value

    async def hide(self, author: Author, value: Any) -> None:
        """Puts an object in the state, or changes one that may be there, which only a compare can tell."""
        if len(self.notes) < 2:
            note = Note(value)
            self.notes.append(note)
            self.run.state["note"] = note
        else:
            self.notes[0].text = self.notes[1].text = value

    async def flush(self, author: Author) -> None:
        await self.run.flush()

    async def resync(self, author: Author) -> None:
        self.run.resync()

    async def batch(self, author: Author, fails: bool, block: Program) -> None:
        try:
            async with self.run.batch():
                await self.play(author, block)
                if fails:
                    raise Bug
        except Bug:
            pass

    # Messages

    async def append_message(self, author: Author, role: str, id: str | None) -> None:
        id = id or f"added{len(self.run.messages)}"
        messages = {
            "user": UserMessage(id=id, content="said elsewhere"),
            "assistant": AssistantMessage(id=id, content="answered elsewhere"),
            "tool": ToolMessage(id=id, content="found elsewhere", tool_call_id="call1"),
        }
        self.run.messages.append(messages[role])

    async def replace_message(self, author: Author, which: int) -> None:
        messages = self.run.messages
        if messages:
            at = -1 - which % len(messages)
            change = {"content": {"replaced": 1} if messages[at].role == "activity" else "replaced"}
            messages[at] = messages[at].model_copy(update=change)

    async def remove_message(self, author: Author, which: int) -> None:
        messages = self.run.messages
        if messages:
            del messages[-1 - which % len(messages)]

    async def disorder_messages(self, author: Author, which: int) -> None:
        messages = self.run.messages
        if which % 2:
            messages[:] = list(messages)[::-1]
        else:
            messages.insert(0, UserMessage(id=f"first{len(messages)}", content="first"))

    async def restate(self, author: Author) -> None:
        self.run.messages.restate()

    # What is said

    async def say(self, author: Author, text: str, role: Any, id: str | None, metadata: Any) -> None:
        await author.say(text, role=role, id=id, metadata=metadata)

    async def text(self, author: Author, id: str | None, role: Any, texts: list[str], block: Program) -> None:
        async with author.text(id=id, role=role) as text:
            for one in texts:
                await text.write(one)
            await self.play(author, block)
            for one in texts:
                await text.write(one)

    async def reasoning(self, author: Author, id: str | None, text: str, encrypted: bool, block: Program) -> None:
        async with author.reasoning(id=id) as thought:
            await thought.write(text)
            await self.play(author, block)
            if encrypted:
                await thought.encrypted("opaque")
            await thought.write(text)

    async def tool_call(
        self, author: Author, id: str | None, parent: str | None, whole: bool, value: Any, how: int, block: Program
    ) -> None:
        async with author.tool_call("tool", value if whole else None, id=id, parent=parent) as call:
            if not whole:
                await call.write("{")
            await self.play(author, block)
            if not whole:
                await call.write("}")
            if how == 1:
                await call.result("text")
            elif how == 2:
                await call.result(value, error="it failed")
            elif how == 3:
                await call.result([TextPart(text="part")], metadata={"k": None})

    async def call_frontend(self, author: Author, id: str | None) -> None:
        await author.call_frontend("confirm", {"q": 1}, id=id)

    async def step(self, author: Author, name: str, block: Program) -> None:
        async with author.step(name):
            await self.play(author, block)

    async def start_activity(self, author: Author, id: str | None, metadata: Any) -> None:
        activity = author.activity("plan", {"list": [], "map": {}}, id=id, metadata=metadata)
        self.activities.append(activity)

    async def custom(self, author: Author, value: Any) -> None:
        await author.custom("com.example.any", value)

    async def raw(self, author: Author, value: Any) -> None:
        await author.raw(value, "elsewhere")

    async def emit(self, author: Author, event: dict[str, Any]) -> None:
        await author.emit(event)

    # Delegates and tasks

    async def subagent(self, author: Author, id: str | None, block: Program) -> None:
        async with author.subagent("delegate", id=id, description="d") as sub:
            sub.result = {"n": len(block)}
            await self.play(sub, block)

    async def parallel(self, author: Author, lanes: list[tuple[str | None, Program]]) -> None:
        async with asyncio.TaskGroup() as group:
            for id, block in lanes:
                group.create_task(self.subagent(author, id, block))

    async def gathered(self, author: Author, blocks: list[Program]) -> None:
        """Swallows whatever they raise, a question too."""
        await asyncio.gather(*(self.play(author, block) for block in blocks), return_exceptions=True)

    async def cancelled_task(self, author: Author, turns: int, block: Program) -> None:
        task = asyncio.create_task(self.subagent(author, None, block))
        try:
            for _ in range(turns):
                await asyncio.sleep(0)
        finally:
            task.cancel()
            await asyncio.wait({task})

    async def leave_open(self, author: Author, kind: str) -> None:
        """Opens something without a block, which the end of the run must close."""
        made = getattr(author, kind)() if kind in ("text", "reasoning") else getattr(author, kind)("left open")
        await made.__aenter__()

    # Time and trouble

    async def turn(self, author: Author) -> None:
        await asyncio.sleep(0)

    async def wait(self, author: Author) -> None:
        await asyncio.sleep(30 if self.patient else 0.001)

    async def ask(self, author: Author, ids: list[str]) -> None:
        answers = await author.ask_all([Question("why", id=id, default=None if id == "q3" else MISSING) for id in ids])
        self.run.state["answers"] = answers

    async def fail(self, author: Author, how: str) -> None:
        if how == "sequence error":
            await author.emit({"type": "STEP_FINISHED", "stepName": "never started"})
        raise {
            "bug": Bug("unexpected"),
            "agent error": AgentError("expected", code="expected"),
            "cancelled": asyncio.CancelledError(),
        }[how]

    async def caught(self, author: Author, block: Program) -> None:
        try:
            await self.play(author, block)
        except Exception:
            await author.say("caught")

    async def cleaned_up(self, author: Author, block: Program, cleanup: Program) -> None:
        try:
            await self.play(author, block)
        finally:
            self.patient = False  # a cleanup that takes longer than its grace is left running, which is tried elsewhere
            await asyncio.sleep(0)
            await self.play(author, cleanup)


def change(root: Any, depth: int, at: int, kind: int, key: str, value: Any) -> None:
    """Changes something at or below a container, found by numbers, so that a plan that shrinks stays a plan."""
    place = root
    for level in range(depth):
        below = list(place.values()) if isinstance(place, dict) else list(place)
        inner = [child for child in below if isinstance(child, (dict, list))]
        if not inner:
            break
        place = inner[(at + level) % len(inner)]
    if isinstance(place, dict):
        change_dict(place, kind, key, value)
    else:
        change_list(place, at, kind, value)


def change_dict(place: Any, kind: int, key: str, value: Any) -> None:
    if kind == 0:
        place.pop(key, None)
    elif kind == 1 and place:
        place.popitem()
    elif kind == 2:
        place.update({key: value, "other": value})
    elif kind == 3:
        place.setdefault(key, value)
    elif kind == 4:
        place["alias"] = place.get(key)
    else:
        place[key] = value


def change_list(place: Any, at: int, kind: int, value: Any) -> None:
    at = at % (len(place) + 1)
    steps: dict[int, Callable[[], Any]] = {
        0: place.reverse,
        1: lambda: place.sort(key=repr),
        2: lambda: place.__delitem__(slice(at, at + 2)),
        3: lambda: place.__setitem__(slice(at, at + 1), [value, value]),
        4: lambda: place.insert(0, place.pop()) if place else None,
        5: place.clear,
        6: lambda: place.extend([value, value]),
    }
    steps.get(kind, lambda: place.insert(at, value))()


class Playing(Agent):
    """Plays the program; notes how it ended."""

    def __init__(self, program: Program, *, patient: bool = False) -> None:
        self.program = program
        self.patient = patient
        self.endings: list[Ending] = []
        self.raised: list[BaseException] = []

    async def run(self, run: Run) -> Any:
        try:
            await Player(run, patient=self.patient).play(run, self.program)
        except BaseException as exc:
            self.raised.append(exc)
            raise
        return {"played": len(self.program)}

    async def on_finish(self, run: Run, ending: Ending) -> None:
        self.endings.append(ending)


HISTORY: list[Any] = [
    UserMessage(id="u1", content="hello"),
    ReasoningMessage(id="thought0", content="hm", encrypted_value="="),
    AssistantMessage(id="a1", content="hi"),
    ActivityMessage(id="act0", activity_type="plan", content={"n": 0}),
]
