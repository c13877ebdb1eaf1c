"""A real ZooKeeper server as a child process: finds a Java, starts the server, and ends it when the parent process ends."""
