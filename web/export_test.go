package web

import "net/http"

// Unwrapped is the client of a request, and whether it speaks https.
func (s *Server) Unwrapped(r *http.Request) (from string, https bool) {
	s.unwrap(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { from, https = s.client(r), secure(r) })).ServeHTTP(nil, r)
	return from, https
}
