"""Xie, Fan, Verscheure, Ren 2010: Efficient and Numerically Stable Sparse Learning."""
