// Package site serves what people and integrators read: the board, the wallet page, the
// OpenAPI document with its HTML page, the downloads, and the description of the service
// (GET /). Packages board and reference contain the built pages.
//
// Everything is read, packed and hashed at the start and served from memory; only the
// wallet page and the board's configuration depend on the catalog's facts. Published
// documents contain this service's addresses instead of the default ones. Only pages have
// a Content-Security-Policy.
//
// Limit: [MaxDownloads].
package site
