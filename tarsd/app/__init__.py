"""What the daemon does, apart from being a process: its parts wired by hand, and one method for each thing asked."""

from tarsd.app.application import Application

__all__ = ["Application"]
