"""Every record of the loggers `statecast.run`, `.state` and `.server` carries `thread_id` and `run_id`; `None` outside runs."""

from __future__ import annotations

import logging
from contextvars import ContextVar

__all__ = ["run_ids"]

run_ids: ContextVar[tuple[str | None, str | None]] = ContextVar("statecast.run_ids", default=(None, None))
"""The thread's and the run's id of what is going on in this context."""


class _Ids(logging.Filter):
    def filter(self, record: logging.LogRecord) -> bool:
        if "run_id" not in record.__dict__:
            record.thread_id, record.run_id = run_ids.get()
        return True


for name in ("run", "state", "server"):
    logging.getLogger(f"statecast.{name}").addFilter(_Ids())
