"""Reading of byte streams up to an error."""

import pytest

from thresher.data.open_streams import open_bytes
from thresher.errors import DataError


def read_all(path, room=10_007):
    """Return all bytes of a file before an error, and the error or None."""
    parts, buffer = [], bytearray(room)
    with open_bytes(str(path)) as stream:
        try:
            while count := stream.readinto(buffer):
                parts.append(bytes(buffer[:count]))
        except DataError as error:
            with pytest.raises(DataError):  # the next read raises it again
                stream.readinto(buffer)
            return b"".join(parts), str(error)
    return b"".join(parts), None
