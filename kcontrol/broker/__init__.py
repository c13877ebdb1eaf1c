"""Decides: responses of a broker to controllers, and changes of its logs after leadership. Pure."""
