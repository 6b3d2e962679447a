"""Writes models.py, _calls.py and _namespaces.py of the package from the service's
OpenAPI document, so that the package has every public endpoint and its types, and aio.py
from client.py, so that the blocking and the asyncio client have one source.

    python3 tools/generate.py           write them
    python3 tools/generate.py --check   say whether they are as they should be
"""

from __future__ import annotations

import json
import keyword
import re
import sys
import textwrap
from pathlib import Path
from typing import Any, Optional

HERE = Path(__file__).resolve().parent.parent
DOCUMENT = HERE.parent / "openapi" / "svc_public_api_v1.json"
PACKAGE = HERE / "blockdesk"
WIDTH = 120

Schema = dict[str, Any]

# Rows of arrays with named columns, by where they are.
ROWS = {
    "DepthBids": ("Level", ["price", "quantity"]),
    "DepthAsks": ("Level", ["price", "quantity"]),
    "CompactBookT": ("CompactRow", ["order_id", "tranche_id", "pair", "available_usd", "best_price_usd", "expires_unix_ms"]),
    "Candle": ("Candle", ["open_ms", "open", "high", "low", "close", "volume", "quote_volume", "trades"]),
    "CoinGeckoOrderBookBids": ("Level", ["price", "quantity"]),
    "CoinGeckoOrderBookAsks": ("Level", ["price", "quantity"]),
    "CoinMarketCapOrderBookBids": ("Level", ["price", "quantity"]),
    "CoinMarketCapOrderBookAsks": ("Level", ["price", "quantity"]),
}
ABOUT = {
    "Level": "A price of an order book, and how much there is at it.",
    "CompactRow": "A tranche in the book for bots. best_price_usd is None where it is not priced now, expires_unix_ms where it never expires.",
    "Candle": "An interval with trades: volume is in the base asset, quote_volume in the quote asset.",
}
# Classes with methods of their own, which _behaviour.py has.
BEHAVIOUR = {"Depth": "DepthMethods", "Ticket": "TicketMethods", "Claim": "ClaimMethods"}
# Requests are written as arguments, and these are read by nobody.
NOT_MODELS = {"QuoteRequest", "ClaimRequest", "PaymentProof", "HandshakeRequest", "BuildRequest", "Submission", "Problem"}
# Names that the rule below would not give, by operationId.
NAMES = {
    "getService": ("service", "describe"),
    "getBoard": ("rfq", "board"),
    "getWebSocketHealth": ("market", "websocket_health"),
    "getCompactBook": ("rfq", "compact_book"),
    "getClaim": ("rfq", "claim"),
    "getBuild": ("dvp", "build_state"),
    "getClaimPay": ("rfq", "claim_pay_label"),
    "postClaimPay": ("rfq", "claim_pay"),
    "getMarketPool": ("market", "pool"),
    "getSpecificationAlias": ("market", "openapi"),
    "getSpecification": ("files", "specification"),
    "getCoinMarketCapOrderBook": ("adapters", "coinmarketcap_orderbook"),
    "getCoinMarketCapTrades": ("adapters", "coinmarketcap_trades"),
    "postAliasVerifyPayment": ("rfq", "native_verify_payment"),
    "postFallbackVerifyPayment": ("rfq", "verify_payment"),
    "postNativeVerifyPayment": ("native", "verify_payment"),
}
PREFIXES = [
    ("/api/v1/market/adapters/", "adapters"), ("/api/v1/market/", "market"), ("/api/v1/rfq/", "rfq"), ("/api/v1/dvp/", "dvp"),
    ("/rfq-native/", "native"), ("/.well-known/", "files"), ("/", "files"),
]  # fmt: skip
# The handshake's two steps are one path, so they are written here.
HANDSHAKE = [
    ("handshake_challenge", "Challenge", ["pubkey"], "Ask for a nonce to sign."),
    ("handshake_token", "Token", ["pubkey", "nonce", "signature"], "Prove the key by the signed nonce, and get the token."),
]
NAMESPACES = ["market", "rfq", "dvp", "native", "adapters", "files", "legacy", "service"]
TITLES = {
    "market": "Market data: ``/api/v1/market/``.",
    "rfq": "The desk's tickets, quotes and claims: ``/api/v1/rfq/``.",
    "dvp": "Delivery versus payment: ``/api/v1/dvp/``.",
    "native": "The native surface, first to claim and to prove payments over: ``/rfq-native/``.",
    "adapters": "What aggregators read, in their formats.",
    "files": "Static files and discovery documents.",
    "legacy": "The legacy surface of the api address.",
    "service": "The service's description of itself.",
}


def camel(name: str) -> str:
    return "".join(part[:1].upper() + part[1:] for part in re.split(r"[^A-Za-z0-9]+", name))


def identifier(name: str) -> str:
    name = re.sub(r"\W", "_", name)
    return name + "_" if keyword.iskeyword(name) or not name.isidentifier() else name


class Models:
    """The classes of the document's schemas, each after those that it names."""

    def __init__(self, schemas: dict[str, Schema]) -> None:
        self.schemas = schemas
        self.done: dict[str, str] = {}  # kinds of named schemas
        self.text: list[str] = []
        self.classes: dict[str, str] = {}  # bodies by name, to write each once

    def all(self) -> str:
        for name in self.schemas:
            if name not in NOT_MODELS:
                self.named(name)
        return "\n\n\n".join(self.text)

    def named(self, name: str) -> str:
        if name not in self.done:
            self.done[name] = "Any"  # for one that names itself
            self.done[name] = {"Decimal": "Decimal", "Atoms": "int", "Timestamp": "datetime"}.get(name) or self.kind(
                self.schemas[name], name
            )
        return self.done[name]

    def kind(self, s: Schema, name: str) -> str:
        """The Python type of a schema; name is what a class of it is called."""
        if "$ref" in s:
            return self.named(s["$ref"].rsplit("/", 1)[1])
        choices = s.get("anyOf") or s.get("oneOf")
        if choices and "properties" not in s:
            return self.choice(choices, name)
        types = s.get("type", [])
        types = list(types) if isinstance(types, list) else [types]
        if not types:
            values = s["enum"] if "enum" in s else [s["const"]] if "const" in s else []
            types = sorted({json_type(v) for v in values})
        nullable = "null" in types
        types = [t for t in types if t != "null"]
        if len(types) != 1:
            return "Any"
        kind = self.plain(types[0], s, name)
        return f"Optional[{kind}]" if nullable and kind != "Any" else kind

    def choice(self, choices: list[Schema], name: str) -> str:
        rest = [c for c in choices if c.get("type") != "null"]
        kinds = {self.kind(c, name) for c in rest} if len(rest) == 1 or not any("properties" in c for c in rest) else {"Dict"}
        if kinds == {"Dict"}:
            return "dict[str, Any]"
        if len(kinds) != 1:
            return "Any"
        kind = kinds.pop()
        return f"Optional[{kind}]" if len(rest) < len(choices) and not kind.startswith(("Optional", "Any")) else kind

    def plain(self, kind: str, s: Schema, name: str) -> str:
        if kind == "array":
            return self.array(s, name)
        if kind == "object":
            return self.object(s, name)
        if kind == "string" and re.search(r"(A|_a)toms$", name):
            return "int"
        return {"string": "str", "integer": "int", "number": "Decimal", "boolean": "bool"}[kind]

    def array(self, s: Schema, name: str) -> str:
        if "prefixItems" in s:
            title, columns = ROWS[name]
            kinds = [self.kind(c, name) for c in s["prefixItems"]]
            lines = [f"    {column}: {kind}" for column, kind in zip(columns, kinds)]
            return self.write(title, f"class {title}(NamedTuple):", ABOUT[title], lines)
        items = s.get("items")
        return f"list[{self.kind(items, singular(name)) if items else 'Any'}]"

    def object(self, s: Schema, name: str) -> str:
        members = s.get("properties")
        if not members:
            more = s.get("additionalProperties")
            return f"dict[str, {self.kind(more, singular(name)) if isinstance(more, dict) else 'Any'}]"
        required: list[str] = []
        optional: list[str] = []
        for member, m in members.items():
            if member == "ok" and m.get("const") is True:
                continue
            self.field(member, m, name, member in s.get("required", []), required, optional)
        base = ", ".join(filter(None, [BEHAVIOUR.get(name), "Model"]))
        return self.write(name, f"@dataclass(frozen=True)\nclass {name}({base}):", s.get("description", ""), required + optional)

    def field(self, member: str, m: Schema, name: str, is_required: bool, required: list[str], optional: list[str]) -> None:
        kind, at = self.kind(m, name + camel(member)), identifier(member)
        if not is_required and not kind.startswith(("Optional", "Any")):
            kind = f"Optional[{kind}]"
        setting = ""
        if at != member and is_required:
            setting = f' = field(metadata={{"name": "{member}"}})'
        elif at != member:
            setting = f' = field(default=None, metadata={{"name": "{member}"}})'
        elif not is_required:
            setting = " = None"
        lines = required if is_required else optional
        lines += ["    " + line for line in comment(m.get("description", ""))]
        lines.append(f"    {at}: {kind}{setting}")

    def write(self, name: str, head: str, about: str, lines: list[str]) -> str:
        body = (
            head
            + "\n"
            + textwrap.indent(docstring(about or f"See the service's specification: ``{name}``."), "    ")
            + "\n\n"
            + "\n".join(lines or ["    pass"])
        )
        if self.classes.setdefault(name, body) != body:
            name, body = name + "2", body.replace(f"class {name}(", f"class {name}2(")
            self.classes[name] = body
        if body not in self.text:
            self.text.append(body)
        return name


def singular(name: str) -> str:
    if name in ROWS:
        return name
    return name[:-3] + "y" if name.endswith("ies") else name[:-1] if name.endswith("s") and not name.endswith("ss") else name


def json_type(value: Any) -> str:
    if value is None:
        return "null"
    return {bool: "boolean", int: "integer", str: "string", list: "array"}.get(type(value), "object")


def clean(text: str) -> str:
    return text.split("\n\n|")[0].replace("\\", "/").strip()


def comment(text: str) -> list[str]:
    lines = textwrap.wrap(" ".join(clean(text).split()), WIDTH - 10)
    return ["#: " + line for line in lines]


def docstring(text: str) -> str:
    text = " ".join(clean(text).split())
    lines = textwrap.wrap(text, WIDTH - 15)
    return '"""' + "\n".join(lines) + ('\n"""' if len(lines) > 1 else '"""')


class Operation:
    """One endpoint as a method."""

    def __init__(self, models: Models, method: str, path: str, o: dict[str, Any], servers: list[dict[str, str]]) -> None:
        self.method, self.path = method.upper(), path
        self.namespace, self.name = self.named(o["operationId"], path, servers)
        self.about = o.get("summary", "")
        self.api = all("api address" in s["description"] for s in servers)
        # An empty alternative makes the token optional; then it is not sent.
        self.auth = bool(o.get("security")) and {} not in o["security"]
        self.keyed = any("IdempotencyKey" in p.get("$ref", "") for p in o.get("parameters", []))
        self.arguments: list[tuple[str, str, bool]] = []  # name, type, required
        self.told: dict[str, str] = {}  # what the document says of them
        self.query: list[str] = []
        self.body: list[str] = []
        for p in o.get("parameters", []):
            if "$ref" not in p:
                self.argument(models, p["name"], {**p["schema"], "description": p.get("description", "")}, p.get("required", False))
                (self.query if p["in"] == "query" else []).append(p["name"])
        if "requestBody" in o:
            s = models.schemas[o["requestBody"]["content"]["application/json"]["schema"]["$ref"].rsplit("/", 1)[1]]
            for member, m in s["properties"].items():
                self.argument(models, member, m, member in s["required"])
                self.body.append(member)
        self.answers = {}
        for status, r in o["responses"].items():
            schema = r.get("content", {}).get("application/json", {}).get("schema")
            if status.startswith("2") and schema:
                self.answers[int(status)] = models.kind(schema, camel(o["operationId"]))
        self.returns = " | ".join(dict.fromkeys(self.answers.values()))
        if " | " in self.returns:
            self.returns = f"Union[{self.returns.replace(' | ', ', ')}]"

    @staticmethod
    def named(operation: str, path: str, servers: list[dict[str, str]]) -> tuple[str, str]:
        if operation in NAMES:
            return NAMES[operation]
        if path in ("/status", "/proof", "/pairs"):
            return "legacy", path[1:]
        namespace, rest = next((n, path[len(p) :]) for p, n in PREFIXES if path.startswith(p))
        if path.startswith("/.well-known/"):
            rest = "well_known/" + rest
        return namespace, re.sub(r"\W", "_", re.sub(r"\.json$", "", rest))

    def argument(self, models: Models, name: str, s: Schema, required: bool) -> None:
        kind = "Number" if name == "fill_usd" else models.kind(s, camel(name)).replace("Optional[", "").rstrip("]")
        about = s.get("description") or models.schemas.get(s.get("$ref", "").rsplit("/", 1)[-1], {}).get("description", "")
        if about:
            self.told[name] = " ".join(clean(about).split())
        self.arguments.append((name, "str" if kind not in ("int", "bool", "Number") else kind, required))

    def signature(self) -> str:
        first = [f"{identifier(n)}: {k}" for n, k, r in self.arguments if r]
        rest = [f"{identifier(n)}: Optional[{k}] = None" for n, k, r in self.arguments if not r]
        if self.keyed:
            rest.append("idempotency_key: Optional[str] = None")
        return ", ".join(first + (["*"] + rest if rest else []))

    def passed(self) -> str:
        names = [identifier(n) for n, _, r in self.arguments if r] + [f"{identifier(n)}={identifier(n)}" for n, _, r in self.arguments if not r]
        return ", ".join(names + (["idempotency_key=idempotency_key"] if self.keyed else []))

    def call(self) -> str:
        """The function that makes the call's description."""
        path = json.dumps(self.path)
        parts = re.findall(r"{(\w+)}", self.path)
        if parts:
            path = "path_of(" + path + ", " + ", ".join(f"{p}={p}" for p in parts) + ")"
        options = [f"kinds={{{', '.join(f'{s}: {k}' for s, k in self.answers.items())}}}"]
        if self.query:
            options.append("query={" + ", ".join(f'"{n}": {identifier(n)}' for n in self.query) + "}")
        if self.method == "POST":
            options.append("body={" + ", ".join(f'"{n}": {n}' for n in self.body) + "}")
        if self.keyed:
            options.append("key=idempotency_key or new_key()")
        options += [f"{flag}=True" for flag in ("api", "auth") if getattr(self, flag)]
        text = f'def {self.namespace}_{self.name}({self.signature()}) -> Call[{self.returns}]:\n    return Call("{self.method}", {path}, {", ".join(options)})'
        return text

    def methods(self) -> tuple[str, str]:
        """The method of the blocking and of the asyncio namespace."""
        arguments = ", ".join(filter(None, ["self", self.signature()]))
        about = textwrap.indent(self.doc(), "        ")
        call = f"calls.{self.namespace}_{self.name}({self.passed()})"
        sync = f"    def {self.name}({arguments}) -> {self.returns}:\n{about}\n        return self._client.request({call})"
        return sync, "    async " + sync[4:].replace("return self", "return await self")

    def doc(self) -> str:
        head = f"{self.about}: ``{self.method} {self.path}``."
        told = [
            line
            for name, _, _ in self.arguments
            if name in self.told
            for line in textwrap.wrap(f"{name}: {self.told[name]}", WIDTH - 15, subsequent_indent="    ")
        ]
        return '"""' + head + ("\n\n" + "\n".join(told) + "\n" if told else "") + '"""'


HEAD = '''"""{title}

Written by tools/generate.py from the service's OpenAPI document: not to be edited.
"""

from __future__ import annotations

'''


def files() -> dict[str, str]:
    document = json.loads(DOCUMENT.read_text("utf-8"))
    models = Models(document["components"]["schemas"])
    models.all()
    operations = []
    for path, methods in document["paths"].items():
        for method in ("get", "post"):
            o: Optional[dict[str, Any]] = methods.get(method)
            if not o or path == "/api/v1/dvp/handshake" and method == "post":
                continue
            operation = Operation(models, method, path, o, methods.get("servers", document["servers"]))
            if operation.answers:  # else pages and streams, which are no method
                operations.append(operation)
    names = sorted(set(re.findall(r"\b[A-Z]\w+\b", " ".join(o.returns for o in operations))) & set(models.classes) | {"Challenge", "Token"})
    imports = "from .models import (\n" + "".join(f"    {n},\n" for n in names) + ")\n"
    return {
        "models.py": HEAD.format(title="What the service answers, as types.")
        + "from dataclasses import dataclass, field\nfrom datetime import datetime\nfrom decimal import Decimal\nfrom typing import Any, NamedTuple, Optional\n\n"
        + "from ._behaviour import ClaimMethods, DepthMethods, Model, TicketMethods\n\n\n"
        + "\n\n\n".join(models.text) + "\n",
        "_calls.py": HEAD.format(title="Every request of the service, described and not yet sent.")
        + "from typing import Any, Optional, Union\n\nfrom ._call import Call, Number, new_key, path_of\n" + imports + "\n\n"
        + "\n\n\n".join(o.call() for o in operations) + "\n\n\n" + "\n\n\n".join(handshake_calls()) + "\n",
        "_namespaces.py": HEAD.format(title="The methods of both clients, by group.")
        + "from typing import Any, Optional, Union\n\nfrom . import _calls as calls\nfrom ._call import AsyncNamespace, Namespace, Number\n" + imports + "\n\n"
        + "\n\n\n".join(namespaces(operations)) + "\n",
    }  # fmt: skip


def handshake_calls() -> list[str]:
    out = []
    for name, kind, members, _ in HANDSHAKE:
        arguments = ", ".join(f"{m}: str" for m in members)
        body = ", ".join(f'"{m}": {m}' for m in members)
        out.append(
            f"def dvp_{name}({arguments}) -> Call[{kind}]:\n"
            f'    return Call("POST", "/api/v1/dvp/handshake", kinds={{200: {kind}, 201: {kind}}}, body={{{body}}}, once={len(members) > 1})'
        )
    return out


def handshake_methods(sync: bool) -> list[str]:
    out = []
    for name, kind, members, about in HANDSHAKE:
        arguments = ", ".join(f"{m}: str" for m in members)
        head, wait = ("def", "") if sync else ("async def", "await ")
        out.append(
            f'    {head} {name}(self, {arguments}) -> {kind}:\n        """{about}"""\n'
            f"        return {wait}self._client.request(calls.dvp_{name}({', '.join(members)}))"
        )
    return out


def namespaces(operations: list[Operation]) -> list[str]:
    out = []
    for n in NAMESPACES:
        mine = [o.methods() for o in operations if o.namespace == n]
        for sync, prefix, base in ((True, "", "Namespace"), (False, "Async", "AsyncNamespace")):
            methods = [m[0 if sync else 1] for m in mine] + (handshake_methods(sync) if n == "dvp" else [])
            out.append(f'class {prefix}{camel(n)}({base}):\n    """{TITLES[n]}"""\n\n' + "\n\n".join(methods))
    return out


# What makes client.py the asyncio client: regular expressions and what replaces them.
ASYNC = [
    (r"The blocking client\.", "The asyncio client. tools/generate.py writes it from client.py."),
    (r"Safe to use from many threads\.", "It belongs to one event loop, and many tasks may use it."),
    (r"iterate over it, and close it", "iterate over it by ``async for``, and close it"),
    (r"import ssl\n", "import asyncio\nimport ssl\n"),
    (r"\b(Client|Stream|Connection)\b", r"Async\1"),
    (r"\bgroups\.(\w+)\(", r"groups.Async\1("),
    (r"\bdef (?!__init__|token|stream|_keep)(\w+)\(self", r"async def \1(self"),
    (r"\bdef (?!__init__|token|stream|_keep)(\w+)\(\n", r"async def \1(\n"),
    (r"__(enter|exit)__", r"__a\1__"),
    (r"\btime\.sleep\(", "await asyncio.sleep("),
    (r"\b((?:self\._(?:run|perform|take|over|root\.\w+|pool\.\w+)|self\.close|connection\.(?:send|receive|close)|AsyncConnection\.open)\()", r"await \1"),
]


def asyncio_client() -> str:
    """aio.py."""
    text = (PACKAGE / "client.py").read_text("utf-8")
    for pattern, replacement in ASYNC:
        text, found = re.subn(pattern, replacement, text)
        if not found:
            raise SystemExit(f"client.py has nothing like {pattern}")
    return text


def main() -> int:
    wrong = []
    for name, text in {**files(), "aio.py": asyncio_client()}.items():
        at = PACKAGE / name
        if "--check" not in sys.argv[1:]:
            at.write_text(text, "utf-8")
        elif not at.exists() or at.read_text("utf-8") != text:
            wrong.append(name)
    if wrong:
        print(f"not as their sources say: {', '.join(wrong)}; run python3 sdk/python/tools/generate.py", file=sys.stderr)
    return len(wrong)


if __name__ == "__main__":
    sys.exit(main())
