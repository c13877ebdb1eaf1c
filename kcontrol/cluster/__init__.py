"""A cluster in one process: its brokers, consumers, network and faults, and the list of the actions that are possible next."""
