"""Stand-ins on loopback for the servers that tarsd talks to: the real wire formats, and misbehaviour as told."""
