// Package site is what people and integrators read over HTTP: the board, the wallet
// page, the specification with the page that shows it, the downloads, and the
// description of the service. The pages are what packages board and reference were
// built to, and only they are sent with a Content-Security-Policy.
//
// Limit: [MaxDownloads].
package site
