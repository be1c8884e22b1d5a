"""`bottleneck schema`: the report's JSON Schema."""

from __future__ import annotations


def schema() -> int:
    """Print the JSON Schema of a report."""
    import json

    from bottleneck import report_schema

    print(json.dumps(report_schema.schema(), indent=1))
    return 0
