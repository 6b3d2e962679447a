// Package site serves what people and integrators read: the board, the wallet page, the
// OpenAPI document with its HTML page, the downloads, and the description of the service.
// Packages board and reference contain the built pages. Only pages have a
// Content-Security-Policy.
//
// Limit: [MaxDownloads].
package site
