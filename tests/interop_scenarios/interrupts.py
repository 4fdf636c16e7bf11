"""Questions that end a run, and answers that begin the next."""

from __future__ import annotations

from interop_recording import Recorded
from statecast import Abandoned, Question, Run

from .scenario import Results, contents, scenario


@scenario(
    runs=[
        {"say": "deploy"},
        {"answers": {"approve": True}},
        {"answers": {"when": "tonight"}, "sameRunId": True},
        {"answers": {"notify": ["ada"]}},
    ],
    endings=["interrupt", "interrupt", "interrupt", "success"],
)
class ThreeQuestions(Recorded):
    """Three questions, one after the other, end in four runs; one resumes under the run's own id."""

    async def run(self, run: Run) -> str:
        state = run.state
        state["runs"] = state.get("runs", 0) + 1
        if "approved" not in state:
            state["approved"] = await run.ask("approve", message="Deploy?", schema=bool, metadata={"risk": None})
        if "when" not in state:
            await run.say("Approved.")
            state["when"] = await run.ask("when", expires_at="2099-01-01T00:00:00Z", schema=str)
        if "notify" not in state:
            state["notify"] = await run.ask("notify", schema=list[str])
        await run.say("Done.")
        return "deployed"

    @staticmethod
    def check(results: Results, client: str) -> None:
        assert [[interrupt["id"] for interrupt in run["interrupts"]] for run in results] == [
            ["approve"],
            ["when"],
            ["notify"],
            [],
        ]
        assert ("expiresAt" in results[1]["interrupts"][0]) == (client == "1.0.0")
        assert results[0]["interrupts"][0]["responseSchema"] == {"type": "boolean"}
        assert results[3]["state"] == {"approved": True, "when": "tonight", "notify": ["ada"], "runs": 4}
        # A run begins at the top: what stands before the second question is said again.
        assert contents(results[3], "assistant") == ["Approved.", "Approved.", "Done."]
        assert results[2]["runId"] == results[1]["runId"]


@scenario(
    runs=[{"say": "go"}, {"answers": {"name": "Ada", "age": 36}}, {"say": "again"}],
    endings=["interrupt", "success", "interrupt"],
)
class QuestionsTogether(Recorded):
    """Two questions at once, with a tool call that one is about."""

    async def run(self, run: Run) -> None:
        if "person" in run.state:
            async with run.tool_call("pay", {"sum": 1}, id="pay-1") as call:
                await run.ask("confirm", tool_call_id=call.id)
        name, age = await run.ask_all([Question("name"), Question("age", schema=int, message="How old?")])
        run.state["person"] = {"name": name, "age": age}

    @staticmethod
    def check(results: Results, client: str) -> None:
        assert results[1]["state"] == {"person": {"name": "Ada", "age": 36}}
        assert results[2]["interrupts"][0]["id"] == "confirm:pay-1"
        assert results[2]["interrupts"][0]["toolCallId"] == "pay-1"


@scenario(
    runs=[{"say": "go"}, {"answers": {"sure": {"abandon": True}}}, {"say": "once more"}],
    endings=["interrupt", "cancelled", "interrupt"],
    older=["interrupt", "success", "interrupt"],
)
class AbandonedQuestion(Recorded):
    """A question that the user dismisses, and nobody handles: the run is cancelled, the thread goes on."""

    async def run(self, run: Run) -> None:
        run.state["asked"] = run.state.get("asked", 0) + 1
        await run.ask("sure")

    @staticmethod
    def check(results: Results, client: str) -> None:
        assert results[2]["state"] == {"asked": 3}


@scenario(
    runs=[{"say": "go"}, {"answers": {"sure": {"abandon": True}}}],
    endings=["interrupt", "success"],
)
class HandledAbandonment(Recorded):
    """The same, handled by the author."""

    async def run(self, run: Run) -> None:
        try:
            await run.ask("sure")
        except Abandoned as abandoned:
            await run.say(f"never mind {abandoned.ids[0]}")

    @staticmethod
    def check(results: Results, client: str) -> None:
        assert contents(results[1], "assistant") == ["never mind sure"]


@scenario(
    runs=[{"say": "go"}, {"answers": {"age": "old"}}, {"answers": {"age": 7}}],
    endings=["interrupt", "error invalid_answer", "success"],
)
class AnswerThatDoesNotFit(Recorded):
    """An answer of the wrong type fails that run; the same question can be answered again."""

    async def run(self, run: Run) -> None:
        run.state["age"] = await run.ask("age", schema=int)

    @staticmethod
    def check(results: Results, client: str) -> None:
        assert results[2]["state"] == {"age": 7}
