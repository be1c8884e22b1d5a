"""What a person reads: a diagnosis as text, page or ticket; nothing is decided here."""
