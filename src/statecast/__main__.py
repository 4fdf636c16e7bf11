"""`python -m statecast` is the command `statecast`."""

from .cli import main

if __name__ == "__main__":
    main()
