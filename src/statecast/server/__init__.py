"""HTTP: a request becomes a validated input, a run, and a response."""
