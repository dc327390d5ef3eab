"""qjam.master by its old name."""
