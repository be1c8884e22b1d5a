"""Numbers that a person has (a ticket, an article), read from a small file and made a Report."""

from bottleneck.observations.records import SCHEMA, Observations, is_one, is_toml, loads
from bottleneck.observations.told_report import told_report

__all__ = ["SCHEMA", "Observations", "is_one", "is_toml", "loads", "told_report"]
