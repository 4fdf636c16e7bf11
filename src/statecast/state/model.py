"""`State`: a pydantic model whose fields are tracked."""

from __future__ import annotations

from typing import Any, cast

from pydantic import BaseModel, ConfigDict

from .members import Schemas
from .readback import check_no_cached_property, check_reads_back

__all__ = ["State"]


class State(BaseModel):
    """A typed state: fields are validated when they are assigned, and written under their aliases."""

    model_config = ConfigDict(validate_assignment=True, allow_inf_nan=False)

    @classmethod
    def __pydantic_init_subclass__(cls, **kwargs: Any) -> None:
        super().__pydantic_init_subclass__(**kwargs)
        check_no_cached_property(cls)
        if cls.__pydantic_complete__:
            check_reads_back(Schemas(cast(Any, cls.__pydantic_core_schema__)), cls.__name__)
