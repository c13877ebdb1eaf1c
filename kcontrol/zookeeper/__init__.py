"""ZooKeeper behind one port, with two implementations: in memory, and a real server through kazoo."""
