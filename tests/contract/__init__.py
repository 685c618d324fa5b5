"""What several implementations of one interface, or both sides of a format, must do."""
