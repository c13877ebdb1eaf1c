"""Search through all orders of actions: a world with memoized drivers, invariants, and shortest counterexamples."""
