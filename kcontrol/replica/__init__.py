"""Decides: what a broker does about what controllers tell it, and about its followers. Pure, like `controller/`."""
