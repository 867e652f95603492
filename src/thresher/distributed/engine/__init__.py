"""The engine that takes pieces through stages; it does not import Ray."""
