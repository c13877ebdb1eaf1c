"""A real ZooKeeper server as a child process, the Java that runs the server, and the watcher that ends the child."""
