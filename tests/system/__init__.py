"""Real processes, real sockets, real vaults: what a person would see."""
