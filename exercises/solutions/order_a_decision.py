"""The reference: read, written, told; and a batch is sent kind by kind."""

order = ["D", "B", "E", "C", "A"]
