"""ZooKeeper behind one interface (`port.py`) with two implementations: in memory, and a real server through kazoo."""
