"""copy-bottleneck: names the component that caps a file copy."""

# Below 1.2.1 for good: of a newer version pandas would take us for the numeric package.
__version__ = "0.1.0"
