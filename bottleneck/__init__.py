"""copy-bottleneck: names the component that caps a file copy."""

# Below 1.2.1 for good: pandas takes an importable `bottleneck` of a newer version for the numeric package.
__version__ = "0.1.0"
