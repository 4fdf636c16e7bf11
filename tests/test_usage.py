"""Token usage of a run (U1, U2)."""

from __future__ import annotations

from typing import Any

import pytest
from ag_ui.core import TokenUsage

from statecast.usage import Usage


def test_U1_entries_add_up_per_provider_and_model_and_totals_are_filled_in() -> None:
    usage = Usage()
    usage.add(provider="p", model="m", input_tokens=10, output_tokens=5, cached_input_tokens=4)
    usage.add(provider="p", model="m", input_tokens=1, output_tokens=2, reasoning_tokens=1)
    usage.add(provider="p", model="n", input_tokens=7)
    assert usage.wire() == [
        {
            "provider": "p",
            "model": "m",
            "inputTokens": 11,
            "outputTokens": 7,
            "totalTokens": 18,
            "cachedInputTokens": 4,
            "reasoningTokens": 1,
        },
        {"provider": "p", "model": "n", "inputTokens": 7},
    ]


def test_U1_a_count_that_nobody_reported_is_absent_and_a_reported_zero_stays() -> None:
    usage = Usage()
    usage.add(model="m", output_tokens=0)
    assert usage.wire() == [{"model": "m", "outputTokens": 0}]


def test_a_protocol_entry_is_taken_as_it_is_and_not_kept() -> None:
    usage = Usage()
    entry = TokenUsage(model="m", input_tokens=3)
    usage.add(entry)
    entry.input_tokens = 99
    assert usage.wire() == [{"model": "m", "inputTokens": 3}]


def test_a_run_without_model_calls_reports_nothing() -> None:
    assert Usage().wire() == []


@pytest.mark.parametrize(
    "counts",
    [
        {"input_tokens": 3, "cached_input_tokens": 4},
        {"input_tokens": 5, "cached_input_tokens": 3, "cache_write_input_tokens": 3},
        {"output_tokens": 1, "reasoning_tokens": 2},
        {"input_tokens": -1},
    ],
)
def test_U1_parts_that_exceed_their_total_are_refused(counts: dict[str, Any]) -> None:
    usage = Usage()
    with pytest.raises(ValueError):  # noqa: PT011
        usage.add(model="m", **counts)
    assert usage.wire() == []
