"""`State`: a pydantic model whose fields are tracked."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterable, Mapping
from math import isfinite
from threading import Lock, RLock, get_ident
from typing import TYPE_CHECKING, Any, ClassVar, Self, cast

from pydantic import BaseModel, ConfigDict, GetCoreSchemaHandler, ValidationError
from pydantic_core import CoreSchema, core_schema

from ..errors import StateError
from . import pointer
from .fields import Fields
from .intake import LINKED
from .mutations import edit, put, touched
from .nodes import Schemas
from .positions import located
from .readback import check_no_cached_property, check_reads_back
from .readers import fitting, is_read_as, kept
from .settling import settle
from .tracker import LOOSE, MISSING, SLOTS, Node, Spec, Tracker, acquire
from .values import ATOMS, check

__all__ = ["State"]

_SLOTS = frozenset((*SLOTS, "_sent", "_held"))


class _Held:
    """What a model is for its document while validators run on it.

    Attributes:
        lock: held by the thread in which they run. It is the model's own, as what they do is the author's.
        members: the members as they are until all agree; `None` when none runs.
        thread: that thread.
    """

    __slots__ = ("lock", "members", "thread")

    def __init__(self) -> None:
        self.lock = RLock()
        self.members: dict[str, Any] | None = None
        self.thread = 0


_MAKING = Lock()


class _Judged(Node):
    """A node on which validators run."""

    __slots__ = ()

    if TYPE_CHECKING:
        _held: _Held | None


class State(_Judged, BaseModel):
    """A typed state: a pydantic model whose changes a document finds, down to the last item of its lists.

        class Trip(State):
            city: str = ""
            stops: list[Stop] = []

    Assigning a field validates it. The lists and dicts in it are tracked, and what is put into them is validated as
    their item types say. An edit inside a field that has a constraint or a validator of its own, or in a model with
    validators, validates the field with the edit applied, which costs the size of the field; it is not done if that
    fails. Aliases are the names on the wire. Computed fields are written when the model, or anything under it, changed.

    Excluded fields and private attributes are never written, and never believed when a client sends them. They are kept
    as they are, and so are fields with serializers of the author: what is made of them is compared, as Python does not
    show when their values change.

    The class must be able to read what it writes, as the client sends the state back with its next run.

    Raises:
        TypeError: (when the class is defined) it would not read what it writes, or a field that is sent holds a secret.
        ValidationError: (when a field is assigned, or a container in it edited) the value is not valid.
        StateError: (likewise) the value is not JSON. The model is as it was before.
    """

    __slots__ = (*SLOTS, "_sent", "_held", "__weakref__")

    model_config = ConfigDict(validate_assignment=True, validate_default=True, allow_inf_nan=False)

    _fields: ClassVar[Fields | None] = None
    _atoms: ClassVar[dict[str, type]] = {}

    if not TYPE_CHECKING:

        def __new__(cls, *args: Any, **kwargs: Any) -> Self:
            # Past `__setattr__`, as every model that is read from the wire comes through here.
            self = object.__new__(cls)
            for unset in _UNSET:
                unset(self, None)
            _SET_TRACKER(self, LOOSE)
            return self

    @classmethod
    def __get_pydantic_core_schema__(cls, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        schema = handler(source)
        # Outermost, so that what validators of authors put into the model is settled too; and in the definition
        # itself, which is what other models refer to.
        own: dict[str, Any] = cast(Any, handler.resolve_ref_schema(schema))
        if own.get("function", {}).get("function") is not settle:
            outer = {key: own.pop(key) for key in ("ref", "metadata") if key in own}
            inner = cast(CoreSchema, dict(own))
            own.clear()
            own.update(core_schema.no_info_after_validator_function(settle, inner), **outer)
        return schema

    @classmethod
    def __pydantic_init_subclass__(cls, **kwargs: Any) -> None:
        super().__pydantic_init_subclass__(**kwargs)
        check_no_cached_property(cls)
        if cls.model_config.get("extra") == "allow":
            raise TypeError(f"{cls.__name__}: a State has no extra members: declare a field dict[str, Any] for them")
        cls._fields = None
        if cls.__pydantic_complete__:
            cls._fields_of()

    @classmethod
    def _fields_of(cls) -> Fields:
        """What the class knows of its fields: made when it is defined; with forward references, when it is used."""
        fields = cls.__dict__.get("_fields")
        if fields is None:
            check_reads_back(Schemas(cls.__pydantic_core_schema__), cls.__name__)
            fields = cls._fields = Fields(cls)
            cls._names, cls._atoms = fields.names, fields.atoms
            cls._derives, cls._volatile = fields.derives, fields.volatile
        return cast(Fields, fields)

    @classmethod
    def model_construct(cls, _fields_set: set[str] | None = None, **values: Any) -> Self:
        return settle(super().model_construct(_fields_set, **values))

    def model_copy(self, *, update: Mapping[str, Any] | None = None, deep: bool = False) -> Self:
        copied = self.__deepcopy__() if deep else self.__copy__()
        for name, value in (update or {}).items():
            # As in pydantic, what is given here is not validated.
            copied._store({name: value}, {name})
        return copied

    def __copy__(self) -> Self:
        return settle(super().__copy__())

    def __deepcopy__(self, memo: dict[int, Any] | None = None) -> Self:
        return settle(super().__deepcopy__(memo))

    if not TYPE_CHECKING:
        # Hidden, as a visible one would turn off the checks of attribute names in every subclass.

        def __setattr__(self, name: str, value: Any) -> None:
            if (
                type(value) is self._atoms.get(name)
                and self._spec is LINKED
                and name in self.__pydantic_fields_set__
                and (type(value) is not float or isfinite(value))
            ):
                # The quick way of what follows, for a value that needs no reading.
                tracker = acquire(self)
                try:
                    put(tracker, self, name, value)
                finally:
                    tracker.release()
            elif name in _SLOTS:
                object.__setattr__(self, name, value)
            elif name in type(self).__pydantic_fields__:
                self._assign(name, value)
            else:
                super().__setattr__(name, value)
                if self._derives and name in self.__private_attributes__:
                    touched(self)

        def __delattr__(self, name: str) -> None:
            if name in type(self).__pydantic_fields__:
                error = StateError(f"a field of {type(self).__name__} cannot be deleted: assign another value")
                raise located(error, self, name)
            super().__delattr__(name)

        def __setstate__(self, state: dict[Any, Any]) -> None:
            super().__setstate__(state)
            settle(self)

    # Assignment: read and judged first, and only then stored

    def _assign(self, name: str, value: Any) -> None:
        if (self.__dict__ if self._is_judging() else self._raw()).get(name, MISSING) is value:
            return
        fields = self._fields_of()
        if name in fields.frozen:
            super().__setattr__(name, value)
        elif self._spec is not LINKED or self._is_judging():
            # A validator of the author assigns: the model is judged as a whole when it has finished.
            self.__dict__[name] = fields.read(self.__dict__, name, value)
            self.__pydantic_fields_set__.add(name)
        elif fields.judged or name not in fields.readers:
            spec = fields.specs.get(name)
            try:
                fitting(value, spec)
            except StateError as error:
                raise located(error, self, name) from error
            changes, assigned = self._judged(name, value)
            if name in changes:
                changes[name] = kept(value, changes[name], spec)
            self._store(changes, assigned)
        else:
            try:
                read = fields.readers[name](value, fields.specs.get(name))
            except ValidationError:
                # For an error that names the model and the field.
                self._judged(name, value)
                raise
            except StateError as error:
                raise located(error, self, name) from error
            self._store({name: read}, {name})

    def _judge(self, field: str, value: Any, exact: bool) -> None:
        """Judges an edit in a container: `value` is what its field would be.

        Validators of the model may assign other fields; that is done too.
        """
        if self._is_judging():
            return
        changes, assigned = self._judged(field, value)
        read = changes.pop(field, value)
        if exact and not is_read_as(value, read):
            raise located(
                StateError("this would be read back as something else: assign what the type says"), self, field
            )
        self._store(changes, assigned)

    def _is_judging(self) -> bool:
        held = self._held
        return held is not None and held.members is not None and held.thread == get_ident()

    def _judged(self, name: str, value: Any) -> tuple[dict[str, Any], set[str]]:
        """What assigning this field changes when all validators agree, and the fields that count as set then.

        They run on the model itself, as they may keep it, and see it changed. For the document it is as it was.
        """
        if self._held is None:
            with _MAKING:
                self._held = self._held or _Held()
        held = self._held
        with held.lock:
            members, assigned = self.__dict__, self.__pydantic_fields_set__
            private = copy.copy(self.__pydantic_private__)
            before = dict(members)
            held.thread, held.members = get_ident(), members
            try:
                object.__setattr__(self, "__dict__", dict(members))
                object.__setattr__(self, "__pydantic_fields_set__", set(assigned))
                type(self).__pydantic_validator__.validate_assignment(self, name, value)
                after, now_assigned = self.__dict__, self.__pydantic_fields_set__
            except BaseException:
                object.__setattr__(self, "__pydantic_private__", private)
                raise
            finally:
                object.__setattr__(self, "__dict__", members)
                object.__setattr__(self, "__pydantic_fields_set__", assigned)
                held.members = None
                if self._derives:
                    # It may have been asked meanwhile, and private attributes may have changed.
                    touched(self)
            return {key: new for key, new in after.items() if new is not before.get(key, MISSING)}, now_assigned

    def _store(self, changes: dict[str, Any], assigned: set[str]) -> None:
        """Puts values into the model that are valid already, all or none."""
        fields = self._fields_of()
        new = assigned - self.__pydantic_fields_set__
        undo = (self.__pydantic_fields_set__.difference_update, new) if new else None
        tracked = {name: value for name, value in changes.items() if name in fields.names}
        if tracked or undo:
            edit(self, tracked, fields.specs, undo)
        self.__pydantic_fields_set__.update(new)
        if len(tracked) < len(changes):
            self._keep({name: value for name, value in changes.items() if name not in fields.names})

    def _keep(self, changes: dict[str, Any]) -> None:
        """Stores values that are not tracked."""
        held = self._raw()
        tracker = acquire(self)
        try:
            for name, value in changes.items():
                if tracker.log is not None:
                    tracker.log.append((_put_back, tracker, self, name, held.get(name, MISSING)))
                held[name] = value
            if self._derives and self._old is None:
                tracker.begin(self, {})
        finally:
            tracker.release()

    # A node of a state

    def _raw(self) -> dict[str, Any]:
        held = self._held
        if held is not None:
            members = held.members
            if members is not None:
                return members
        return self.__dict__

    def _members(self) -> Iterable[tuple[str, Any]]:
        held = self._raw()
        return [(name, held[name]) for name in self._names or () if name in held]

    def _adopt(self, take: Callable[[Any, str, Spec | None], Any]) -> None:
        fields = self._fields_of()
        held = self.__dict__
        for name in fields.names:
            value = held.get(name)
            if type(value) not in ATOMS:
                held[name] = take(value, name, fields.specs[name])

    def _derive(self) -> dict[str, Any]:
        fields = self._fields_of()
        try:
            plain = _serialized(self, None if fields.whole else set(fields.derived))
        except Exception as exc:
            where = next((wire for name, wire in fields.derived.items() if not _can_write(self, name)), None)
            where = "" if where is None else pointer.join(where)
            raise StateError(f"{type(exc).__name__} while it was written: {exc}", where) from exc
        if not isinstance(plain, dict):
            raise StateError("the serializer of a State must give a dict; for other JSON derive from BaseModel instead")
        check(plain, [])
        return plain


def _serialized(model: State, include: set[str] | None) -> Any:
    serializer = type(model).__pydantic_serializer__
    return serializer.to_python(model, mode="json", by_alias=True, include=include, warnings=False)


def _can_write(model: State, name: str) -> bool:
    try:
        _serialized(model, {name})
    except Exception:
        return False
    return True


def _put_back(tracker: Tracker, model: State, name: str, old: Any) -> None:
    if old is MISSING:
        del model._raw()[name]
    else:
        model._raw()[name] = old
    if model._derives and model._old is None:
        tracker.begin(model, {})


_SET_TRACKER = vars(State)["_tracker"].__set__
_UNSET = [vars(State)[name].__set__ for name in ("_parents", "_key", "_old", "_spec", "_sent", "_held")]
