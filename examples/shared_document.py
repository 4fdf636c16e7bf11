"""A document that user and agent write in turn.

State comes back with every run, so the user interface may edit it between two runs: the agent sees the edit, finds which
sections are new to it, and goes on from there. What the agent changes goes back as deltas.

Try it (the second call brings a state to which the user added a section):
    python examples/shared_document.py
    statecast watch http://127.0.0.1:8000/ "Write the introduction"
    echo '{"title": "Guide", "sections": [{"title": "Introduction", "text": "Hello."}, {"title": "Mine"}]}' > edited.json
    statecast watch http://127.0.0.1:8000/ "Go on" --state edited.json
"""

import asyncio
import os

import uvicorn

from statecast import Agent, Run, State


class Section(State):
    title: str
    text: str = ""
    words: int = 0


class Document(State):
    title: str = "Untitled"
    sections: list[Section] = []
    edited_by: str = "nobody"


class Writer(Agent[Document]):
    """Fills the sections that are still empty, and counts the words of those that the user wrote."""

    async def run(self, run: Run[Document]) -> None:
        document = run.state
        if not document.sections:
            document.title = run.user_text or "Untitled"
            document.sections.append(Section(title="Introduction"))
        for section in document.sections:
            if section.text:
                section.words = len(section.text.split())
                continue
            async with run.step(section.title):
                for word in f"What there is to say about {section.title.lower()}.".split():
                    # A string grows by being replaced: keep streamed texts short, or stream them as messages.
                    section.text = f"{section.text} {word}".strip()
                    section.words += 1
                    await asyncio.sleep(0.01)
        document.edited_by = "agent"
        await run.say(
            f"{sum(section.words for section in document.sections)} words in {len(document.sections)} sections."
        )


app = Writer().app()

if __name__ == "__main__":
    uvicorn.run(app, port=int(os.environ.get("PORT", "8000")))
