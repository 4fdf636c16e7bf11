"""One run's ordered events: the rules, the encoding, the channel to its readers."""
