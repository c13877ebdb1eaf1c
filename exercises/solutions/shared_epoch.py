"""The reference: it logs the refusal, goes on, and takes the other one's epoch over when its listener is told of it."""

answer = [2, "BadVersion", "/controller_epoch"]
