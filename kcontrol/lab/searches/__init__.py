"""Searches, in this process or on Spark, for a run that breaks a promise; and the museum of published bugs."""
