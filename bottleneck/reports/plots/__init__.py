"""The drawings of a page: SVG from a report, its diagnosis and the history of its copies."""
