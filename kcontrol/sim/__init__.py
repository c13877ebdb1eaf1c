"""A world: brokers, network, faults, and what can happen next as a value."""
