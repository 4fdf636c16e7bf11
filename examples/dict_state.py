"""State as an ordinary dict: an agent that keeps a shopping list.

Change `run.state` as you would any dict; what changed goes out by itself, before the words that speak of it.

Try it:
    python examples/dict_state.py
    statecast watch http://127.0.0.1:8000/ "milk, eggs"
"""

import os

import uvicorn

from statecast import Agent, Run


class ShoppingList(Agent):
    """Puts what the user names on a list."""

    async def run(self, run: Run) -> int:
        items = run.state.setdefault("items", [])
        added = [name.strip() for name in run.user_text.split(",") if name.strip()]
        for name in added:
            known = next((item for item in items if item["name"] == name), None)
            if known is None:
                items.append({"name": name, "count": 1})
            else:
                known["count"] += 1
        await run.say(f"{len(items)} things to buy.")
        return len(added)


app = ShoppingList().app()

if __name__ == "__main__":
    uvicorn.run(app, port=int(os.environ.get("PORT", "8000")))
