"""`touch`: changes that Python cannot show are announced by the pointer at which a client sees them."""

from __future__ import annotations

import array
import heapq
from typing import Annotated, Any

import pytest
from pydantic import BaseModel, ConfigDict, Field, PlainSerializer

from statecast.state import Delta, Document, Snapshot, State


class Numbers(State):
    model_config = ConfigDict(arbitrary_types_allowed=True, serialize_by_alias=True, validate_by_name=True)
    values: Annotated[
        Any, Field(alias="theValues"), PlainSerializer(lambda numbers: list(numbers), return_type=list[int])
    ] = array.array("i")


class Plain(BaseModel):
    inner: list[int] = []


def held(document: Document[Any], taken: Any, before: Any) -> Any:
    import jsonpatch

    if isinstance(taken, Snapshot):
        return taken.value
    return jsonpatch.apply_patch(before, taken.ops) if isinstance(taken, Delta) else before


@pytest.mark.parametrize("pointer", ["", "/m", "/m/theValues", "/m/theValues/1"])
def test_what_only_a_models_serializer_knows(pointer: str) -> None:
    numbers = Numbers(values=array.array("i", [1, 2]))
    document: Document[Any] = Document({"m": numbers})
    before = document.take().value  # type: ignore[union-attr]
    document.value["m"].values[1] = 9
    document.touch(pointer)
    assert held(document, document.take(), before) == {"m": {"theValues": [1, 9]}}


@pytest.mark.parametrize("pointer", ["", "/c", "/c/inner", "/c/inner/0"])
def test_what_an_object_of_somebody_elses_holds(pointer: str) -> None:
    document: Document[Any] = Document({"c": Plain(inner=[1])})
    before = document.take().value  # type: ignore[union-attr]
    document.value["c"].inner[0] = 2
    document.touch(pointer)
    assert held(document, document.take(compare=pointer == ""), before) == {"c": {"inner": [2]}}


@pytest.mark.parametrize("pointer", ["", "/h", "/h/0"])
def test_what_c_code_wrote_past_the_methods(pointer: str) -> None:
    document: Document[Any] = Document({"h": [3, 1, 2]})
    before = document.take().value  # type: ignore[union-attr]
    heapq.heapify(document.value["h"])
    document.touch(pointer)
    assert held(document, document.take(), before) == {"h": [1, 3, 2]}


@pytest.mark.parametrize("pointer", ["/nope", "/h/9", "/h/x", "/h/0/deeper", "/n/x"])
def test_a_place_that_is_not_there(pointer: str) -> None:
    document: Document[Any] = Document({"h": [1], "n": None})
    with pytest.raises(LookupError, match="there is nothing at"):
        document.touch(pointer)
