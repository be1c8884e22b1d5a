"""The page of a diagnosis: one HTML file, offline, without a script."""

from bottleneck.reports.html.page import html_text

__all__ = ["html_text"]
