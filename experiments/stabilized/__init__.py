"""Ma, Zheng 2017: Stabilized Sparse Online Learning for Sparse Data."""
