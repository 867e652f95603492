"""Answers requests over HTTP: an ASGI application, and a server for it.

Install it with ``pip install 'thresher[serve]'``. The application itself needs nothing but
Thresher; the server is uvicorn.
"""

from thresher.serving.application import Application, app
from thresher.serving.limits import Limits

__all__ = ["Application", "Limits", "app"]
