"""What is open in a run: streamed items, steps, subagents; and who owns it."""

from __future__ import annotations

from typing import Any

from ..errors import SequenceError

__all__ = ["Items", "Subagents", "lane"]

EventDict = dict[str, Any]


def lane(owner: str | None) -> str:
    """An owner, for an error text."""
    return "the parent agent" if owner is None else f"the subagent {owner!r}"


class Items:
    """Items of one kind that are started, continued and ended by id (S1), and who owns each (G3).

    Attributes:
        open: the ids that are open, in the order of their starts.
        owners: id -> owner of everything that was opened or restated; an owner outlives its item's end.
    """

    def __init__(
        self, noun: str, id: str, start: str, end: str, *, rule: str = "S1", owners: dict[str, str | None] | None = None
    ) -> None:
        self.noun = noun
        self.rule = rule
        self.id = id
        self.start = start
        self.end = end
        self.open: dict[str, None] = {}
        self.owners: dict[str, str | None] = {} if owners is None else owners

    def check_start(self, event: EventDict) -> None:
        id = event[self.id]
        if id in self.open:
            raise SequenceError(
                f"{event['type']}: the {self.noun} {id!r} is open already; send {self.end} first", self.rule
            )
        self.check_owner(event, id)

    def check_open(self, event: EventDict) -> None:
        id = event[self.id]
        if id not in self.open:
            raise SequenceError(
                f"{event['type']}: no {self.noun} {id!r} is open ({self.listed()}); send {self.start} first", self.rule
            )
        if "subagentRunId" in event:
            self.check_owner(event, id)

    def check_owner(self, event: EventDict, id: str) -> None:
        tag = event.get("subagentRunId")
        if tag is not None and self.owners.get(id, tag) != tag:
            raise SequenceError(
                f"{event['type']} of {lane(tag)}: the {self.noun} {id!r} belongs to {lane(self.owners[id])}", "G3"
            )

    def started(self, event: EventDict) -> None:
        self.open[event[self.id]] = None
        self.owners.setdefault(event[self.id], event.get("subagentRunId"))

    def ended(self, event: EventDict) -> None:
        del self.open[event[self.id]]

    def listed(self) -> str:
        return "open: " + (", ".join(map(repr, self.open)) or "none")

    def closing(self, owners: set[str] | None) -> list[EventDict]:
        """The ends of what is open, of these owners or of all."""
        return [
            tagged({"type": self.end, self.id: id}, self.owners.get(id))
            for id in self.open
            if owners is None or self.owners.get(id) in owners
        ]


def tagged(event: EventDict, owner: str | None) -> EventDict:
    if owner is not None:
        event["subagentRunId"] = owner
    return event


class Subagents:
    """The announced invocations of one run (G2)."""

    def __init__(self) -> None:
        self.active: dict[str, str | None] = {}
        self.ended: set[str] = set()

    def check_start(self, event: EventDict) -> None:
        id, parent = event["subagentRunId"], event.get("parentSubagentRunId")
        if id in self.active:
            raise SequenceError(f"SUBAGENT_STARTED: the subagent {id!r} is active already", "G2")
        if id in self.ended:
            raise SequenceError(
                f"SUBAGENT_STARTED: the subagent {id!r} has ended in this run; an id names one invocation", "G2"
            )
        if parent is not None and parent not in self.active and parent not in self.ended:
            raise SequenceError(f"SUBAGENT_STARTED: its parent {parent!r} was not started in this run", "G2")

    def check_end(self, event: EventDict) -> None:
        id = event["subagentRunId"]
        if id not in self.active:
            active = ", ".join(map(repr, self.active)) or "none"
            raise SequenceError(f"{event['type']}: no subagent {id!r} is active (active: {active})", "G2")

    def started(self, event: EventDict) -> None:
        self.active[event["subagentRunId"]] = event.get("parentSubagentRunId")

    def finished(self, event: EventDict) -> None:
        del self.active[event["subagentRunId"]]
        self.ended.add(event["subagentRunId"])

    def lane_of(self, owner: str) -> set[str]:
        """An invocation and its active descendants."""
        found = {owner}
        # An invocation is announced after its parent, so one pass in order finds all.
        for id, parent in self.active.items():
            if parent in found:
                found.add(id)
        return found

    def closing(self, owners: set[str] | None) -> list[EventDict]:
        """Ends of those that are active, inner ones first. What did not say how it ended did not finish."""
        return [
            {"type": "SUBAGENT_ERROR", "subagentRunId": id, "message": "Cancelled.", "code": "cancelled"}
            for id in reversed(self.active)
            if owners is None or id in owners
        ]
