"""Random scenarios on official Kafka brokers, played by ours and compared."""
