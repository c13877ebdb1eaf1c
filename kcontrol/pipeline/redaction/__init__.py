"""Stable names in the place of the names of topics, hosts and clients, for `--redact`.

`stable_names.py` computes the stable name of a name with a secret key. `journals.py` replaces the names in journals of runs,
`logs/redaction.py` those in broker logs, and `offsets/offset_tables.py` those in segments.
"""
