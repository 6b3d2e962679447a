// Package sdk embeds the files that integrators download under /public-sdk/: the OpenAPI
// and AsyncAPI documents, the FIX documents, and the Python and TypeScript SDKs. It has no
// logic.
//
// The documents have the default addresses; package site replaces them with the service's
// own. The SDKs' types are generated from the documents (make sdk), and tests compare the
// documents with the answers of the running service, so an answer that is not documented
// fails a test. The files are in the program; nothing is read from disk.
package sdk

import "embed"

// Specification is the path, in Files, of the OpenAPI 3.1 document that every
// error body points to (docs/specification.md 4.2).
const Specification = "openapi/svc_public_api_v1.json"

// Channels is the path, in Files, of the AsyncAPI 3.0 document of the WebSocket
// and of the stream of server-sent events.
const Channels = "asyncapi/svc_ws_v1.json"

// Files are the documents, by their path below /public-sdk/: the README, OpenAPI,
// AsyncAPI, the FIX documents, the Python SDK, and the TypeScript SDK as it is installed.
//
//go:embed README.md openapi asyncapi fix
//go:embed python/README.md python/pyproject.toml python/*/*.py python/blockdesk/py.typed python/tests/packages.json
//go:embed typescript/README.md typescript/package.json typescript/src typescript/dist typescript/examples
var Files embed.FS
