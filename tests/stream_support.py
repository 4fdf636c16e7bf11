"""Random streams of events that keep every rule of the protocol, and random ways to break one rule of them.

The writer keeps books of its own, and shares no code with what is tested.
"""

from __future__ import annotations

from collections.abc import Callable
from copy import deepcopy
from random import Random
from typing import Any

EventDict = dict[str, Any]

THREAD = "thread"
FRONTEND = "confirm"
WORDS = ["Lisbon", "é", "日本", "🧭", "", " ", '"', "\\", "\n", "a/b", "~"]
VALUES: list[Any] = [0, -1, 7, 0.5, True, False, None, "x", "", [], {}, [1, [2]], {"k": None}]
ENDS_NOTHING = {"RAW", "ACTIVITY_SNAPSHOT", "ACTIVITY_DELTA", "REASONING_ENCRYPTED_VALUE", "SUBAGENT_STARTED"}
KINDS = {
    "text": ("messageId", "TEXT_MESSAGE_START", "TEXT_MESSAGE_CONTENT", "TEXT_MESSAGE_END", "TEXT_MESSAGE_CHUNK"),
    "call": ("toolCallId", "TOOL_CALL_START", "TOOL_CALL_ARGS", "TOOL_CALL_END", "TOOL_CALL_CHUNK"),
    "thought": (
        "messageId",
        "REASONING_MESSAGE_START",
        "REASONING_MESSAGE_CONTENT",
        "REASONING_MESSAGE_END",
        "REASONING_MESSAGE_CHUNK",
    ),
    "span": ("messageId", "REASONING_START", "", "REASONING_END", ""),
}


class Writer:
    """Writes one legal stream.

    Args:
        chunks: write some items as chunk events.
        attributed: let subagents, announced and not, take part.
    """

    def __init__(self, random: Random, *, chunks: bool = True, attributed: bool = True) -> None:
        self.random = random
        self.chunks = chunks
        self.attributed = attributed
        self.events: list[EventDict] = []
        self.state: Any = {}
        self.serial = 0
        # The thread: id -> what a later start has to agree with.
        self.messages: dict[str, EventDict] = {}
        self.calls: dict[str, EventDict] = {}
        self.activities: dict[str, dict[str, Any]] = {}
        self.begin()

    def begin(self) -> None:
        # The run: what is open, by kind and id, with its owner; the items that lanes assemble from chunks.
        self.open: dict[tuple[str, str], str | None] = {}
        self.lanes: dict[str | None, tuple[str, str]] = {}
        self.steps: list[tuple[str | None, str]] = []
        self.active: dict[str, str | None] = {}
        self.started: list[str] = []
        self.answered: set[str] = set()

    def write(self, runs: int = 2, events: int = 40) -> list[EventDict]:
        for number in range(self.random.randint(1, runs)):
            self.begin()
            self.run_id = f"run-{number}"
            self.put({"type": "RUN_STARTED", "threadId": THREAD, "runId": self.run_id, "protocolVersion": "1.0"})
            for _ in range(self.random.randint(0, events)):
                self.random.choice(MOVES)(self)
            self.finish()
        return self.events

    # Helpers

    def put(self, event: EventDict, owner: str | None = None) -> None:
        if owner is not None:
            event["subagentRunId"] = owner
        kind = event["type"]
        if not kind.endswith("_CHUNK") and kind not in ENDS_NOTHING:
            over = kind.startswith("RUN_") or kind == "MESSAGES_SNAPSHOT"
            for lane in list(self.lanes) if over else [owner]:
                self.end_lane(lane)
        if self.random.random() < 0.1 and kind != "RUN_ERROR":
            event["metadata"] = {self.random.choice("abc"): deepcopy(self.random.choice(VALUES))}
        self.events.append(event)

    def end_lane(self, lane: str | None) -> None:
        if lane in self.lanes:
            self.open.pop(self.lanes.pop(lane))

    def new_id(self, kind: str) -> str:
        self.serial += 1
        return f"{kind}-{self.serial}"

    def owner(self) -> str | None:
        if not self.attributed or self.random.random() < 0.5:
            return None
        return self.random.choice([None, "unannounced", *self.active])

    def tag(self, owner: str | None) -> str | None:
        """What continues an item names its owner, or nobody."""
        return owner if self.random.random() < 0.7 else None

    def text(self) -> str:
        return "".join(self.random.choice(WORDS) for _ in range(self.random.randint(0, 3)))

    def pick(self, kind: str) -> tuple[str, str | None] | None:
        """Something of this kind that is open, and was not opened by a chunk."""
        ids = [
            (id, owner)
            for (one, id), owner in self.open.items()
            if one == kind and (kind, id) not in self.lanes.values()
        ]
        return self.random.choice(ids) if ids else None

    # Items

    def start_event(self, kind: str) -> tuple[EventDict, str, str | None] | None:
        """The fields of a start: of something new, or of something closed that is opened again."""
        id_name = KINDS[kind][0]
        if kind == "text":
            again = [
                id
                for id, known in self.messages.items()
                if known["role"] in ("assistant", "user", "system", "developer") and ("text", id) not in self.open
            ]
            if again and self.random.random() < 0.3:
                id = self.random.choice(again)
                known = self.messages[id]
                fields = {name: known[name] for name in ("role", "name") if name in known}
                return {id_name: id, **fields}, id, known["owner"]
            id, owner = self.new_id("message"), self.owner()
            fields = {"role": self.random.choice(["assistant", "assistant", "user", "system", "developer"])}
            if self.random.random() < 0.2:
                fields["name"] = "Ada"
            self.messages[id] = {**fields, "owner": owner}
            if fields["role"] == "assistant" and self.random.random() < 0.5:
                del fields["role"]
            return {id_name: id, **fields}, id, owner
        if kind == "call":
            again = [id for id in self.calls if ("call", id) not in self.open]
            if again and self.random.random() < 0.2:
                id = self.random.choice(again)
                known = self.calls[id]
                return {id_name: id, **known["fields"]}, id, known["owner"]
            id, owner = self.new_id("call"), self.owner()
            fields = {"toolCallName": self.random.choice(["search", FRONTEND])}
            parents = [
                one for one, known in self.messages.items() if known["role"] == "assistant" and known["owner"] == owner
            ]
            if parents and self.random.random() < 0.5:
                fields["parentMessageId"] = self.random.choice(parents)
            elif self.random.random() < 0.2:
                fields["parentMessageId"] = self.new_id("message")
            self.messages.setdefault(fields.get("parentMessageId", id), {"role": "assistant", "owner": owner})
            self.calls[id] = {"fields": fields, "owner": owner}
            return {id_name: id, **fields}, id, owner
        again = [
            id
            for id, known in self.messages.items()
            if known["role"] == "reasoning" and ("thought", id) not in self.open
        ]
        if kind == "thought" and again and self.random.random() < 0.2:
            id = self.random.choice(again)
            return {id_name: id}, id, self.messages[id]["owner"]
        id, owner = self.new_id("thought"), self.owner()
        if kind == "thought":
            self.messages[id] = {"role": "reasoning", "owner": owner}
        return {id_name: id}, id, owner

    def start(self, kind: str) -> None:
        made = self.start_event(kind)
        if made is None:
            return
        fields, id, owner = made
        if kind == "thought":
            fields["role"] = "reasoning"
        self.note_open(kind, id, owner)
        self.put({"type": KINDS[kind][1], **fields}, owner)

    def note_open(self, kind: str, id: str, owner: str | None) -> None:
        self.open[kind, id] = owner
        if kind == "call" and id not in self.started:
            self.started.append(id)

    def proceed(self, kind: str) -> None:
        if found := self.pick(kind):
            id, owner = found
            self.put({"type": KINDS[kind][2], KINDS[kind][0]: id, "delta": self.text()}, self.tag(owner))

    def end(self, kind: str) -> None:
        if found := self.pick(kind):
            id, owner = found
            del self.open[kind, id]
            self.put({"type": KINDS[kind][3], KINDS[kind][0]: id}, self.tag(owner))

    def chunk(self, kind: str) -> None:
        if not self.chunks:
            return
        lane = self.owner()
        if self.lanes.get(lane, ("", ""))[0] == kind and self.random.random() < 0.7:
            # A continuation: by its tag, by its id, by both, or by nothing where that can only mean this one.
            id = self.lanes[lane][1]
            event: EventDict = {"type": KINDS[kind][4]}
            alone = lane is None or (
                self.lanes.get(None, ("", ""))[0] != kind and [one for one, _ in self.lanes.values()].count(kind) == 1
            )
            named = self.random.random() < 0.5
            if named:
                event[KINDS[kind][0]] = id
            if self.random.random() < 0.8:
                event["delta"] = self.text()
            if lane is not None and (self.random.random() < 0.5 or not (named or alone)):
                event["subagentRunId"] = lane
            self.put(event)
            return
        made = self.start_event(kind)
        if made is None:
            return
        fields, id, owner = made
        self.end_lane(owner)
        self.lanes[owner] = (kind, id)
        self.note_open(kind, id, owner)
        if self.random.random() < 0.8:
            fields["delta"] = self.text()
        self.put({"type": KINDS[kind][4], **fields}, owner)

    # The rest

    def result(self) -> None:
        unanswered = [id for id in self.started if id in self.calls and id not in self.answered]
        ids = [id for id in unanswered if self.calls[id]["fields"]["toolCallName"] != FRONTEND]
        if ids:
            id, owner = self.random.choice(ids), self.owner()
            self.answered.add(id)
            message = self.new_id("result")
            self.messages[message] = {"role": "tool", "owner": owner}
            content: Any = self.text()
            if self.random.random() < 0.3:
                content = [{"type": "text", "text": self.text()}]
            self.put({"type": "TOOL_CALL_RESULT", "messageId": message, "toolCallId": id, "content": content}, owner)

    def encrypted(self) -> None:
        subtype = self.random.choice(["message", "tool-call"])
        known = self.messages if subtype == "message" else self.calls
        ids = [id for id, one in known.items() if one.get("role") != "activity"]
        if ids:
            id = self.random.choice(ids)
            event = {"type": "REASONING_ENCRYPTED_VALUE", "subtype": subtype, "entityId": id, "encryptedValue": "=="}
            self.put(event, self.tag(known[id]["owner"]))

    def step(self) -> None:
        owner, name = self.owner(), self.random.choice("xyz")
        if (owner, name) not in self.steps:
            self.steps.append((owner, name))
            self.put({"type": "STEP_STARTED", "stepName": name}, owner)

    def step_end(self) -> None:
        if self.steps:
            owner, name = self.steps.pop(self.random.randrange(len(self.steps)))
            self.put({"type": "STEP_FINISHED", "stepName": name}, owner)

    def subagent(self) -> None:
        if not self.attributed:
            return
        id = self.new_id("subagent")
        event = {"type": "SUBAGENT_STARTED", "name": "researcher"}
        if self.active and self.random.random() < 0.4:
            event["parentSubagentRunId"] = self.random.choice(list(self.active))
        self.active[id] = event.get("parentSubagentRunId")
        self.put(event, id)

    def subagent_end(self) -> None:
        if not self.active:
            return
        id = self.random.choice(list(self.active))
        # What the subagent opened is closed with it.
        for (kind, one), owner in list(self.open.items()):
            if owner == id and (kind, one) in self.open and (kind, one) not in self.lanes.values():
                del self.open[kind, one]
                self.put({"type": KINDS[kind][3], KINDS[kind][0]: one}, owner)
        for owner, name in [step for step in self.steps if step[0] == id]:
            self.steps.remove((owner, name))
            self.put({"type": "STEP_FINISHED", "stepName": name}, owner)
        del self.active[id]
        how = self.random.choice([{"outcome": {"type": "suspended"}}, {"result": 5}, {}])
        error = {"type": "SUBAGENT_ERROR", "message": "no luck"}
        self.put(error if self.random.random() < 0.3 else {"type": "SUBAGENT_FINISHED", **how}, id)

    def activity(self) -> None:
        if self.activities and self.random.random() < 0.5:
            id = self.random.choice(list(self.activities))
            if self.random.random() < 0.2:
                event = {
                    "type": "ACTIVITY_SNAPSHOT",
                    "messageId": id,
                    "activityType": "b",
                    "content": {},
                    "replace": False,
                }
                self.put(event, self.messages[id]["owner"])
                return
            owner = self.owner()
        else:
            id, owner = self.new_id("activity"), self.owner()
        content = {"n": 0, "list": [1, 2]}
        self.activities[id] = content
        self.messages[id] = {"role": "activity", "owner": owner}
        self.put({"type": "ACTIVITY_SNAPSHOT", "messageId": id, "activityType": "a", "content": content}, owner)

    def activity_delta(self) -> None:
        if self.activities:
            id = self.random.choice(list(self.activities))
            ops = self.random.choice(
                [
                    [{"op": "replace", "path": "/n", "value": self.random.randint(0, 9)}],
                    [{"op": "add", "path": "/list/-", "value": 3}],
                    [{"op": "remove", "path": "/missing"}],
                    [{"op": "replace", "path": "", "value": {"n": 1, "list": []}}],
                    [],
                ]
            )
            event = {"type": "ACTIVITY_DELTA", "messageId": id, "activityType": "c", "patch": deepcopy(ops)}
            self.put(event, self.tag(self.messages[id]["owner"]))

    def snapshot(self) -> None:
        self.state = deepcopy(self.random.choice([*VALUES, {"a": 1, "b": {"c": []}}, {"list": [1, 2, 3]}]))
        self.put({"type": "STATE_SNAPSHOT", "snapshot": deepcopy(self.state)}, self.owner())

    def delta(self) -> None:
        ops: list[EventDict] = []
        if isinstance(self.state, dict):
            key = self.random.choice(["a", "b", "list", "é", "a~1b", ""])
            value = deepcopy(self.random.choice(VALUES))
            ops = [{"op": "add", "path": f"/{key}", "value": value}]
            if self.random.random() < 0.3:
                ops += [{"op": "copy", "from": f"/{key}", "path": "/copied"}, {"op": "remove", "path": f"/{key}"}]
            if self.random.random() < 0.2:
                # All or nothing: the last one does not fit, so the first ones are undone.
                ops.append({"op": "replace", "path": "/not/there", "value": 1})
            if self.random.random() < 0.2:
                ops.append({"op": "test", "path": f"/{key}", "value": value, "left": "over"})
        elif isinstance(self.state, list):
            ops = [{"op": "add", "path": "/-", "value": 1}, {"op": "add", "path": "/0", "value": "first"}]
        self.put({"type": "STATE_DELTA", "delta": ops}, self.owner())

    def restate(self) -> None:
        """A snapshot of some of the messages, changed, and of some new ones."""
        roles = self.random.choice([{"reasoning"}, {"activity"}, set(), {"reasoning", "activity"}])
        stated = []
        for id, known in self.messages.items():
            keep = known["role"] in roles if known["role"] in ("reasoning", "activity") else self.random.random() < 0.8
            if keep:
                stated.append(self.as_message(id, known))
        for _ in range(self.random.randint(0, 2)):
            id = self.new_id("stated")
            self.messages[id] = {"role": self.random.choice(["assistant", "user"]), "owner": None}
            stated.append(self.as_message(id, self.messages[id]))
        self.random.shuffle(stated)
        ids = {message["id"] for message in stated}
        carried = {message["role"] for message in stated}
        for id, known in list(self.messages.items()):
            if id not in ids and (known["role"] not in ("reasoning", "activity") or known["role"] in carried):
                del self.messages[id]
                self.activities.pop(id, None)
        # The calls of messages that are gone, or that were restated without them, are new when they start again.
        held = {call["id"] for message in stated for call in message.get("toolCalls", ())}
        self.calls = {id: call for id, call in self.calls.items() if id in held}
        self.put({"type": "MESSAGES_SNAPSHOT", "messages": stated})
        # Nothing that is gone is continued, so that both sides' books stay simple.
        for kind, id in list(self.open):
            if kind != "span" and id not in (self.calls if kind == "call" else self.messages):
                owner = self.open.pop((kind, id))
                self.put({"type": KINDS[kind][3], KINDS[kind][0]: id}, owner)

    def as_message(self, id: str, known: EventDict) -> EventDict:
        message: EventDict = {"id": id, "role": known["role"], "content": self.text()}
        if "name" in known:
            message["name"] = known["name"]
        if known["owner"] is not None:
            message["subagentRunId"] = known["owner"]
        if known["role"] == "tool":
            message["toolCallId"] = "call-of-before"
        if known["role"] == "activity":
            message.update(content={"n": 1, "list": []}, activityType="d")
        if known["role"] == "assistant":
            calls = [
                {
                    "id": call,
                    "type": "function",
                    "function": {"name": one["fields"]["toolCallName"], "arguments": "{"},
                }
                for call, one in self.calls.items()
                if one["fields"].get("parentMessageId", call) == id
            ]
            if calls:
                message["toolCalls"] = calls
        return message

    def custom(self) -> None:
        event = {"type": "CUSTOM", "name": "com.example.cart", "value": deepcopy(self.random.choice(VALUES))}
        self.put(event, self.owner())

    def raw(self) -> None:
        self.put({"type": "RAW", "event": deepcopy(self.random.choice(VALUES)), "source": "else"}, self.owner())

    # The end of a run

    def finish(self) -> None:
        if self.random.random() < 0.15:
            self.put({"type": "RUN_ERROR", "message": "It failed.", "code": "failed"})
            return
        while self.active:
            self.subagent_end()
        for (kind, id), owner in list(self.open.items()):
            if (kind, id) in self.open and (kind, id) not in self.lanes.values():
                del self.open[kind, id]
                self.put({"type": KINDS[kind][3], KINDS[kind][0]: id}, self.tag(owner))
        while self.steps:
            self.step_end()
        end: EventDict = {"type": "RUN_FINISHED", "threadId": THREAD, "runId": self.run_id}
        pending = [id for id in self.started if id not in self.answered]
        outcome = self.random.choice(["none", "success", "pending", "interrupt", "cancelled"])
        if outcome == "interrupt":
            end["outcome"] = {
                "type": "interrupt",
                "interrupts": [{"id": "a", "reason": "x"}, {"id": "b", "reason": "x"}],
            }
        elif outcome == "cancelled":
            end["outcome"] = {"type": "cancelled"}
        elif outcome == "pending":
            end["outcome"] = {"type": "success", "pendingToolCallIds": pending}
        elif outcome == "success":
            end.update(outcome={"type": "success"}, result={"n": 1})
        self.put(end)
        if self.random.random() < 0.1:
            self.put({"type": "RUN_ERROR", "message": "It failed late."})


def _items(method: str) -> list[Callable[[Writer], None]]:
    return [lambda writer, kind=kind: getattr(writer, method)(kind) for kind in KINDS]  # type: ignore[misc]


MOVES: list[Callable[[Writer], None]] = [
    *_items("start"),
    *_items("start"),
    *[lambda writer, kind=kind: writer.proceed(kind) for kind in ("text", "call", "thought")] * 3,  # type: ignore[misc]
    *_items("end"),
    *[lambda writer, kind=kind: writer.chunk(kind) for kind in ("text", "call", "thought")] * 2,  # type: ignore[misc]
    Writer.result,
    Writer.encrypted,
    Writer.step,
    Writer.step_end,
    Writer.subagent,
    Writer.subagent_end,
    Writer.activity,
    Writer.activity_delta,
    Writer.snapshot,
    Writer.delta,
    Writer.delta,
    Writer.restate,
    Writer.custom,
    Writer.raw,
]


def legal_stream(random: Random, **options: Any) -> list[EventDict]:
    """One stream that keeps every rule."""
    return Writer(random, **options).write()


# Breaking one rule. A break changes one place of a legal stream, and says which rules may answer.

Break = Callable[[list[EventDict], Random], set[str] | None]


def _positions(stream: list[EventDict], wanted: Callable[[EventDict], bool]) -> list[int]:
    return [index for index, event in enumerate(stream) if wanted(event)]


def inside_run(stream: list[EventDict], random: Random) -> int | None:
    """A position inside a run, where one more event may stand."""
    found, active = [], False
    for index, event in enumerate(stream):
        if active:
            found.append(index)
        active = event["type"] == "RUN_STARTED" or (active and event["type"] not in ("RUN_FINISHED", "RUN_ERROR"))
    return random.choice(found) if found else None


def _inserted(event: EventDict, *rules: str) -> Break:
    def insert(stream: list[EventDict], random: Random) -> set[str] | None:
        index = inside_run(stream, random)
        if index is None:
            return None
        stream.insert(index, deepcopy(event))
        return set(rules)

    return insert


def _doubled(kind: str, *rules: str) -> Break:
    def double(stream: list[EventDict], random: Random) -> set[str] | None:
        found = _positions(stream, lambda event: event["type"] == kind)
        if not found:
            return None
        index = random.choice(found)
        stream.insert(index, deepcopy(stream[index]))
        return set(rules)

    return double


def _changed(kind: str, change: Callable[[EventDict], Any], *rules: str) -> Break:
    def alter(stream: list[EventDict], random: Random) -> set[str] | None:
        found = _positions(stream, lambda event: event["type"] == kind)
        if not found:
            return None
        change(stream[random.choice(found)])
        return set(rules)

    return alter


def _dropped_start(kind: str, *rules: str) -> Break:
    """Takes away a start whose end still comes."""

    def drop(stream: list[EventDict], random: Random) -> set[str] | None:
        id_name, start, _, end, _ = KINDS[kind]
        found = []
        for index in _positions(stream, lambda event: event["type"] == start):
            id = stream[index][id_name]
            later = next((e for e in stream[index + 1 :] if e["type"] in (start, end) and e[id_name] == id), None)
            if later is not None and later["type"] == end:
                found.append(index)
        if not found:
            return None
        del stream[random.choice(found)]
        return set(rules)

    return drop


def _dropped_end(kind: str) -> Break:
    """Takes away an end in a run that finishes: the item is open when it does, or when it is opened again."""

    def drop(stream: list[EventDict], random: Random) -> set[str] | None:
        id_name, start, _, end, chunk = KINDS[kind]
        found = []
        for index in _positions(stream, lambda event: event["type"] == end):
            id = stream[index][id_name]
            ending = next((e for e in stream[index + 1 :] if e["type"] in ("RUN_FINISHED", "RUN_ERROR")), None)
            again = any(e.get(id_name) == id and e["type"] in (start, chunk) for e in stream[index + 1 :])
            if ending is not None and ending["type"] == "RUN_FINISHED" and not again:
                found.append(index)
        if not found:
            return None
        del stream[random.choice(found)]
        return {"L5"}

    return drop


def _retagged(stream: list[EventDict], random: Random) -> set[str] | None:
    """Gives a piece of content to somebody else."""
    kinds = {names[2] for names in KINDS.values() if names[2]} | {names[3] for names in KINDS.values()}
    found = _positions(stream, lambda event: event["type"] in kinds)
    if not found:
        return None
    stream[random.choice(found)]["subagentRunId"] = "somebody-else"
    return {"G3"}


def _no_start(stream: list[EventDict], random: Random) -> set[str] | None:
    if stream[1]["type"] in ("RUN_ERROR", "RUN_STARTED"):
        return None
    del stream[0]
    return {"L1"}


def _after_the_end(stream: list[EventDict], random: Random) -> set[str] | None:
    found = _positions(stream, lambda event: event["type"] in ("RUN_FINISHED", "RUN_ERROR"))
    stream.insert(random.choice(found) + 1, {"type": "CUSTOM", "name": "com.example.late", "value": 1})
    return {"L4"}


FATAL: dict[str, Break] = {
    "no RUN_STARTED": _no_start,
    "an event after the end": _after_the_end,
    "a run in a run": _inserted({"type": "RUN_STARTED", "threadId": THREAD, "runId": "inner"}, "L7"),
    "text without a start": _inserted({"type": "TEXT_MESSAGE_CONTENT", "messageId": "nobody", "delta": "x"}, "S1"),
    "arguments without a start": _inserted({"type": "TOOL_CALL_ARGS", "toolCallId": "nobody", "delta": "x"}, "S1"),
    "the end of no message": _inserted({"type": "TEXT_MESSAGE_END", "messageId": "nobody"}, "S1"),
    "reasoning without a start": _inserted(
        {"type": "REASONING_MESSAGE_CONTENT", "messageId": "nobody", "delta": "x"}, "S1"
    ),
    "the end of no span": _inserted({"type": "REASONING_END", "messageId": "nobody"}, "R1"),
    "the end of no step": _inserted({"type": "STEP_FINISHED", "stepName": "never"}, "L6"),
    "the end of no subagent": _inserted({"type": "SUBAGENT_FINISHED", "subagentRunId": "nobody"}, "G2"),
    "the error of no subagent": _inserted({"type": "SUBAGENT_ERROR", "subagentRunId": "nobody", "message": "x"}, "G2"),
    "an orphaned subagent": _inserted(
        {"type": "SUBAGENT_STARTED", "subagentRunId": "child", "name": "x", "parentSubagentRunId": "nobody"}, "G2"
    ),
    "a message twice": _doubled("TEXT_MESSAGE_START", "S1"),
    "a call twice": _doubled("TOOL_CALL_START", "S1"),
    "a reasoning message twice": _doubled("REASONING_MESSAGE_START", "S1"),
    "a span twice": _doubled("REASONING_START", "R1"),
    "a step twice": _doubled("STEP_STARTED", "L6"),
    "a subagent twice": _doubled("SUBAGENT_STARTED", "G2"),
    "a message that nobody started": _dropped_start("text", "S1", "R2"),
    "a call that nobody started": _dropped_start("call", "S1", "R2"),
    "reasoning that nobody started": _dropped_start("thought", "S1", "R2"),
    "a span that nobody started": _dropped_start("span", "R1"),
    "a message left open": _dropped_end("text"),
    "a call left open": _dropped_end("call"),
    "reasoning left open": _dropped_end("thought"),
    "a span left open": _dropped_end("span"),
    "somebody else's": _retagged,
    "a first chunk without its id": _inserted(
        {"type": "TEXT_MESSAGE_CHUNK", "delta": "x", "subagentRunId": "new"}, "S5"
    ),
    "a first chunk without its name": _inserted({"type": "TOOL_CALL_CHUNK", "toolCallId": "new", "delta": "x"}, "S5"),
    "a chunk with a wrong kind of id": _inserted({"type": "TEXT_MESSAGE_CHUNK", "messageId": 5, "delta": "x"}, ""),
    "a wrong kind of delta": _changed("TEXT_MESSAGE_CONTENT", lambda event: event.update(delta=5), "", "S4"),
    "an operation without a value": _inserted(
        {"type": "STATE_DELTA", "delta": [{"op": "add", "path": "/a"}]}, "", "D5"
    ),
    "a path that is no pointer": _inserted({"type": "STATE_DELTA", "delta": [{"op": "remove", "path": "a"}]}, "", "D5"),
    "a patch that is no list": _inserted({"type": "STATE_DELTA", "delta": {}}, "", "D5"),
}
"""Breaks that a consumer rejects the stream for, the real client among them. `""`: the event itself is malformed."""


def _pop(name: str) -> Callable[[EventDict], Any]:
    return lambda event: event.pop(name)


UNCHECKED: dict[str, Break] = {
    "the end of another run": _changed("RUN_FINISHED", lambda event: event.update(runId="another"), "L2"),
    "the end on another thread": _changed("RUN_FINISHED", lambda event: event.update(threadId="another"), "L2"),
    "an interrupt twice": _changed(
        "RUN_FINISHED",
        lambda event: event.update(
            outcome={"type": "interrupt", "interrupts": [{"id": "a", "reason": "x"}, {"id": "a", "reason": "y"}]}
        ),
        "P1",
    ),
    "an operation without an op": _inserted({"type": "STATE_DELTA", "delta": [{"path": "/a"}]}, "", "D5"),
}
"""Breaks that the protocol calls fatal for a stream, and that the real client 1.0.0 does not look for."""


FORBIDDEN: dict[str, Break] = {
    "null for an absent member": _inserted({"type": "RAW", "event": 1, "source": None}, "W6"),
    "a member of our own": _inserted({"type": "CUSTOM", "name": "com.example.x", "value": 1, "extra": 1}, "W7"),
    "an event of our own": _inserted({"type": "CART_CHANGED"}, "W7"),
    "the reserved key": _inserted({"type": "RAW", "event": 1, "metadata": {"ag-ui": {}}}, "W7"),
    "a member of 1.1": _inserted(
        {
            "type": "REASONING_ENCRYPTED_VALUE",
            "subtype": "message",
            "entityId": "x",
            "encryptedValue": "x",
            "encryptedValueType": "x",
        },
        "X2",
    ),
    "the end of a run by a subagent": _changed("RUN_FINISHED", lambda event: event.update(subagentRunId="x"), "G4"),
    "a restatement by a subagent": _inserted({"type": "MESSAGES_SNAPSHOT", "messages": [], "subagentRunId": "x"}, "G4"),
    "a role that no text has": _inserted({"type": "TEXT_MESSAGE_START", "messageId": "new", "role": "tool"}, "S3"),
    "a delta before its snapshot": _inserted(
        {"type": "ACTIVITY_DELTA", "messageId": "new", "activityType": "a", "patch": []}, "A2"
    ),
    "an activity that is no object": _changed(
        "ACTIVITY_DELTA", lambda event: event.update(patch=[{"op": "replace", "path": "", "value": 5}]), "A2"
    ),
    "a result of a cancelled run": _changed(
        "RUN_FINISHED", lambda event: event.update(outcome={"type": "cancelled"}, result=1), "L3"
    ),
    "a pending call that was never made": _changed(
        "RUN_FINISHED", lambda event: event.update(outcome={"type": "success", "pendingToolCallIds": ["never"]}), "L3"
    ),
    "an interrupt about nothing": _changed(
        "RUN_FINISHED", lambda event: event.update(outcome={"type": "interrupt", "interrupts": []}), "P1"
    ),
    "a result that takes a message's id": _doubled("TOOL_CALL_RESULT", "T2"),
    "a restated message twice": _changed(
        "MESSAGES_SNAPSHOT",
        lambda event: event["messages"].extend([{"id": "new", "role": "user", "content": ""}] * 2),
        "L8",
    ),
}
"""Breaks that bind a producer only: a consumer takes them, or takes them apart."""


def broken(stream: list[EventDict], how: Break, random: Random) -> tuple[list[EventDict], set[str]] | None:
    """The stream with one rule broken, and the rules that may answer; `None` if it has no place for this break."""
    copy = deepcopy(stream)
    rules = how(copy, random)
    return None if rules is None else (copy, rules)


# Streams of a careless producer: few ids for everything, names and roles that contradict each other, results without calls.


def careless_event(random: Random) -> EventDict:
    """Any event about one of a handful of things. It may be forbidden."""
    id, other = random.choice("abcd"), random.choice("abcd")
    kind = random.choice(sorted(_CARELESS))
    event = {"type": kind, **_CARELESS[kind](random, id, other)}
    if random.random() < 0.15 and kind not in ("RUN_STARTED", "RUN_FINISHED", "RUN_ERROR", "MESSAGES_SNAPSHOT"):
        event["subagentRunId"] = random.choice("xy")
    if random.random() < 0.1:
        event["metadata"] = {random.choice("kl"): deepcopy(random.choice(VALUES))}
    return event


def _message(random: Random, id: str) -> EventDict:
    role = random.choice(["user", "assistant", "tool", "activity", "reasoning", "system"])
    message: EventDict = {"id": id, "role": role, "content": random.choice(WORDS)}
    if role == "activity":
        message.update(activityType="a", content={"n": 1})
    if role == "tool":
        message["toolCallId"] = random.choice("abcd")
    if role == "assistant" and random.random() < 0.5:
        function = {"name": "search", "arguments": "{"}
        message["toolCalls"] = [{"id": random.choice("abcd"), "type": "function", "function": function}]
    if random.random() < 0.2:
        message["metadata"] = {"k": 0}
    return message


def _some(random: Random, **fields: Any) -> EventDict:
    """Some of these fields."""
    return {name: value for name, value in fields.items() if random.random() < 0.5}


_CARELESS: dict[str, Callable[[Random, str, str], EventDict]] = {
    "RUN_STARTED": lambda r, id, other: {
        "threadId": THREAD,
        "runId": "run",
        **_some(r, input={"threadId": THREAD, "runId": "run", "messages": [_message(r, id), _message(r, other)]}),
    },
    "RUN_FINISHED": lambda r, id, other: {"threadId": THREAD, "runId": "run"},
    "RUN_ERROR": lambda r, id, other: {"message": "It failed."},
    "TEXT_MESSAGE_START": lambda r, id, other: {
        "messageId": id,
        **_some(r, role=r.choice(["user", "assistant"]), name="Ada"),
    },
    "TEXT_MESSAGE_CONTENT": lambda r, id, other: {"messageId": id, "delta": r.choice(WORDS)},
    "TEXT_MESSAGE_END": lambda r, id, other: {"messageId": id},
    "TEXT_MESSAGE_CHUNK": lambda r, id, other: _some(r, messageId=id, delta="chunk", role="user", name="Ada"),
    "TOOL_CALL_START": lambda r, id, other: {
        "toolCallId": id,
        "toolCallName": r.choice(["f", "g"]),
        **_some(r, parentMessageId=other),
    },
    "TOOL_CALL_ARGS": lambda r, id, other: {"toolCallId": id, "delta": r.choice(WORDS)},
    "TOOL_CALL_END": lambda r, id, other: {"toolCallId": id},
    "TOOL_CALL_CHUNK": lambda r, id, other: _some(r, toolCallId=id, toolCallName="f", delta="{", parentMessageId=other),
    "TOOL_CALL_RESULT": lambda r, id, other: {
        "messageId": id,
        "toolCallId": other,
        "content": r.choice(["x", [{"type": "text", "text": "x"}], []]),
        **_some(r, role="tool"),
    },
    "REASONING_START": lambda r, id, other: {"messageId": id},
    "REASONING_END": lambda r, id, other: {"messageId": id},
    "REASONING_MESSAGE_START": lambda r, id, other: {"messageId": id, "role": "reasoning"},
    "REASONING_MESSAGE_CONTENT": lambda r, id, other: {"messageId": id, "delta": r.choice(WORDS)},
    "REASONING_MESSAGE_END": lambda r, id, other: {"messageId": id},
    "REASONING_MESSAGE_CHUNK": lambda r, id, other: _some(r, messageId=id, delta="chunk"),
    "REASONING_ENCRYPTED_VALUE": lambda r, id, other: {
        "subtype": r.choice(["message", "tool-call"]),
        "entityId": id,
        "encryptedValue": "=",
    },
    "STEP_STARTED": lambda r, id, other: {"stepName": id},
    "STEP_FINISHED": lambda r, id, other: {"stepName": id},
    "SUBAGENT_STARTED": lambda r, id, other: {
        "subagentRunId": r.choice("xyz"),
        "name": "x",
        **_some(r, parentSubagentRunId=r.choice("xyz")),
    },
    "SUBAGENT_FINISHED": lambda r, id, other: {"subagentRunId": r.choice("xyz")},
    "SUBAGENT_ERROR": lambda r, id, other: {"subagentRunId": r.choice("xyz"), "message": "x"},
    "ACTIVITY_SNAPSHOT": lambda r, id, other: {
        "messageId": id,
        "activityType": other,
        "content": {"n": 0, "list": []},
        **_some(r, replace=r.choice([True, False])),
    },
    "ACTIVITY_DELTA": lambda r, id, other: {
        "messageId": id,
        "activityType": other,
        "patch": [{"op": r.choice(["add", "replace"]), "path": r.choice(["/n", "/list/-", "/x/y"]), "value": 1}],
    },
    "MESSAGES_SNAPSHOT": lambda r, id, other: {
        "messages": [_message(r, r.choice("abcd")) for _ in range(r.randint(0, 4))]
    },
    "STATE_SNAPSHOT": lambda r, id, other: {"snapshot": deepcopy(r.choice(VALUES))},
    "STATE_DELTA": lambda r, id, other: {
        "delta": [{"op": "add", "path": f"/{id}", "value": deepcopy(r.choice(VALUES))}]
    },
    "CUSTOM": lambda r, id, other: {"name": id, "value": 1},
    "RAW": lambda r, id, other: {"event": 1},
}
