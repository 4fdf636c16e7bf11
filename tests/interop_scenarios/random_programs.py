"""Agents that do anything at all, in any order: what no list of cases thinks of."""

from __future__ import annotations

import asyncio
import random
from typing import Any

from ag_ui.core import UserMessage

from interop_recording import Recorded
from statecast import AgentError, Run
from statecast.activity import Activity
from statecast.author import Author

from .scenario import Results, scenario
from .streamed import PARTS

KEYS = ["a", "b", "list", "x/y", "~", "", "é", "0", "-"]
LEAVES = [None, True, False, 0, 1, -1.5, 1.0, 2**40, "", "text", "é🎉", "1", [], {}]


class Program:
    """One run's worth of random actions; the same for the same seed."""

    def __init__(self, run: Run, seed: int) -> None:
        self.run = run
        self.random = random.Random(seed)
        self.activities: list[Activity[Any]] = []

    def value(self, depth: int = 3) -> Any:
        kind = self.random.randrange(6)
        if depth == 0 or kind > 2:
            return self.random.choice(LEAVES)
        if kind == 0:
            return [self.value(depth - 1) for _ in range(self.random.randrange(5))]
        return {self.random.choice(KEYS): self.value(depth - 1) for _ in range(self.random.randrange(4))}

    def edit(self, root: Any) -> None:
        """Changes something somewhere below the root."""
        place = root
        while True:
            below = place.values() if isinstance(place, dict) else place
            inner = [child for child in below if isinstance(child, (dict, list))]
            if not inner or self.random.random() < 0.4:
                break
            place = self.random.choice(inner)
        if isinstance(place, dict):
            self.edit_dict(place)
        else:
            self.edit_list(place)

    def edit_dict(self, place: Any) -> None:
        key, kind = self.random.choice(KEYS), self.random.randrange(6)
        if kind == 0:
            place.pop(key, None)
        elif kind == 1 and place:
            place.popitem()
        elif kind == 2:
            place.update({self.random.choice(KEYS): self.value() for _ in range(3)})
        elif kind == 3:
            place.setdefault(key, self.value())
        else:
            place[key] = self.value()

    def edit_list(self, place: Any) -> None:
        at, kind = self.random.randrange(len(place) + 1), self.random.randrange(10)
        if kind == 0:
            place.reverse()
        elif kind == 1:
            place.sort(key=repr)
        elif kind == 2:
            del place[at : at + 2]
        elif kind == 3:
            place[at : at + 1] = [self.value() for _ in range(2)]
        elif kind == 4 and place:
            place.insert(at, place.pop())
        elif kind == 5 and place:
            place[0], place[-1] = place[-1], place[0]
        elif kind == 6:
            place.extend(self.value() for _ in range(2))
        elif kind == 7 and len(place) > 8:
            place.clear()
        else:
            place.insert(at, self.value())

    async def act(self, author: Author, depth: int = 2) -> None:
        """Does one thing as the run, or as a subagent of it."""
        kind = self.random.randrange(14)
        if kind < 4:
            for _ in range(self.random.randrange(4)):
                self.edit(self.run.state)
        elif kind == 4:
            await author.say(self.random.choice(["hello", "é🎉", ""]), metadata={"n": self.random.randrange(3)})
        elif kind == 5:
            async with author.text() as text:
                for _ in range(self.random.randrange(4)):
                    await text.write("word ")
                    self.edit(self.run.state)
                    await asyncio.sleep(0)
        elif kind == 6:
            async with author.tool_call("tool", self.value()) as call:
                self.edit(self.run.state)
                if self.random.random() < 0.8:
                    await call.result(self.random.choice(["text", {"json": None}, PARTS]))
        elif kind == 7:
            async with author.reasoning() as thought:
                await thought.write("hm")
                await thought.encrypted("opaque")
        elif kind == 8:
            self.activities.append(author.activity("plan", {"list": [], "v": self.value()}))
        elif kind == 9 and self.activities:
            self.edit(self.random.choice(self.activities).content)
        elif kind == 10:
            await author.custom("com.example.any", self.value())
        elif kind == 11:
            await self.run.flush()
        elif kind == 12:
            self.batch()
        elif depth:
            await self.deeper(author, depth)

    def batch(self) -> None:
        try:
            with self.run.batch():
                for _ in range(3):
                    self.edit(self.run.state)
                if self.random.random() < 0.3:
                    raise KeyError
        except KeyError:
            self.run.state["undone"] = True

    async def deeper(self, author: Author, depth: int) -> None:
        if self.random.random() < 0.3:
            async with author.step(f"step {self.random.random()}"):
                await self.act(author, depth - 1)
            return

        async def work(name: str) -> None:
            try:
                async with author.subagent(name) as sub:
                    for _ in range(3):
                        await self.act(sub, depth - 1)
                        await asyncio.sleep(0)
                    if self.random.random() < 0.2:
                        raise AgentError("no")
            except AgentError:
                pass

        async with asyncio.TaskGroup() as group:
            for name in ("ada", "bob")[: self.random.randrange(1, 3)]:
                group.create_task(work(name))

    def edit_messages(self) -> None:
        messages = self.run.messages
        editable = [index for index, message in enumerate(messages) if message.role in ("user", "assistant")]
        index, kind = self.random.choice(editable), self.random.randrange(3)
        if kind == 0:
            del messages[index]
        elif kind == 1:
            messages[index] = messages[index].model_copy(update={"content": "edited"})
        else:
            messages.append(UserMessage(id=f"added {self.random.random()}", content="said elsewhere"))


def runs_of(seeds: range) -> dict[str, Any]:
    """The runs of a thread, and how they end."""
    return {
        "runs": [{"say": str(seed)} for seed in seeds],
        "endings": ["error agent_error" if seed % 7 == 3 else "success" for seed in seeds],
    }


@scenario(**runs_of(range(25)), options={"state_interval": 0.001})
class RandomPrograms(Recorded):
    """Many runs on one thread, each a random program."""

    async def run(self, run: Run) -> None:
        seed = int(run.user_text)
        program = Program(run, seed)
        if seed % 10 == 0:
            run.state = {"list": [], "fresh": {"list": [{"n": 1}]}}
        for _ in range(25):
            await program.act(run)
            if program.random.random() < 0.1:
                program.edit_messages()
        if seed % 7 == 3:
            raise AgentError("on purpose")

    @staticmethod
    def check(results: Results, client: str) -> None:
        kinds = {kind for run in results for kind in run["events"]}
        assert {"STATE_DELTA", "STATE_SNAPSHOT", "ACTIVITY_DELTA", "MESSAGES_SNAPSHOT", "SUBAGENT_ERROR"} <= kinds


@scenario(**runs_of(range(100, 103)), options={"debug": True})
class RandomProgramsInDebugMode(RandomPrograms):
    """The same, with the state compared to a copy at every event."""

    @staticmethod
    def check(results: Results, client: str) -> None:
        assert len(results) == 3


@scenario(**runs_of(range(200, 203)), options={"first_state": "delta", "state_interval": 0})
class RandomProgramsWithDeltasFirst(RandomPrograms):
    """The same, where a run's first state event may be a delta from what the input brought."""

    @staticmethod
    def check(results: Results, client: str) -> None:
        firsts = [next(kind for kind in run["events"] if kind.startswith("STATE_")) for run in results]
        assert "STATE_DELTA" in firsts
