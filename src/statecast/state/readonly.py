"""`ReadOnly`: the mark of a field that the server owns."""

from __future__ import annotations

import types
from typing import Annotated, Any, NotRequired, Required, Union, get_args, get_origin

from pydantic import GetJsonSchemaHandler
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import CoreSchema
from typing_extensions import TypeAliasType

__all__ = ["ReadOnly", "is_mark", "is_read_only"]


class ReadOnly:
    """Marks a field that clients see and cannot set: `owner: Annotated[str, ReadOnly] = ""`.

    What a client sends for it is thrown away, at every depth. The value comes from `Agent.load_state`, which is
    believed; else, for fields that are reached through objects alone, from `Agent.initial_state`; else from the field's
    default. Inside a list or a dict no initial value corresponds to an item: there it is `load_state` or the default,
    and a field without a default makes the state invalid that a client sends.

    Without a mark the client owns the state: it sends it with every run, and what is valid of it is believed.
    """

    @classmethod
    def __get_pydantic_json_schema__(cls, schema: CoreSchema, handler: GetJsonSchemaHandler) -> JsonSchemaValue:
        result = handler(schema)
        result["readOnly"] = True
        return result


def is_mark(item: Any) -> bool:
    """Whether this, out of what `Annotated` adds, is the mark."""
    return item is ReadOnly or isinstance(item, ReadOnly)


def is_read_only(annotation: Any) -> bool:
    """Whether a field with this annotation is marked.

    Raises:
        TypeError: the mark stands inside a list, a dict or another generic type, where no field is.
    """
    if isinstance(annotation, TypeAliasType):
        return is_read_only(annotation.__value__)
    origin, args = get_origin(annotation), get_args(annotation)
    if isinstance(origin, TypeAliasType):
        return is_read_only(origin.__value__)
    if origin is Annotated:
        return any(is_mark(item) for item in args[1:]) or is_read_only(args[0])
    found = [is_read_only(arg) for arg in args if not is_mark(arg)] if args else []
    if not any(found):
        return False
    if origin in (Union, types.UnionType, Required, NotRequired):
        return True
    raise TypeError(f"ReadOnly marks a field: it cannot stand inside {annotation!r}")
