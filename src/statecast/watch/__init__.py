"""`statecast watch`: runs an agent at a URL and shows its state and messages live in the terminal."""

from .command import command

__all__ = ["command"]
