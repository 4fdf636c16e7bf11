"""`Run`: what `Agent.run` receives."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from types import TracebackType
from typing import Any, Generic

from ag_ui.core import Context, Message, RunAgentInput, Tool
from starlette.requests import Request
from typing_extensions import TypeVar

from .author import Author
from .conversation import Conversation
from .errors import AgentError
from .outbox import Outbox
from .questions import Questions
from .state import Document
from .usage import Usage

__all__ = ["Run", "current_run"]

S = TypeVar("S", default=dict[str, Any])

current: ContextVar[Run[Any]] = ContextVar("statecast.current_run")


def current_run() -> Run[Any]:
    """The run whose agent is calling, for tools that cannot take it as an argument. Also under `asyncio.to_thread`.

    Raises:
        LookupError: no run is active in this context.
    """
    try:
        return current.get()
    except LookupError:
        raise LookupError(
            "no run is active here: current_run() works in code that Agent.run calls, in tasks that it starts, and in "
            "asyncio.to_thread; pass the run along to other threads"
        ) from None


class Run(Author, Generic[S]):
    """One run of an agent: its input, its tracked state, and everything that it can say.

    Attributes:
        input: the validated request.
        thread_id, run_id, parent_run_id: the ids of the input.
        request: the HTTP request, or `None` in a run without HTTP.
        principal: what `Agent.authorize` returned.
        messages: the conversation; it grows as the run streams, and editing it restates it (M1 to M5).
        usage: token counts of the run's model calls, sent with its end (U1).
    """

    def __init__(
        self,
        *,
        input: RunAgentInput,
        document: Document[S],
        outbox: Outbox,
        questions: Questions,
        describe: Callable[[BaseException], AgentError],
        request: Request | None = None,
        principal: Any = None,
    ) -> None:
        self.input = input
        self.request = request
        self.principal = principal
        self.usage = Usage()
        self._document = document
        self._outbox = outbox
        self._questions = questions
        self._describe = describe
        self._owner = None

    @property
    def thread_id(self) -> str:
        """The conversation that the run belongs to."""
        return self.input.thread_id

    @property
    def run_id(self) -> str:
        """The id that the client gave this run."""
        return self.input.run_id

    @property
    def parent_run_id(self) -> str | None:
        """The run that started this one, if the client says so."""
        return self.input.parent_run_id

    @property
    def state(self) -> S:
        """The tracked state: change it as ordinary Python. Assign to replace the whole.

        Raises:
            StateError: (on assignment) the value is not JSON, or not of the state's type; the state is as it was.
        """
        return self._document.value

    @state.setter
    def state(self, value: S) -> None:
        self._document.value = value

    @property
    def messages(self) -> Conversation:
        """The conversation: a list of `ag_ui` messages that grows as the run streams; editing it restates it (M1 to M5).

        Assign a list to edit it as a whole, under the same rules.
        """
        return self._outbox.messages

    @messages.setter
    def messages(self, value: Iterable[Message]) -> None:
        if value is not self._outbox.messages:
            self._outbox.messages[:] = value

    @property
    def user_text(self) -> str:
        """The text of the last user message, its text parts joined; `""` if there is none."""
        for message in reversed(self.messages):
            if message.role == "user":
                content = message.content
                if isinstance(content, str):
                    return content
                return "".join(part.text for part in content if part.type == "text")
        return ""

    @property
    def tools(self) -> list[Tool]:
        """The client's own tools, which `call_frontend` can call."""
        return self.input.tools or []

    @property
    def context(self) -> list[Context]:
        """Ambient information that the client meant for the model (I5)."""
        return self.input.context or []

    @property
    def forwarded_props(self) -> Any:
        """The application's own values, passed on untouched (I5)."""
        return self.input.forwarded_props

    async def flush(self) -> None:
        """Sends what changed now. Returns when it is in the run's buffer, which waits only for a slow client.

        Raises:
            StateError: a value in the state cannot be written.
            SequenceError: inside a `batch`.
        """
        await self._outbox.flush()

    def resync(self) -> None:
        """Makes the next state event a snapshot, even if nothing changed (D2)."""
        self._document.resync()
        self._outbox.touch()

    def touch(self, pointer: str = "") -> None:
        """Says that something changed that Python could not show, such as an array that was edited in place.

        It is compared with what was sent at the next flush.

        Args:
            pointer: the JSON pointer of the place; `""` is the whole state, which costs its size.
        """
        self._document.touch(pointer)
        self._outbox.touch()

    def batch(self) -> Batch:
        """One state event for the block, undone if the block raises: `with run.batch(): …`, in any thread.

        Events inside go out at once, without the state. A batch in a batch is a savepoint. What other tasks change
        meanwhile belongs to the batch too: keep it free of `await` where tasks run in parallel. Values inside opaque objects
        are not undone.
        """
        return Batch(self._hold())

    @contextmanager
    def _hold(self) -> Iterator[None]:
        with self._outbox.hold(), self._document.batch():
            yield

    def _frontend_tools(self) -> set[str]:
        return {tool.name for tool in self.tools}


class Batch:
    """A block of state changes that are sent together or not at all; a plain or an async context manager."""

    def __init__(self, block: Any) -> None:
        self._block = block

    def __enter__(self) -> None:
        self._block.__enter__()

    def __exit__(
        self, kind: type[BaseException] | None, exc: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._block.__exit__(kind, exc, traceback)

    async def __aenter__(self) -> None:
        self.__enter__()

    async def __aexit__(
        self, kind: type[BaseException] | None, exc: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.__exit__(kind, exc, traceback)
