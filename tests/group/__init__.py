"""The group coordinator beyond its cases."""
