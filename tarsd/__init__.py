"""tarsd: a background daemon for an Obsidian vault. The modules are read in the order of ARCHITECTURE.md."""

import os

__version__ = "0.2.0"

# Before anything is imported and any child is started: onnxruntime would keep a device id and an event log in the
# user's cache folder, and ask for a host to send them to.
os.environ["ORT_DISABLE_TELEMETRY"] = "1"
