"""The drawings of a page: SVG from a report and its diagnosis."""
