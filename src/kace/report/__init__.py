"""What everything that listens has in common: who may ask, and how the port is opened and closed."""
