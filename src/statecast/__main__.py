"""`python -m statecast` is the command `statecast`."""

from .cli import main

main()
