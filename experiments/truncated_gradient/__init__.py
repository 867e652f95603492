"""Langford, Li, Zhang: Sparse Online Learning via Truncated Gradient (NIPS 2008)."""
