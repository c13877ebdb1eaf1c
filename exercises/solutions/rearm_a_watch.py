"""Solution: the read that returns the data also sets the next watch."""


def follow(client, path, report):
    """Call report(data) with the znode's data now, and again after each change; client.get(path, watch=...) sets a watch."""

    def look(event=None):
        data, _ = client.get(path, watch=look)
        report(data)

    look()
