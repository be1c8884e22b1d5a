"""Names, users, addresses and paths of a report replaced by tokens that stay the same."""

from bottleneck.redaction.document import Redaction, redacted

__all__ = ["Redaction", "redacted"]
