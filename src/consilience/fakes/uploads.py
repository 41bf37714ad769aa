"""An uploaded form, read without a further dependency."""

from __future__ import annotations

from email.parser import BytesParser
from email.policy import HTTP

from consilience.fakes.refusals import RefusedError

FIELDS = frozenset({"file", "purpose"})


def read_upload(content_type: str, body: bytes) -> tuple[str, bytes]:
    r"""Return name and content of the batch input file in a ``multipart/form-data`` body.

    Raises:
        RefusedError: The form lacks a field, has another, or the file is for something else.

    Example:
        >>> part = b'--b\r\nContent-Disposition: form-data; name="'
        >>> body = part + b'purpose"\r\n\r\nbatch\r\n' + part + b'file"; filename="a"\r\n\r\n{}\r\n--b--\r\n'
        >>> read_upload("multipart/form-data; boundary=b", body)
        ('a', b'{}')
    """
    form = BytesParser(policy=HTTP).parsebytes(f"Content-Type: {content_type}\r\n\r\n".encode() + body)
    if form.get_content_type() != "multipart/form-data" or not form.is_multipart():
        raise RefusedError(400, "Expected multipart/form-data.")
    found: dict[str, tuple[str, bytes]] = {}
    for part in form.iter_parts():
        name = part.get_param("name", header="content-disposition")
        content = part.get_payload(decode=True)
        found[str(name)] = (part.get_filename() or "", content if isinstance(content, bytes) else b"")
    if found.keys() != FIELDS:
        raise RefusedError(400, f"Expected the fields file and purpose; found {', '.join(sorted(found))}.")
    if found["purpose"][1] != b"batch":
        raise RefusedError(400, "The fake keeps files for batches only.", param="purpose")
    return found["file"]
