"""What tests share: stand-ins for servers, builders, drivers."""
