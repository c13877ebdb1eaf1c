"""Acts: the driver, the journal, clocks, and ZooKeeper behind one port with two implementations."""
