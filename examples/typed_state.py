"""State with types: a trip planner whose fields are validated on the way in and on assignment.

`State` is a pydantic model whose fields are tracked. Aliases are the names on the wire, computed fields follow what they
are computed from, and `ReadOnly` fields are never taken from the client.

Try it:
    python examples/typed_state.py
    statecast watch http://127.0.0.1:8000/ Lisbon
"""

import os
from datetime import time
from typing import Annotated

import uvicorn
from pydantic import ConfigDict, Field, computed_field

from statecast import Agent, ReadOnly, Run, State

SIGHTS = {"Castelo": (time(9, 30), 90), "Alfama": (time(11, 30), 60), "Museu do Azulejo": (time(14, 0), 120)}


class Stop(State):
    name: str
    at: time
    minutes: int = Field(ge=5)


class Trip(State):
    model_config = ConfigDict(validate_by_name=True, validate_by_alias=True)

    city: str = ""
    stops: list[Stop] = []
    max_stops: int = Field(default=5, alias="maxStops", ge=1)
    plans_made: Annotated[int, ReadOnly] = Field(default=0, alias="plansMade")

    @computed_field
    def minutes(self) -> int:
        return sum(stop.minutes for stop in self.stops)


class Planner(Agent[Trip]):
    """Plans a day in a city, stop by stop."""

    async def run(self, run: Run[Trip]) -> None:
        trip = run.state
        trip.city = run.user_text or "Lisbon"
        trip.stops.clear()
        async with run.step("plan"):
            for name, (at, minutes) in list(SIGHTS.items())[: trip.max_stops]:
                trip.stops.append(Stop(name=name, at=at, minutes=minutes))
                await run.flush()
        trip.plans_made += 1
        await run.say(f"{len(trip.stops)} stops in {trip.city}, {trip.minutes} minutes in all.")


app = Planner().app()

if __name__ == "__main__":
    uvicorn.run(app, port=int(os.environ.get("PORT", "8000")))
