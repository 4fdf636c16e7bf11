"""Tracked JSON values and the RFC 6902 patches that say what changed in them."""

from .model import State
from .readonly import ReadOnly
from .schema import StateType

__all__ = ["ReadOnly", "State", "StateType"]
