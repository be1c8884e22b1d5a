"""Two hosts on this one: namespaces, a link with a planted cap, and a private Samba."""
