"""Solution: broker 2 logs the refusal, goes on, and gets the other controller's epoch from its listener."""

answer = [2, "BadVersion", "/controller_epoch"]
