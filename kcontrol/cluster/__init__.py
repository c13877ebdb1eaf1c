"""A cluster: brokers, network, faults, and the list of actions that can happen next."""
