"""Ask a person, twice, before acting.

`run.ask` ends the run with a question; the answer comes with the next run, which begins at the top. It brings only the
answers to the questions of the run before, so an agent that asks twice keeps the first answer in its state.

Try it (`watch` asks on the terminal and resumes):
    python examples/human_approval.py
    statecast watch http://127.0.0.1:8000/ "Pay 120 to Acme"
"""

import os

import uvicorn
from pydantic import BaseModel, Field

from statecast import Abandoned, Agent, Run, State


class Receipt(BaseModel):
    email: str = Field(pattern=".+@.+")
    copies: int = Field(default=1, ge=1, le=3)


class Payment(State):
    order: str = ""
    approved: bool | None = None
    sent_to: str | None = None


class Cashier(Agent[Payment]):
    """Pays when a person agrees, and sends the receipt where the person says."""

    async def run(self, run: Run[Payment]) -> None:
        payment = run.state
        if payment.approved is None:
            payment.order = payment.order or run.user_text
            payment.approved = await run.ask("approve", message=f"{payment.order}: shall I?", schema=bool)
        if not payment.approved:
            await run.say("Then I leave it.")
            return
        try:
            receipt = await run.ask("receipt", message="Where does the receipt go?", schema=Receipt)
        except Abandoned:
            await run.say("Paid, without a receipt.")
            return
        payment.sent_to = receipt.email
        await run.say(f"Paid. {receipt.copies} receipt(s) to {receipt.email}.")


app = Cashier().app()

if __name__ == "__main__":
    uvicorn.run(app, port=int(os.environ.get("PORT", "8000")))
