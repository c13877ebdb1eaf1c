"""The hash of a string in Java, which decides the order of many collections in Kafka.

Source: String.hashCode.
"""


def java_hash(text: str) -> int:
    """Return Java's hash of a string: over UTF-16 code units, in signed 32 bits."""
    units = text.encode("utf-16-be", "surrogatepass")
    value = 0
    for index in range(0, len(units), 2):
        value = (31 * value + (units[index] << 8 | units[index + 1])) & 0xFFFF_FFFF
    return value - (1 << 32) if value >= 1 << 31 else value
