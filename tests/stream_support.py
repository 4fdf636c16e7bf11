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

    # How an event is written

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
