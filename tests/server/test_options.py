import math

import pytest

from statecast.server.options import Options


@pytest.mark.parametrize("name", ["state_interval", "keepalive", "send_timeout", "timeout", "grace"])
@pytest.mark.parametrize(("value", "error"), [(-1, ValueError), (math.nan, ValueError), (math.inf, ValueError),
                                              ("5", TypeError), (True, TypeError)])  # fmt: skip
def test_times_are_finite_numbers_of_seconds(name: str, value: object, error: type[Exception]) -> None:
    with pytest.raises(error, match=name):
        Options(**{name: value})


@pytest.mark.parametrize("name", ["keepalive", "send_timeout", "timeout"])
def test_a_wait_of_no_time_is_refused(name: str) -> None:
    with pytest.raises(ValueError, match=name):
        Options(**{name: 0})


def test_intervals_and_grace_may_be_zero() -> None:
    assert Options(state_interval=0, grace=0).grace == 0


def test_only_the_time_limit_may_be_none() -> None:
    assert Options(timeout=None).timeout is None
    with pytest.raises(TypeError, match="state_interval"):
        Options(state_interval=None)  # type: ignore[arg-type]


@pytest.mark.parametrize("name", ["max_body", "max_runs"])
@pytest.mark.parametrize(("value", "error"), [(0, ValueError), (-5, ValueError), (1.5, TypeError), (True, TypeError)])
def test_counts_are_positive_integers(name: str, value: object, error: type[Exception]) -> None:
    with pytest.raises(error, match=name):
        Options(**{name: value})


def test_one_origin_without_a_list_is_a_mistake() -> None:
    with pytest.raises(TypeError, match=r"cors=\['https://a.example'\]"):
        Options(cors="https://a.example")  # type: ignore[arg-type]


@pytest.mark.parametrize("origin", ["a.example", "https://a.example/", "https://a.example/page", "https://", ""])
def test_an_origin_that_no_browser_sends_is_refused(origin: str) -> None:
    with pytest.raises(ValueError, match="cors"):
        Options(cors=(origin,))


def test_origins_become_a_tuple() -> None:
    assert Options(cors=["https://a.example", "http://localhost:3000", "*"]).cors == (  # type: ignore[arg-type]
        "https://a.example",
        "http://localhost:3000",
        "*",
    )


def test_the_first_state_is_one_of_two() -> None:
    with pytest.raises(ValueError, match="first_state"):
        Options(first_state="both")  # type: ignore[arg-type]


def test_debug_is_a_bool() -> None:
    with pytest.raises(TypeError, match="debug"):
        Options(debug="no")  # type: ignore[arg-type]
