"""An import that fails where a system has not all that Linux has."""

import os

FLAGS = os.O_TMPFILE | os.O_PATH
