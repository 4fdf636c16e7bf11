"""The agent of `statecast demo`: plans a city trip, one day for each message, with no key and no network.

Look at how little of it is about streaming: it changes `run.state` and says things. What changed, and how to tell the
client, is worked out behind it.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator
from typing import Literal

from statecast import Agent, Run, State

__all__ = ["Day", "Planner", "Stop", "Trip"]


class Stop(State):
    hour: int
    place: str
    why: str
    booked: bool = False


class Day(State):
    title: str
    stops: list[Stop] = []


class Trip(State):
    city: str = ""
    status: Literal["new", "searching", "sorting", "booking", "ready"] = "new"
    days: list[Day] = []


# What other agents would ask a model or a search engine for: hour, place, why.
PLACES = {
    "Lisbon": [
        (15, "LX Factory", "an old thread mill, now bookshops and workshops"),
        (9, "Jerónimos cloister", "stone lace, before the buses come"),
        (12, "Time Out Market", "all the kitchens of the city under one roof"),
        (18, "Miradouro da Graça", "where the sun goes down behind the bridge"),
        (10, "Tram 28", "all of the hills for the price of one ticket"),
        (20, "Alfama", "a fado house with eight tables"),
        (13, "Tile Museum", "the city before the earthquake, in blue and white"),
        (16, "Gulbenkian garden", "ducks, concrete and a very good café"),
    ],
    "Kyoto": [
        (14, "Nishiki Market", "five blocks of pickles, knives and tea"),
        (7, "Fushimi Inari", "ten thousand gates and nobody there yet"),
        (11, "Philosopher's Path", "a quiet canal from temple to temple"),
        (17, "Pontochō", "lanterns, and supper over the river"),
        (9, "Arashiyama", "the bamboo is best in the morning wind"),
        (13, "Katsura Villa", "the garden that all the others quote"),
        (15, "Kawai's House", "a potter's rooms, left as they were"),
        (19, "Gion", "paper lamps, and steps behind them"),
    ],
    "Oaxaca": [
        (16, "Monte Albán", "the terraces in the low light"),
        (8, "Mercado 20 de Noviembre", "chocolate and bread for breakfast"),
        (11, "Jardín Etnobotánico", "cactus fences round a convent"),
        (19, "Jalatlaco", "murals, mezcal and a brass band"),
        (9, "Hierve el Agua", "a waterfall of stone"),
        (14, "Teotitlán del Valle", "carpets dyed with insects and walnut"),
        (12, "Tlacolula", "the Sunday market, smoke and all"),
        (18, "Zócalo", "the whole town walks round it"),
    ],
}
STOPS_A_DAY = 4


class Planner(Agent[Trip]):
    """Plans a city trip, one day at a time."""

    version = "1.0"
    suggestions = ("Plan a day in Lisbon", "One more day, please", "I would rather go to Kyoto")

    def __init__(self, pace: float = 0.06) -> None:
        """`pace`: seconds for each word."""
        self.pace = pace

    async def run(self, run: Run[Trip]) -> str:
        city = choose_city(run.user_text, run.state.city)
        if city != run.state.city:
            run.state = Trip(city=city)
        trip = run.state

        used = {stop.place for day in trip.days for stop in day.stops}
        found = [place for place in PLACES[city] if place[1] not in used][:STOPS_A_DAY]
        if not found:
            await run.say(self.words(f"You have seen the best of {city}. Where to next: {' or '.join(PLACES)}?"))
            return f"no more places in {city}"

        day = Day(title=f"Day {len(trip.days) + 1}")
        trip.days.append(day)

        async with run.step("Search"):
            trip.status = "searching"
            for hour, place, why in found:
                await asyncio.sleep(10 * self.pace)
                day.stops.append(Stop(hour=hour, place=place, why=why))

        async with run.step("Sort"):
            trip.status = "sorting"
            await asyncio.sleep(10 * self.pace)
            day.stops.sort(key=lambda stop: stop.hour)

        async with run.step("Book"), run.text() as text:
            trip.status = "booking"
            async for word in self.words(f"{day.title} in {city}."):
                await text.write(word)
            for stop in day.stops:
                async for word in self.words(f" At {stop.hour}:00 {stop.place}: {stop.why}."):
                    await text.write(word)
                stop.booked = True

        trip.status = "ready"
        return f"{len(trip.days)} days in {city}"

    async def words(self, text: str) -> AsyncIterator[str]:
        """The text word by word, as a model would write it."""
        for word in re.findall(r"\s*\S+", text):
            await asyncio.sleep(self.pace)
            yield word


def choose_city(text: str, current: str) -> str:
    """The city that the text names, else the one that is being planned, else the first that we know."""
    named = [city for city in PLACES if city.lower() in text.lower()]
    known = [current] if current in PLACES else []
    return [*named, *known, *PLACES][0]
