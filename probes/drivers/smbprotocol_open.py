"""Opening, listing and removing on a tree connection of the smbprotocol library."""

from __future__ import annotations

import contextlib
from typing import Any

from smbprotocol.exceptions import NoMoreFiles
from smbprotocol.file_info import FileInformationClass
from smbprotocol.open import (
    CreateDisposition,
    CreateOptions,
    DirectoryAccessMask,
    FileAttributes,
    FilePipePrinterAccessMask,
    ImpersonationLevel,
    Open,
    ShareAccess,
)

_SHARE_ALL = (
    ShareAccess.FILE_SHARE_READ | ShareAccess.FILE_SHARE_WRITE | ShareAccess.FILE_SHARE_DELETE
)
_LIST_AND_DELETE = (
    DirectoryAccessMask.FILE_LIST_DIRECTORY
    | DirectoryAccessMask.FILE_READ_ATTRIBUTES
    | DirectoryAccessMask.DELETE
    | DirectoryAccessMask.SYNCHRONIZE
)
_READ = FilePipePrinterAccessMask.GENERIC_READ
_WRITE = FilePipePrinterAccessMask.GENERIC_WRITE
_DELETE = FilePipePrinterAccessMask.DELETE


def folder(tree: Any, path: str, new: bool) -> Any:
    """A folder, deleted when its last handle is closed."""
    options = CreateOptions.FILE_DIRECTORY_FILE | CreateOptions.FILE_DELETE_ON_CLOSE
    return _opened(tree, path, _LIST_AND_DELETE, options, new)


def new_file(tree: Any, path: str) -> Any:
    """A file to read and write, deleted when its last handle is closed."""
    options = CreateOptions.FILE_NON_DIRECTORY_FILE | CreateOptions.FILE_DELETE_ON_CLOSE
    return _opened(tree, path, _READ | _WRITE | _DELETE, options, True)


def file(tree: Any, path: str, write: bool) -> Any:
    """A file that is there."""
    access = _READ | _WRITE if write else _READ
    return _opened(tree, path, access, CreateOptions.FILE_NON_DIRECTORY_FILE, False)


def doomed_file(tree: Any, path: str) -> Any:
    """A file that is there and goes when this handle is closed."""
    options = CreateOptions.FILE_NON_DIRECTORY_FILE | CreateOptions.FILE_DELETE_ON_CLOSE
    return _opened(tree, path, _DELETE, options, False)


def names(tree: Any, path: str) -> tuple[str, ...]:
    """What lies in a folder."""
    access = DirectoryAccessMask.FILE_LIST_DIRECTORY
    opened = _opened(tree, path, access, CreateOptions.FILE_DIRECTORY_FILE, False)
    found: list[str] = []
    with contextlib.suppress(NoMoreFiles):
        while True:
            for entry in opened.query_directory("*", FileInformationClass.FILE_NAMES_INFORMATION):
                found.append(entry["file_name"].get_value().decode("utf-16-le"))
    opened.close()
    return tuple(name for name in found if name not in (".", ".."))


def _opened(tree: Any, path: str, access: int, options: int, new: bool) -> Any:
    opened = Open(tree, path)
    is_folder = options & CreateOptions.FILE_DIRECTORY_FILE
    opened.create(
        ImpersonationLevel.Impersonation,
        access,
        FileAttributes.FILE_ATTRIBUTE_DIRECTORY if is_folder else 0,
        _SHARE_ALL,
        CreateDisposition.FILE_CREATE if new else CreateDisposition.FILE_OPEN,
        options,
    )
    return opened
