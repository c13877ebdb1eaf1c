import sys

# jsonschema imports this parser of addresses if it is there, which takes 1.4 s in each process. No test asks it for an address.
sys.modules["rfc3987_syntax"] = None  # type: ignore[assignment]
