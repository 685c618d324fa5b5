"""An MCP server on stdin and stdout, in front of the daemon's socket: what `tarsd mcp` runs.

It holds nothing itself. Every call finds the daemon anew, so that the server lives on when the daemon does not.
"""

from tarsd.mcp_stdio.server import serve

__all__ = ["serve"]
