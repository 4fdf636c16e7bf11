"""statecast: write AG-UI agents whose state streams itself."""
