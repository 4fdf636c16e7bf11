"""Reads a Dockerfile as far as ours goes."""

from __future__ import annotations

import json
import re
import shlex
from dataclasses import dataclass, field


@dataclass
class Stage:
    base: str
    name: str | None
    instructions: list[tuple[str, str]] = field(default_factory=list)

    def all(self, keyword: str) -> list[str]:
        """The arguments of every instruction of this kind, in order."""
        return [rest for word, rest in self.instructions if word == keyword]

    def last(self, keyword: str) -> str:
        """The arguments of the instruction that counts.

        Raises:
            LookupError: there is none.
        """
        found = self.all(keyword)
        if not found:
            raise LookupError(f"the stage has no {keyword}")
        return found[-1]

    def command(self, keyword: str) -> list[str]:
        """The words of ENTRYPOINT, CMD or a HEALTHCHECK's CMD.

        Raises:
            ValueError: it is not in exec form, so a shell would be process 1 and take the signals.
        """
        text = self.last(keyword)
        start = text.find("[")
        if start < 0:
            raise ValueError(f"{keyword} {text} is not in exec form")
        words: list[str] = json.loads(text[start:])
        return words

    @property
    def environment(self) -> dict[str, str]:
        """What ENV sets."""
        pairs = [word.partition("=") for rest in self.all("ENV") for word in shlex.split(rest)]
        return {name: value for name, _, value in pairs}


def read_dockerfile(text: str) -> list[Stage]:
    """The stages of a Dockerfile; the image is the last."""
    lines = [line for line in text.splitlines() if line.strip() and not line.lstrip().startswith("#")]
    joined = re.sub(r"\\\n", " ", "\n".join(lines))
    stages: list[Stage] = []
    for line in joined.splitlines():
        word, _, rest = line.strip().partition(" ")
        if word == "FROM":
            base, _, name = rest.partition(" AS ")
            stages.append(Stage(base, name or None))
        else:
            stages[-1].instructions.append((word, " ".join(rest.split()) if word != "HEALTHCHECK" else rest))
    return stages
