"""Solution: the read whose answer is handed on leaves the next watch."""


def follow(client, path, told):
    """Call told(data) with what the znode holds now, and again after each change; client.get(path, watch=...) leaves a watch."""

    def look(event=None):
        data, _ = client.get(path, watch=look)
        told(data)

    look()
