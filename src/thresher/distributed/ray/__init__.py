"""The engine on the workers of a Ray cluster; only modules in this folder import Ray."""
