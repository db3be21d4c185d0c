"""Says the lines of a load test to a system and keeps what became of them: the driver and its client processes."""
