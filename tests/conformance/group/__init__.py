"""Cases for the group coordinator, in the format of FORMAT-group.md."""
