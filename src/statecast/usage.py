"""The token usage of a run, one entry per provider and model (U1, U2)."""

from __future__ import annotations

from typing import Any

from ag_ui.core import TokenUsage, aggregate_token_usage

__all__ = ["Usage"]


class Usage:
    """Adds up what the model calls of one run have used; it goes out on the terminal event only."""

    def __init__(self) -> None:
        self._entries: list[TokenUsage] = []

    def add(
        self,
        usage: TokenUsage | None = None,
        /,
        *,
        provider: str | None = None,
        model: str | None = None,
        input_tokens: int | None = None,
        output_tokens: int | None = None,
        cached_input_tokens: int | None = None,
        cache_write_input_tokens: int | None = None,
        reasoning_tokens: int | None = None,
    ) -> None:
        """Adds one model call.

        The counts are totals as U1 defines them: `input_tokens` includes the cached ones and those written to the cache
        (Anthropic reports these apart: add them first), `output_tokens` includes the reasoning. A count that the provider
        did not report stays `None`; it is never 0. Subagents' calls count, a separately started run's do not (U2).

        Raises:
            ValueError: a count is negative, or a part is larger than its total.
        """
        if usage is None:
            usage = TokenUsage(
                provider=provider,
                model=model,
                input_tokens=input_tokens,
                output_tokens=output_tokens,
                cached_input_tokens=cached_input_tokens,
                cache_write_input_tokens=cache_write_input_tokens,
                reasoning_tokens=reasoning_tokens,
            )
        _check(usage)
        self._entries.append(usage.model_copy())

    def totals(self) -> list[TokenUsage]:
        """One entry per provider and model, in the order of their first appearance, `total_tokens` filled in."""
        totals = aggregate_token_usage(self._entries)
        for entry in totals:
            if entry.input_tokens is not None and entry.output_tokens is not None:
                entry.total_tokens = entry.input_tokens + entry.output_tokens
        return totals

    def wire(self) -> list[dict[str, Any]]:
        """The totals in wire form."""
        return [entry.model_dump(mode="json", by_alias=True) for entry in self.totals()]


def _check(usage: TokenUsage) -> None:
    parts = (usage.cached_input_tokens or 0) + (usage.cache_write_input_tokens or 0)
    if usage.input_tokens is not None and parts > usage.input_tokens:
        raise ValueError(
            f"input_tokens={usage.input_tokens} is a total and must include the {parts} cached and cache-write tokens [U1]"
        )
    if usage.output_tokens is not None and (usage.reasoning_tokens or 0) > usage.output_tokens:
        raise ValueError(
            f"output_tokens={usage.output_tokens} is a total and must include "
            f"the {usage.reasoning_tokens} reasoning tokens [U1]"
        )
