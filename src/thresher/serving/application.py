"""The ASGI application: routes, bodies, limits and errors."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from thresher.serving import metrics as numbers
from thresher.serving import question as asking
from thresher.serving.access import Access
from thresher.serving.answers import explanations, predictions
from thresher.serving.learn_request import request_of
from thresher.serving.learning import Learning
from thresher.serving.limits import Limits
from thresher.serving.messages import (
    CLOSE,
    Gone,
    Receive,
    Reply,
    Request,
    Scope,
    Send,
    encoded,
    received,
)
from thresher.serving.metrics import Metrics
from thresher.serving.models import Given, Models, ServedModel
from thresher.serving.openapi import description
from thresher.serving.refusal import Refusal
from thresher.serving.rows import ArrayRows, NamedRows, Rows, TextLines, format_of

log = logging.getLogger("thresher.serving")

_SMALL = 1 << 15  # bytes of a body that is answered at once, without a thread
_THREADS = 2


def app(
    models: Given | Sequence[Given] | Mapping[str, Given],
    *,
    limits: Limits | None = None,
    token: str | None = None,
    hosts: tuple[str, ...] = (),
    reload: float | None = 1.0,
    learn: str | None = None,
    checkpoint_every: float = 300.0,
) -> Application:
    """Make an ASGI application that answers requests with models.

    Parameters
    ----------
    models : Model, path, sequence of paths, or mapping of names to models or paths
        A path may be "NAME=PATH"; else the name is that of the file, without suffix.
    limits : Limits, optional
    token : str, optional
        What requests must have in the header Authorization.
    hosts : tuple of str
        Names that the header Host may have; by default any.
    reload : float or None
        Seconds between two looks at the files: a changed file is loaded. None: never.
    learn : path, optional
        A folder for the log and the checkpoints of ``POST /learn``. There must be one model, and
        its file must have the state of the learner.
    checkpoint_every : float
        Seconds between two checkpoints, while rows are learned.

    Returns
    -------
    Application

    Examples
    --------
    >>> import asyncio
    >>> from thresher import OnePassClassifier
    >>> from thresher.serving import app
    >>> rows = [{"colour": "red"}, {"colour": "blue"}] * 20
    >>> model = OnePassClassifier().partial_fit(rows, [1, 0] * 20, classes=[0, 1]).model_
    >>> application = app({"clicks": model})
    >>> reply = asyncio.run(application.answer("POST", "/predict", b'[{"colour": "red"}]'))
    >>> reply.status, reply.body
    (200, b'{"model":"clicks","version":"","rows":[{"label":1}]}')
    """
    served = Models(models)
    learning = None if learn is None else Learning.open(served, learn, checkpoint_every)
    return Application(served, limits or Limits(), Access(token, hosts), reload, learning,
                       bool(token))  # fmt: skip


class Application:
    """An ASGI application; made by `app`."""

    def __init__(
        self,
        models: Models,
        limits: Limits,
        access: Access,
        reload: float | None,
        learning: Learning | None,
        token: bool,
    ) -> None:
        self.models, self.limits, self.metrics = models, limits, Metrics()
        self.learning = learning
        self._access, self._reload = access, reload
        self._pool = ThreadPoolExecutor(_THREADS, "answer")
        self._loader = ThreadPoolExecutor(1, "load")
        self._watching: asyncio.Task[None] | None = None
        self._stopping = False
        self.description = description(limits, learning is not None, token)
        self._routes: dict[str, tuple[str, Callable[[Request], Awaitable[Reply]]]] = {
            "/predict": ("POST", self._predict),
            "/explain": ("POST", self._explain),
            "/models": ("GET", self._models),
            "/healthz": ("GET", self._health),
            "/metrics": ("GET", self._metrics),
            "/openapi.json": ("GET", self._openapi),
            "/docs": ("GET", self._docs),
        }
        if learning is not None:
            self._routes["/learn"] = ("POST", self._learn)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request, or start and stop with the server."""
        if scope["type"] == "lifespan":
            await self._live(receive, send)
        elif scope["type"] == "http":
            await self._http(scope, receive, send)
        else:
            await send({"type": "websocket.close", "code": 1003})

    async def answer(
        self, method: str, path: str, body: bytes = b"", headers: Mapping[bytes, bytes] = {}
    ) -> Reply:
        """Answer a request that is complete; errors are answers, too.

        Parameters
        ----------
        method, path : str
        body : bytes
        headers : mapping
            Names are in lower case.
        """
        path, _, query = path.partition("?")
        given = {b"content-type": asking.JSON.encode(), **headers}

        async def whole() -> bytes:
            return body

        return await self._answered(Request(method, path, query.encode(), given, whole))

    # ---- the life of the server ------------------------------------------------------------------

    async def start(self) -> None:
        """Begin to look for changed files."""
        if self._watching is None and self._reload is not None and self.models.files:
            self._watching = asyncio.create_task(self._watch(self._reload))

    async def stop(self) -> None:
        """Finish what was begun; write the checkpoint of what was learned."""
        self._stopping = True
        if self._watching is not None:
            self._watching.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._watching
            self._watching = None
        if self.learning is not None:
            await asyncio.to_thread(self.learning.close)
        self._pool.shutdown(wait=True)
        self._loader.shutdown(wait=True)

    async def _live(self, receive: Receive, send: Send) -> None:
        while True:
            message = await receive()
            if message["type"] == "lifespan.startup":
                await self.start()
                await send({"type": "lifespan.startup.complete"})
            elif message["type"] == "lifespan.shutdown":
                await self.stop()
                await send({"type": "lifespan.shutdown.complete"})
                return

    async def _watch(self, seconds: float) -> None:
        while True:
            await asyncio.sleep(seconds)
            for file in list(self.models.files.values()):
                if file.changed():
                    loop = asyncio.get_running_loop()
                    await loop.run_in_executor(self._loader, file.reload)

    # ---- requests --------------------------------------------------------------------------------

    async def _http(self, scope: Scope, receive: Receive, send: Send) -> None:
        await self.start()  # some servers do not send the events of the life
        headers = dict(scope["headers"])
        limits = self.limits

        async def body() -> bytes:
            try:
                async with asyncio.timeout(limits.seconds):
                    return await received(headers, receive, limits.body)
            except TimeoutError:
                text = f"the body did not come within {limits.seconds:g} seconds"
                raise Refusal(408, text, CLOSE) from None

        request = Request(scope["method"], scope["path"], scope["query_string"], headers, body)
        try:
            reply = await self._answered(request)
        except Gone:
            return
        sent = (
            (b"content-type", reply.content_type.encode()),
            (b"content-length", str(len(reply.body)).encode()),
            (b"x-content-type-options", b"nosniff"),
            *reply.headers,
        )
        await send({"type": "http.response.start", "status": reply.status, "headers": sent})
        await send({"type": "http.response.body", "body": reply.body})

    async def _answered(self, request: Request) -> Reply:
        begin, known = time.perf_counter(), request.path in self._routes
        self.metrics.in_progress += 1
        reply = None
        try:
            reply = await self._routed(request)
        except Refusal as refusal:
            reply = Reply(refusal.status, encoded(refusal.body()), headers=refusal.headers)
        except MemoryError:
            reply = Reply(503, encoded(Refusal(503, "not enough memory").body()))
        except Gone:
            raise
        except Exception:
            log.exception("%s %s failed", request.method, request.path)
            reply = Reply(500, encoded(Refusal(500, "the server failed; see its log").body()))
        finally:
            self.metrics.in_progress -= 1
            if reply is not None:
                self.metrics.observe(
                    request.path if known else "other",
                    request.method if request.method in ("GET", "POST", "HEAD") else "other",
                    reply.status,
                    time.perf_counter() - begin,
                )
        return reply

    async def _routed(self, request: Request) -> Reply:
        self._access.check(request.headers, open_to_all=request.path == "/healthz")
        route = self._routes.get(request.path)
        if route is None:
            if request.path == "/learn":
                raise Refusal(404, "the server does not learn")
            raise Refusal(404, f"there is no such address; see {', '.join(self._routes)}")
        method, handler = route
        if request.method != method and not (request.method == "HEAD" and method == "GET"):
            allowed = ((b"allow", b"GET, HEAD" if method == "GET" else b"POST"),)
            raise Refusal(405, f"{request.path} needs {method}", allowed)
        return await handler(request)

    async def _question(
        self, request: Request, known: Mapping[str, Any]
    ) -> tuple[asking.Question, bytes]:
        body = await request.body()
        kind = request.headers.get(b"content-type", b"").decode("latin-1")
        parse = asking.question_of
        asked = await self._run(
            len(body), lambda: parse(body, kind, request.query, known, self.limits.rows)
        )
        return asked, body

    async def _run(self, size: int, function: Callable[[], Any]) -> Any:
        """Call a function, in a thread if it may take long."""
        if size <= _SMALL:
            return function()
        loop = asyncio.get_running_loop()
        future = loop.run_in_executor(self._pool, function)
        try:
            async with asyncio.timeout(self.limits.seconds):
                return await future
        except TimeoutError:
            raise Refusal(503, f"the answer took longer than {self.limits.seconds:g} seconds; ask "
                          "for fewer rows") from None  # fmt: skip

    def _rows(self, asked: asking.Question, served: ServedModel) -> Rows:
        if asked.text is not None:
            model, text = served.model, asked.text
            format = format_of(text, asked.options.get("format"), model)
            rows: Rows = TextLines(text, format, self.limits.rows, model)
            if rows.count > self.limits.rows:
                most = f"{self.limits.rows:,}"
                raise Refusal(413, f"{rows.count:,} rows; a request may have {most}")
            if not rows.count:
                raise Refusal(422, "there are no rows")
            return rows
        assert asked.rows is not None
        return (NamedRows if isinstance(asked.rows[0], dict) else ArrayRows)(asked.rows)

    async def _predict(self, request: Request) -> Reply:
        asked, body = await self._question(request, asking.PREDICT)
        served = self.models.find(asked.options.get("model"))

        def work() -> tuple[list[dict[str, Any]], bytes]:
            known = served.known if asked.options.get("unknown", True) else None
            rows = self._rows(asked, served)
            found = predictions(served.model, known, rows, asked.options, self.limits)
            return found, _answer_of(served, found)

        return self._counted(served, *await self._run(len(body), work))

    async def _explain(self, request: Request) -> Reply:
        asked, body = await self._question(request, asking.EXPLAIN)
        served = self.models.find(asked.options.get("model"))

        def work() -> tuple[list[dict[str, Any]], bytes]:
            known = served.known if asked.options.get("unknown", True) else None
            found = explanations(served.model, known, self._rows(asked, served), asked.options)
            return found, _answer_of(served, found)

        return self._counted(served, *await self._run(len(body), work))

    def _counted(self, served: ServedModel, found: list[dict[str, Any]], text: bytes) -> Reply:
        """Return the answer; count its rows."""
        self.metrics.add("thresher_rows_total", served.name, len(found))
        unknown = sum("unknown_features" in one for one in found)
        self.metrics.add("thresher_rows_with_unknown_features_total", served.name, unknown)
        return Reply(200, text)

    async def _learn(self, request: Request) -> Reply:
        assert self.learning is not None
        asked, body = await self._question(request, asking.LEARN)
        served = self.models.find(asked.options.get("model"))
        most = self.limits.rows
        rows = await self._run(len(body), lambda: request_of(asked, served.model, most))
        count, total = await asyncio.wrap_future(self.learning.submit(rows))
        self.metrics.add("thresher_rows_learned_total", served.name, count)
        return Reply(200, encoded({"model": served.name, "learned": count, "rows": total}))

    async def _models(self, request: Request) -> Reply:
        return Reply(200, encoded({"models": [one.about() for one in self.models.all()]}))

    async def _health(self, request: Request) -> Reply:
        models, status = {}, "stopping" if self._stopping else "ok"
        for one in self.models.all():
            file = self.models.files.get(one.name)
            about = {"status": "ok", "version": one.version}
            if file is not None and file.error:
                about |= {"status": "old", "error": file.error}
                status = "degraded"
            models[one.name] = about
        if self.learning is not None and self.learning.error:
            status = "degraded"
            models[self.learning.name] |= {"status": "old", "error": self.learning.error}
        return Reply(503 if self._stopping else 200, encoded({"status": status, "models": models}))

    async def _metrics(self, request: Request) -> Reply:
        files, models = self.models.files, list(self.models.all())
        gauges: dict[str, dict[str, float]] = {
            "thresher_model_nonzeros": {one.name: one.model.nnz for one in models},
            "thresher_model_loaded_seconds": {one.name: one.loaded for one in models},
        }
        if files:
            loads = {name: file.loads for name, file in files.items()}
            failures = {name: file.failures for name, file in files.items()}
            gauges["thresher_model_loads_total"] = dict(loads)
            gauges["thresher_model_load_failures_total"] = dict(failures)
        if self.learning is not None:
            gauges |= self.learning.gauges()
        return Reply(200, self.metrics.text(gauges).encode(), numbers.CONTENT_TYPE)

    async def _openapi(self, request: Request) -> Reply:
        return Reply(200, encoded(self.description))

    async def _docs(self, request: Request) -> Reply:
        from thresher.report.style import POLICY
        from thresher.serving.docs_page import docs_page

        host = request.headers.get(b"host", b"127.0.0.1").decode("latin-1")
        page = docs_page(self.description, list(self.models.all()), f"http://{host}")
        policy = ((b"content-security-policy", f"{POLICY}; frame-ancestors 'none'".encode()),)
        return Reply(200, page.encode(), "text/html; charset=utf-8", policy)


def _answer_of(served: ServedModel, rows: list[dict[str, Any]]) -> bytes:
    return encoded({"model": served.name, "version": served.version, "rows": rows})
