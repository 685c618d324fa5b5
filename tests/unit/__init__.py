"""One module each, nothing started."""
