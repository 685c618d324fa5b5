"""tarsd: a background daemon for an Obsidian vault. The modules are read in the order of ARCHITECTURE.md."""

__version__ = "0.2.0"
