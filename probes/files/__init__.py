"""Files of a run and of its user: folders, block layers, page cache, and how a run's own go.

It imports core, system and sockets. Begin with folders.py, then created_folder.py.
"""
