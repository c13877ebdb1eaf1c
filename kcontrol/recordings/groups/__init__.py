"""Recordings of real group coordinators: their format, their journals, the player of their requests, and the comparison."""
