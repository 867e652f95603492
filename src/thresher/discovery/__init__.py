"""Honest selection of features: the stated error is the actual error."""

from thresher.discovery.evidence import Evidence
from thresher.discovery.feature_discovery import FeatureDiscovery
from thresher.discovery.findings import Finding
from thresher.discovery.results import DiscoveryWarning
from thresher.discovery.row_checks import Check
from thresher.discovery.sums import EvidenceSums

__all__ = ["Check", "DiscoveryWarning", "Evidence", "EvidenceSums", "FeatureDiscovery", "Finding"]
