"""`State`: a pydantic model whose fields are tracked."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, ClassVar, Self, cast

from pydantic import BaseModel, ConfigDict, GetCoreSchemaHandler, ValidationError
from pydantic_core import CoreSchema, core_schema

from ..errors import StateError
from . import pointer
from .fields import Fields
from .intake import LINKED, Intake, edit, put, touched
from .nodes import Schemas
from .readback import check_no_cached_property, check_reads_back
from .readers import fitting, is_read_as, kept
from .tracker import LOOSE, MISSING, SLOTS, Node, Spec, acquire, tracker_of
from .values import ATOMS, check

__all__ = ["State"]

_SLOTS = frozenset((*SLOTS, "_sent"))


def _settle(model: Any) -> Any:
    """Makes the containers in a new model tracked ones, before anybody sees them."""
    if getattr(model, "_spec", None) is LINKED:
        return model
    _fields_of(type(model))
    if all(type(value) in ATOMS for value in model.__dict__.values()):
        return model
    intake = Intake(None, LOOSE)
    intake.root(model)
    tracker = acquire(model)
    try:
        intake.admit(tracker)
    finally:
        tracker.release()
    model.__pydantic_fields_set__.update(
        name
        for name, value in model.__dict__.items()
        if isinstance(value, Node) and name not in model.__pydantic_fields_set__
    )
    return model


class State(Node, BaseModel):
    """A typed state: a pydantic model whose changes a document finds, down to the last item of its lists.

        class Trip(State):
            city: str = ""
            stops: list[Stop] = []

    Assigning a field validates it; the lists and dicts in it are tracked, and what is put into them is validated by the item
    type. An edit inside a field that has a constraint or a validator of its own, or in a model with validators, validates
    the field with the edit applied: it costs the size of the field, and a failure undoes the edit. Aliases are the names on
    the wire. Computed fields are written when the model, or anything under it, changed.

    The class must be able to read what it writes, as the client sends the state back with its next run.

    Raises:
        TypeError: (when the class is defined) it would not read what it writes, or holds a secret in a field that is sent.
        ValidationError: (when a field is assigned, or a container in it edited) the value is not valid.
        StateError: (likewise) the value is not JSON. The model is as it was before.
    """

    __slots__ = (*SLOTS, "_sent", "__weakref__")

    model_config = ConfigDict(validate_assignment=True, allow_inf_nan=False)

    _fields: ClassVar[Fields | None] = None

    @classmethod
    def __get_pydantic_core_schema__(cls, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        schema = handler(source)
        # Outermost, so that what validators of authors put into the model is settled too: where they would be, in the
        # definition itself, which is what other models refer to.
        own: dict[str, Any] = cast(Any, handler.resolve_ref_schema(schema))
        if own.get("function", {}).get("function") is not _settle:
            outer = {key: own.pop(key) for key in ("ref", "metadata") if key in own}
            inner = cast(CoreSchema, dict(own))
            own.clear()
            own.update(core_schema.no_info_after_validator_function(_settle, inner), **outer)
        return schema

    @classmethod
    def __pydantic_init_subclass__(cls, **kwargs: Any) -> None:
        super().__pydantic_init_subclass__(**kwargs)
        cls._fields = None
        check_no_cached_property(cls)
        if cls.model_config.get("extra") == "allow":
            raise TypeError(f"{cls.__name__}: a State has no extra members: declare a field dict[str, Any] for them")
        if cls.__pydantic_complete__:
            _fields_of(cls)

    @classmethod
    def model_construct(cls, _fields_set: set[str] | None = None, **values: Any) -> Self:
        return _settle(super().model_construct(_fields_set, **values))

    def model_copy(self, **options: Any) -> Self:
        return _settle(super().model_copy(**options))

    def __deepcopy__(self, memo: dict[int, Any] | None = None) -> Self:
        return _settle(super().__deepcopy__(memo))

    if not TYPE_CHECKING:
        # Hidden, as a visible one would turn off the checks of attribute names for every subclass.

        def __setattr__(self, name: str, value: Any) -> None:
            if name in _SLOTS:
                object.__setattr__(self, name, value)
            elif name in type(self).__pydantic_fields__:
                self._assign(name, value)
            else:
                super().__setattr__(name, value)
                if self._derives and name in self.__private_attributes__:
                    touched(self)

        def __delattr__(self, name: str) -> None:
            if name in type(self).__pydantic_fields__:
                raise StateError(
                    f"a field of {type(self).__name__} cannot be deleted: assign another value", f"/{name}"
                )
            super().__delattr__(name)

        def __setstate__(self, state: dict[Any, Any]) -> None:
            super().__setstate__(state)
            _settle(self)

    def _assign(self, name: str, value: Any) -> None:
        held = self.__dict__
        if held.get(name, MISSING) is value:
            return
        fields = _fields_of(type(self))
        reader = fields.readers.get(name)
        if reader is None:
            self._assign_judged(name, value)
            return
        spec = fields.specs[name]
        try:
            read = reader(value, spec)
        except ValidationError:
            # For an error that speaks of the model and the field.
            self._shadow(name, value)
            raise
        if type(read) in ATOMS:
            tracker = acquire(self)
            try:
                put(tracker, self, name, read)
            finally:
                tracker.release()
        else:
            edit(self, {name: read}, {name: spec})
        self.__pydantic_fields_set__.add(name)

    def _assign_judged(self, name: str, value: Any) -> None:
        fields = _fields_of(type(self))
        spec = fields.specs[name]
        fitting(value, spec)
        shadow = self._shadow(name, value)
        changes = {key: new for key, new in shadow.__dict__.items() if new is not self.__dict__.get(key, MISSING)}
        if name in changes:
            changes[name] = kept(value, changes[name], spec)
        edit(self, changes, fields.specs)
        self._take_over(shadow)

    def _take_over(self, shadow: State) -> None:
        self.__pydantic_fields_set__.update(shadow.__pydantic_fields_set__)
        private = shadow.__pydantic_private__
        if private is not None and private != self.__pydantic_private__:
            object.__setattr__(self, "__pydantic_private__", private)
            if self._derives:
                touched(self)

    def _shadow(self, name: str, value: Any) -> State:
        """A copy of the model in which the field is validated and assigned: what a validator refuses never gets here."""
        cls = type(self)
        shadow = cls.__new__(cls)
        object.__setattr__(shadow, "__dict__", dict(self.__dict__))
        object.__setattr__(shadow, "__pydantic_extra__", None)
        object.__setattr__(shadow, "__pydantic_fields_set__", set(self.__pydantic_fields_set__))
        object.__setattr__(shadow, "__pydantic_private__", copy.copy(self.__pydantic_private__))
        tracker_of(shadow)
        shadow._spec = LINKED
        cls.__pydantic_validator__.validate_assignment(shadow, name, value)
        return shadow

    def _judge(self, field: str, value: Any, exact: bool) -> None:
        """Judges an edit inside a field: `value` is the field's as it would be. What validators assign is assigned."""
        shadow = self._shadow(field, value)
        if exact and not is_read_as(value, shadow.__dict__[field]):
            raise StateError("this would be read back as something else: assign what the type says", f"/{field}")
        changes = {key: new for key, new in shadow.__dict__.items() if new is not self.__dict__.get(key, MISSING)}
        changes.pop(field, None)
        if changes:
            edit(self, changes, _fields_of(type(self)).specs)
        self._take_over(shadow)

    # A node of a state

    def _raw(self) -> dict[str, Any]:
        return self.__dict__

    def _adopt(self, take: Callable[[Any, str, Spec | None], Any]) -> None:
        fields = _fields_of(type(self))
        held = self.__dict__
        for name, value in held.items():
            if type(value) not in ATOMS:
                held[name] = take(value, name, fields.specs.get(name))

    def _derive(self) -> dict[str, Any]:
        fields = _fields_of(type(self))
        serializer = type(self).__pydantic_serializer__
        try:
            include = None if fields.whole else set(fields.derived)
            plain = serializer.to_python(self, mode="json", by_alias=True, include=include, warnings=False)
            if not isinstance(plain, dict):
                raise StateError("the serializer of a State must give a dict: derive from BaseModel for other JSON")
            check(plain, [])
        except StateError:
            raise
        except Exception as exc:
            name = next((name for name in fields.derived if not _can_write(self, name)), None)
            where = "" if name is None else pointer.join(fields.derived[name])
            raise StateError(f"{type(exc).__name__} while it was written: {exc}", where) from exc
        return plain


def _can_write(model: State, name: str) -> bool:
    try:
        type(model).__pydantic_serializer__.to_python(model, mode="json", include={name}, warnings=False)
    except Exception:
        return False
    return True


def _fields_of(cls: type[State]) -> Fields:
    """What the class knows of its fields; made when the class is defined, or with forward references when it is used."""
    fields = cls.__dict__.get("_fields")
    if fields is None:
        check_reads_back(Schemas(cast(Any, cls.__pydantic_core_schema__)), cls.__name__)
        fields = cls._fields = Fields(cls)
        cls._names = fields.names
        cls._derives = bool(fields.derived) or fields.whole
    return cast(Fields, fields)
