"""A pydantic-ai agent, relayed: its stream goes out as ours, and its tools change our state.

`run.relay` takes the events of another AG-UI producer. Their lifecycle is absorbed, so the run may go on afterwards; state,
rules and older clients are handled as for everything else. The model is pydantic-ai's own `TestModel`: no key, no network.

Try it (it needs `pip install "pydantic-ai-slim[ag-ui]"`):
    python examples/pydantic_ai_relay.py
    statecast watch http://127.0.0.1:8000/ "Where to in Lisbon?"
"""

import os
import sys

import uvicorn

from statecast import Agent, Run, State

try:
    import pydantic_ai
    from pydantic_ai.models.test import TestModel
    from pydantic_ai.ui.ag_ui import AGUIAdapter
except ImportError:
    sys.exit('This example needs pydantic-ai: pip install "pydantic-ai-slim[ag-ui]"')


class Places(State):
    found: list[str] = []
    answers: int = 0


model = TestModel(custom_output_text="Have a look at the places on the left.")
guide = pydantic_ai.Agent(model, deps_type=Run[Places], instructions="You know Lisbon.")


@guide.tool
async def find_place(context: pydantic_ai.RunContext[Run[Places]], kind: str) -> str:
    """Finds a place of that kind and shows it to the user."""
    places = context.deps.state.found
    places.append(f"{kind} number {len(places) + 1}")
    return places[-1]


class Guide(Agent[Places]):
    """Knows where to go, as pydantic-ai tells it."""

    async def run(self, run: Run[Places]) -> None:
        # The state is ours: pydantic-ai reads and writes it through its tools only.
        request = run.input.model_copy(update={"state": None})
        adapter = AGUIAdapter(guide, request, include_usage=True)
        await run.relay(adapter.run_stream(deps=run))
        run.state.answers += 1


app = Guide().app()

if __name__ == "__main__":
    uvicorn.run(app, port=int(os.environ.get("PORT", "8000")))
