"""Stand-ins on loopback for the servers that tarsd talks to; they speak the real wire formats, and misbehave as told."""
